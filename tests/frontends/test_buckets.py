"""Models with dynamic dimensions: buckets, what they refuse, and calls in sizes between them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.bucketing import GivenDimension, dynamic_dimensions, linear
from ttcodegen.emission.buckets import BucketError, Buckets, DynamicDimension, Extent
from ttcodegen.foundation.diagnostics import CompileError


def test_sizes_that_nobody_gave_are_halves_in_whole_tiles() -> None:
    (found,) = dynamic_dimensions([GivenDimension("n", 2, 500)], None, None)
    assert found.sizes == (64, 128, 256, 500)
    (found,) = dynamic_dimensions([GivenDimension("batch", 1, 8)], None, None)
    assert found.sizes == (8,)


@pytest.mark.parametrize(
    ("given", "lengths", "said"),
    [
        ([GivenDimension("n")], None, "no largest size"),
        ([GivenDimension("n", 4, 64)], (2, 64), "are from 4 to 64, found 2, 64"),
        ([GivenDimension("n", 4, 64)], (64.0,), "are integers"),
        ([GivenDimension("n", 4, 64)], {"m": (64,)}, "no dynamic dimension 'm', only n"),
        ([GivenDimension("n"), GivenDimension("m")], (64,), "2 dynamic dimensions: n, m"),
        ([GivenDimension(f"{i}", 1, 2048) for i in "abcd"], None, "256 buckets are too many"),
    ],
)
def test_impossible_sizes_are_refused(given: Any, lengths: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        dynamic_dimensions(given, lengths, None)


def test_sizes_of_frameworks_are_read() -> None:
    assert linear("s27") == ("s27", 0, 1)
    assert linear("2*n + 3") == ("n", 3, 2)
    for text in ("n*m", "n**2", "-n", "n//2", "f(n)", ""):
        with pytest.raises(CompileError, match="not linear"):
            linear(text)


def test_a_call_takes_the_smallest_bucket_that_fits() -> None:
    n = Extent(0, "n", 1)
    two = Extent(1, "n", 2)
    dimension = DynamicDimension("n", 2, (32, 64))
    functions = {(32,): "f_32", (64,): "f_64"}
    buckets = Buckets("f", (dimension,), ((n, Extent(3)), (two,)), ((n,),), (0.0, 1.0), functions)
    assert Buckets.from_json(buckets.to_json()) == buckets
    assert buckets.sizes(["x", "y"], [(33, 3), (67,)]) == {"n": 33}
    assert buckets.function(buckets.bucket({"n": 32})) == "f_32"
    assert buckets.function(buckets.bucket({"n": 33})) == "f_64"
    for shapes, said in (
        ([(33, 4), (67,)], r"'x': expected the shape \(n, 3\), found \(33, 4\)"),
        ([(33, 3), (66,)], r"'y': expected the shape \(2\*n \+ 1\), found \(66,\)"),
        ([(33, 3), (65,)], "'y': n is 32 here and 33 in an input before"),
        ([(33, 3, 1), (65,)], "'x': expected the shape"),
    ):
        with pytest.raises(BucketError, match=said):
            buckets.sizes(["x", "y"], shapes)
    for size, said in ((65, "too large: there are buckets of 32, 64"), (1, "too small")):
        with pytest.raises(BucketError, match=said):
            buckets.bucket({"n": size})


def framework_jax() -> Any:
    """jax, with what packages for its plugins do not bring."""
    pytest.importorskip("jax.numpy", reason="jax is not installed: pip install jax")
    return pytest.importorskip("jax")


def modules() -> tuple[Any, Any]:
    """torch, and a module of attention with a mask."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            torch.manual_seed(0)
            self.table = torch.nn.Embedding(50, 32)
            self.project = torch.nn.Linear(32, 32)

        def forward(self, tokens: Any, mask: Any) -> Any:
            table = self.table(tokens)
            scores = self.project(table) @ table.mT / 6
            scores = torch.where(mask[:, None], scores, -1e9)
            rows = torch.softmax(scores, -1) @ table
            shown = mask[..., None].float()
            return {"rows": rows, "mean": (rows * shown).sum(1) / shown.sum(1)}

    return torch, Attention()


@pytest.fixture(scope="module")
def attention(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    torch, module = modules()
    from ttcodegen.torch import compile as compile_torch

    out = tmp_path_factory.mktemp("attention")
    shape = {0: torch.export.Dim("batch", max=2), 1: torch.export.Dim("length", min=2, max=64)}
    example = torch.arange(40).reshape(2, 20), torch.ones(2, 20, dtype=torch.bool)
    compile_torch(module, example, out=out, dynamic_shapes=(shape, shape), check=True)
    return torch, module, out


@pytest.mark.slow
@pytest.mark.frameworks
def test_every_size_agrees_with_torch(attention: tuple[Any, Any, Path]) -> None:
    import ttcodegen

    torch, module, out = attention
    generator = torch.Generator().manual_seed(1)
    with ttcodegen.load(out) as loaded:
        for batch, length in ((1, 2), (2, 31), (1, 32), (2, 33), (2, 64)):
            tokens = torch.randint(0, 50, (batch, length), generator=generator)
            mask = torch.rand(batch, length, generator=generator) > 0.3
            mask[:, 0] = True
            expected = module(tokens, mask)
            found = loaded(tokens.numpy(), mask=mask.numpy())
            for name in ("rows", "mean"):
                wanted = expected[name].detach().numpy()
                assert found[name].shape == wanted.shape
                assert np.abs(found[name] - wanted).max() < 0.02 * np.abs(wanted).max()
        for shape, said in (
            ((3, 8), "batch of 3 is too large: there are buckets of 2"),
            ((1, 65), "length of 65 is too large: there are buckets of 32, 64"),
            ((1, 1), "length of 1 is too small: the model takes 2"),
        ):
            with pytest.raises(ttcodegen.ModuleError, match=said):
                loaded(np.zeros(shape, np.int64), np.ones(shape, bool))
        with pytest.raises(ttcodegen.ModuleError, match="length is 9 here and 8"):
            loaded.forward(np.zeros((1, 8), np.int64), np.ones((1, 9), bool))


@pytest.mark.slow
@pytest.mark.frameworks
def test_the_executable_pads_and_cuts(attention: tuple[Any, Any, Path], tmp_path: Path) -> None:
    import ttcodegen

    _, _, out = attention
    with ttcodegen.load(out) as loaded:
        tokens = np.arange(35, dtype=np.int64)[None] % 50
        expected = loaded(tokens, np.ones((1, 35), bool))
    (program,) = out.glob("build*/*_main")

    def run(tokens: np.ndarray, mask: np.ndarray) -> subprocess.CompletedProcess[str]:
        np.save(tmp_path / "tokens.npy", tokens.astype(np.int32))
        np.save(tmp_path / "mask.npy", mask)
        given = [f"--input={name}={tmp_path / name}.npy" for name in ("tokens", "mask")]
        command = [str(program), *given, "--outputs", str(tmp_path / "results")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run(tokens, np.ones((1, 35), bool))
    assert done.returncode == 0, done.stderr
    for name in ("rows", "mean"):
        np.testing.assert_array_equal(
            np.load(tmp_path / "results" / "forward" / f"{name}.npy"), expected[name]
        )
    done = run(np.zeros((1, 99)), np.ones((1, 99), bool))
    assert done.returncode == 3
    assert "length of 99 is too large: the largest bucket has 64" in done.stderr
    done = run(np.zeros((1, 9)), np.ones((1, 8), bool))
    assert "'mask': expected the shape (batch, length), found (1, 8)" in done.stderr


@pytest.mark.frameworks
def test_a_model_that_sees_padding_is_refused(tmp_path: Path) -> None:
    torch, module = modules()
    from ttcodegen.torch import compile as compile_torch

    class Unmasked(torch.nn.Module):
        def forward(self, tokens: Any) -> Any:
            return module(tokens, torch.ones_like(tokens, dtype=torch.bool))

    length = torch.export.Dim("length", min=2, max=64)
    with pytest.raises(CompileError, match="the model depends on padding: output 0") as caught:
        compile_torch(
            Unmasked(), (torch.ones(1, 4, dtype=torch.int64),), out=tmp_path / "out",
            dynamic_shapes={"tokens": {1: length}},
        )  # fmt: skip
    assert "test_buckets.py" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.frameworks
def test_padding_hides_where_a_mask_is_added(tmp_path: Path) -> None:
    torch, _ = modules()
    from ttcodegen.torch import compile as compile_torch

    class Added(torch.nn.Module):
        def forward(self, scores: Any, bias: Any) -> Any:
            return torch.softmax(scores + bias, -1).amax(-1)

    shape = {1: torch.export.Dim("n", min=1, max=32)}
    example = torch.randn(2, 8), torch.zeros(2, 8)
    with pytest.raises(CompileError, match="the model depends on padding"):
        compile_torch(Added(), example, out=tmp_path / "out", dynamic_shapes=(shape, shape))
    hidden = {"bias": -float("inf")}
    compile_torch(
        Added(), example, out=tmp_path / "out", dynamic_shapes=(shape, shape), padding=hidden
    )
    assert "-std::numeric_limits<double>::infinity()" in (
        tmp_path / "out" / "src" / "entry_points.cpp"
    ).read_text("utf-8")


@pytest.mark.frameworks
def test_dimensions_of_exported_programs_and_those_that_follow_from_others(tmp_path: Path) -> None:
    torch, _ = modules()
    from ttcodegen.project.manifest import read_manifest
    from ttcodegen.torch import compile as compile_torch

    class Pairs(torch.nn.Module):
        def forward(self, one: Any, two: Any) -> Any:
            return torch.cat([one * 2, two], 0), one.sum(1)

    example = torch.randn(8, 3), torch.randn(5, 3)
    n = torch.export.Dim("n", min=2, max=40)
    shapes = {"one": {0: 2 * n}, "two": None}
    with pytest.raises(CompileError, match=r"size of output 0|depends on padding"):
        # Padding of the first would come between the two.
        compile_torch(Pairs(), example, out=tmp_path / "a", dynamic_shapes=shapes, lengths=(4,))

    class Scaled(torch.nn.Module):
        def forward(self, one: Any) -> Any:
            return one.cumsum(0), one * 2

    program = torch.export.export(Scaled(), (torch.randn(8, 3),), dynamic_shapes={"one": {0: n}})
    compile_torch(program, (torch.randn(8, 3),), out=tmp_path / "b", lengths=(4, 40))
    manifest = read_manifest(tmp_path / "b")
    assert manifest is not None
    buckets = Buckets.from_json(manifest["buckets"])
    assert buckets.dimensions[0].sizes == (4, 40)
    assert [str(each) for each in buckets.outputs[0]] == [buckets.dimensions[0].name, "3"]
    assert [each["name"] for each in manifest["functions"]] == ["forward_4", "forward_40"]


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"y": None}, "no argument 'y', only x"),
        ((None, None), "expected 1 entries"),
        ({"x": None}, "names no dynamic dimension"),
        ({"x": {3: 1}}, "has 2 dimensions, found dimension 3"),
        ({"x": {0: 5}}, "has a dimension of 2, declared as 5"),
        ({"x": "n"}, "expected a dictionary of dimensions"),
        (7, "expected a dictionary or a tuple"),
    ],
)
def test_wrong_declarations_are_refused(shapes: Any, said: str, tmp_path: Path) -> None:
    torch, _ = modules()
    from ttcodegen.torch import compile as compile_torch

    class Plain(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    with pytest.raises(CompileError, match=said):
        compile_torch(Plain(), (torch.ones(2, 3),), out=tmp_path / "out", dynamic_shapes=shapes)
    hint = {"x": {0: torch.export.Dim.AUTO}}
    with pytest.raises(CompileError, match="neither a name nor a largest size"):
        compile_torch(Plain(), (torch.ones(2, 3),), out=tmp_path / "out", dynamic_shapes=hint)


@pytest.mark.slow
@pytest.mark.frameworks
def test_symbolic_dimensions_of_jax(tmp_path: Path) -> None:
    jax = framework_jax()
    import ttcodegen
    from ttcodegen.jax import compile as compile_jax

    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)

    def rows(weight: Any, x: Any, scale: Any) -> Any:
        return {"rows": jax.numpy.tanh(x @ weight) * scale[:, None], "size": x.sum(-1)}

    batch = jax.export.symbolic_shape("b", constraints=["b <= 64", "b >= 2"])[0]
    specs = [jax.ShapeDtypeStruct((batch, 8), "float32"), jax.ShapeDtypeStruct((batch,), "float32")]
    compile_jax(rows, *specs, params=weight, out=tmp_path / "out", check=True)
    with ttcodegen.load(tmp_path / "out") as loaded:
        for size in (2, 33, 64):
            x = np.random.default_rng(size).standard_normal((size, 8)).astype(np.float32)
            scale = np.linspace(0, 1, size, dtype=np.float32)
            found, wanted = loaded(x, scale), rows(weight, x, scale)
            for name in ("rows", "size"):
                expected = np.asarray(wanted[name])
                assert found[name].shape == expected.shape
                assert np.abs(found[name] - expected).max() < 0.02 * np.abs(expected).max()
        with pytest.raises(ttcodegen.ModuleError, match="b of 65 is too large"):
            loaded(np.zeros((65, 8), np.float32), np.zeros(65, np.float32))


@pytest.mark.frameworks
def test_shapes_beside_an_example_of_jax(tmp_path: Path) -> None:
    jax = framework_jax()
    from ttcodegen.jax import compile as compile_jax

    def total(x: Any) -> Any:
        return x.sum(0), jax.nn.softmax(x, 0)

    x = jax.numpy.ones((4, 3))
    with pytest.raises(CompileError, match=r"no largest size"):
        compile_jax(total, x, out=tmp_path / "out", dynamic_shapes=("n, _",))
    with pytest.raises(CompileError, match=r"the model depends on padding: output 1") as caught:
        compile_jax(total, x, out=tmp_path / "out", dynamic_shapes=("n, _",), lengths=(8,))
    assert "test_buckets.py" in str(caught.value)
    with pytest.raises(CompileError, match="dynamic_shapes: "):
        compile_jax(total, x, out=tmp_path / "out", dynamic_shapes=("n, _, 4",), lengths=(8,))


@pytest.mark.frameworks
def test_what_does_not_go_with_dynamic_dimensions_is_refused(tmp_path: Path) -> None:
    torch, module = modules()
    from ttcodegen.torch import compile as compile_torch

    shape = {0: torch.export.Dim("batch", max=2)}
    example = torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.bool)
    given: dict[str, Any] = {"out": tmp_path / "out", "dynamic_shapes": (shape, shape)}
    with pytest.raises(TypeError, match="not of buckets"):
        compile_torch(module, example, steps=[("forward", example)], **given)
    with pytest.raises(CompileError, match="in stages are not supported"):
        compile_torch(module, example, stages=2, **given)
    with pytest.raises(CompileError, match="of several functions are not supported"):
        compile_torch({"a": (module, example), "b": (module, example)}, **given)
    with pytest.raises(CompileError, match="dynamic_shapes: expected a dictionary or a tuple"):
        compile_torch(module, example, out=tmp_path / "out", padding={"mask": 1.0})
    assert not (tmp_path / "out").exists()


@pytest.mark.frameworks
def test_symbolic_dimensions_of_several_functions_of_jax_are_refused(tmp_path: Path) -> None:
    jax = framework_jax()
    from ttcodegen.jax import compile as compile_jax

    size = jax.export.symbolic_shape("n")[0]
    example = (jax.ShapeDtypeStruct((size,), "float32"),)
    with pytest.raises(CompileError, match="of several functions are not supported"):
        compile_jax({"f": (jax.numpy.sin, example)}, out=tmp_path / "out")
    with pytest.raises(CompileError, match="no dimension of an argument is symbolic"):
        compile_jax(jax.numpy.sin, jax.numpy.ones(3), out=tmp_path / "out", padding={"x": 1.0})


@pytest.mark.frameworks
def test_arguments_by_name_come_in_any_order(tmp_path: Path) -> None:
    torch, _ = modules()
    from ttcodegen.project.manifest import read_manifest
    from ttcodegen.torch import compile as compile_torch

    class Named(torch.nn.Module):
        def forward(self, x: Any, held: Any = None, scale: Any = None) -> Any:
            return x + held["b"].sum(1, keepdim=True) * scale - held["a"][:, :1]

    n = {0: torch.export.Dim("n", max=8)}
    held = {"b": torch.ones(4, 5), "a": torch.ones(4, 6)}
    compile_torch(
        Named(), (torch.ones(4, 3),), {"scale": torch.ones(4, 1), "held": held},
        out=tmp_path / "out", dynamic_shapes={"scale": n, "x": n, "held": {"a": n, "b": n}},
    )  # fmt: skip
    manifest = read_manifest(tmp_path / "out")
    assert manifest is not None
    buckets = Buckets.from_json(manifest["buckets"])
    inputs = [each for each in manifest["functions"][0]["inputs"] if each["kind"] == "input"]
    assert [each["shape"] for each in inputs] == [
        [extent.size({"n": 8}) for extent in extents] for extents in buckets.inputs
    ]


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_text_in_any_length(tmp_path: Path, capsys: Any) -> None:
    torch, _ = modules()
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    import ttcodegen
    from ttcodegen.torch.__main__ import main

    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        vocab_size=100, max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).eval()
    folder, out = str(tmp_path / "bert"), str(tmp_path / "out")
    model.save_pretrained(folder)
    assert main([folder, "--out", out, "--lengths", "32,64", "--batch", "2", "--check"]) == 0
    with ttcodegen.load(out) as loaded:
        for length in (1, 40):
            tokens = torch.arange(2 * length).reshape(2, length) % 100
            mask = torch.ones_like(tokens)
            mask[1, length // 2 + 1 :] = 0
            expected = model(input_ids=tokens, attention_mask=mask).logits.detach().numpy()
            found = loaded(input_ids=tokens.numpy(), attention_mask=mask.numpy())["logits"]
            assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    assert main([folder, "--out", out, "--lengths", "128", "--force"]) == 1
    assert "a length of 128 is too long: the model has 64 positions" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([folder, "--out", out, "--lengths", "32", "--decode"])
