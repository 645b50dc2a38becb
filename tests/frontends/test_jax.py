"""Functions of JAX: the C++ against jax itself. Runs where jax is installed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
pytest.importorskip("flax", reason="flax is not installed: pip install flax")

import jax.numpy as jnp  # noqa: E402

import ttcodegen  # noqa: E402
import ttcodegen.jax  # noqa: E402
from tests.frontends import jax_models  # noqa: E402
from ttcodegen.compilation import CompileOptions, compile_module  # noqa: E402
from ttcodegen.flatbuffer.reader import read_ttnn  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError, Source, SourceLocation  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

KEY = jax.random.PRNGKey(0)
PARAMS = {
    "up": {"kernel": jax.random.normal(KEY, (64, 128)) / 8, "bias": jnp.ones(128)},
    "down": {"kernel": jax.random.normal(KEY, (128, 10)) / 11},
}


def mlp(params: Any, x: Any, scale: float, options: dict[str, Any]) -> dict[str, Any]:
    hidden = jax.nn.relu(x @ params["up"]["kernel"] + params["up"]["bias"])
    return {"logits": hidden @ params["down"]["kernel"] * scale, "more": (options["a"] + 1, hidden)}


TYPES = {"f32": (jnp.float32, 0.9999), "bf16": (jnp.bfloat16, 0.99)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", jax_models.MODELS)
def test_models(name: str, kind: str, tmp_path: Path) -> None:
    dtype, least = TYPES[kind]
    model = jax_models.model(name, dtype)
    out = ttcodegen.jax.compile(
        model.function, *model.example, params=model.params, out=tmp_path / "out", check=True
    )
    for output in json.loads(out.joinpath("check.json").read_text())["outputs"]:
        assert output["passed"]
        # Tokens are compared one by one.
        assert output["reference_pcc"] is None or output["reference_pcc"] >= least


def test_side_effects_are_refused(tmp_path: Path) -> None:
    def spoken(x: Any) -> Any:
        jax.debug.print("x is {}", x)
        return x + 1

    with pytest.raises(CompileError, match="side effect") as caught:
        ttcodegen.jax.compile(spoken, jnp.ones(4), out=tmp_path / "out")
    assert not tmp_path.joinpath("out").exists()
    assert "test_jax.py" in str(caught.value)


def _branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


LOCATED = {
    "branch": (_branching, "cannot lower"),
    "size": (lambda x: x[x > 0], "cannot lower"),
    "text": (lambda x: (x, "text"), "cannot lower"),
    "nothing": (lambda x: (), "returns no arrays"),
    "elements": (lambda x: x.astype(jnp.float8_e4m3fn) * 2, "type f8E4M3FN are not supported"),
    "kernel": (
        lambda x: jax.ffi.ffi_call("mine", jax.ShapeDtypeStruct((4,), jnp.float32))(x),
        "'@mine' is not supported",
    ),
    "callback": (
        lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((4,), jnp.float32), x),
        "side effect",
    ),
    "fourier": (lambda x: jnp.fft.fft(jnp.tile(x, 513)).real, "more than 2048 elements"),
    "cholesky": (
        lambda x: jnp.linalg.cholesky(jnp.outer(jnp.tile(x, 17), jnp.tile(x, 17))),
        "'cholesky' of matrices of more than 64 columns",
    ),
    "schur": (lambda x: jax.scipy.linalg.schur(jnp.outer(x, x))[0], "factorizes a matrix"),
}


@pytest.mark.parametrize("name", LOCATED)
def test_what_is_not_supported_is_refused(name: str, tmp_path: Path) -> None:
    function, message = LOCATED[name]
    with pytest.raises(CompileError, match=message) as caught:
        ttcodegen.jax.compile(function, jnp.ones(4), out=tmp_path / "out")
    assert re.search(r"test_jax\.py:\d+:\d+: ", str(caught.value)), "no line of the program"
    assert "note: " in str(caught.value)


def test_weights_may_be_called_like_arguments(tmp_path: Path) -> None:
    """As the projections `k` of a block, and the cache `k` that it is given."""
    params, cache = {"k": jnp.ones((4, 2)), "v": jnp.ones(2)}, jnp.zeros((3, 2))
    text = ttcodegen.jax.export(
        lambda p, x, k: k + x @ p["k"] + p["v"], jnp.ones(4), cache, params=params, golden=tmp_path
    )
    names = re.findall(r'ttir\.name = "([^"]*)"', text)
    assert names == ["params.k", "v", "x", "k", "output"]
    assert np.load(tmp_path / "inputs/params_k.npy").shape == (4, 2)
    assert np.load(tmp_path / "inputs/k.npy").shape == (3, 2)


def test_results_may_be_complex() -> None:
    text = ttcodegen.jax.export(lambda x: (x + 1j * x, x), jnp.ones(4))
    assert 'tensor<4xcomplex<f32>> {ttir.name = "0"}' in text


def test_the_place_is_that_of_the_expression(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="static") as caught:
        ttcodegen.jax.compile(_branching, jnp.ones(4), out=tmp_path / "out")
    place = caught.value.diagnostics[0].place
    line = _branching.__code__.co_firstlineno + 1
    assert place == SourceLocation(__file__, line, len("    return x if ") + 1)


def test_a_function_runs_only_to_be_compared(tmp_path: Path) -> None:
    runs: list[Any] = []

    def noted(key: Any, x: Any) -> Any:
        runs.append(x)
        return jax.random.uniform(key, x.shape) + x

    shape = jax.ShapeDtypeStruct((4,), jnp.float32)
    text = ttcodegen.jax.export(noted, jax.random.key(1), shape)
    assert "ui32" in text
    assert len(runs) == 1
    with pytest.raises(CompileError, match="an array is needed"):
        ttcodegen.jax.export(noted, jax.random.key(1), shape, golden=tmp_path)
    ttcodegen.jax.export(noted, jax.random.key(1), jnp.ones(4), golden=tmp_path)
    expected = jax.random.uniform(jax.random.key(1), (4,)) + 1
    np.testing.assert_array_equal(np.load(tmp_path / "outputs/output.npy"), expected)
    assert np.load(tmp_path / "inputs/key.npy").dtype == np.uint32


@pytest.mark.slow
def test_a_function_keeps_its_structure(tmp_path: Path) -> None:
    x, a = jax.random.normal(KEY, (32, 64)), jnp.arange(4.0)
    out = ttcodegen.jax.compile(
        mlp, x, 2.0, {"a": a}, static=(1,), params=PARAMS, out=tmp_path / "out", build=True,
        check=True,
    )  # fmt: skip
    for output in json.loads(out.joinpath("check.json").read_text())["outputs"]:
        assert output["reference_pcc"] >= 0.9999
    np.testing.assert_array_equal(np.load(out / "data/up_bias.npy"), np.ones(128))
    with ttcodegen.load(out) as model:
        found = model(np.asarray(x), 2.0, {"a": np.asarray(a)})
        expected = mlp(PARAMS, x, 2.0, {"a": a})
        assert isinstance(found["more"], tuple)
        np.testing.assert_allclose(found["logits"], expected["logits"], rtol=1e-2, atol=1e-2)
        np.testing.assert_allclose(found["more"][0], expected["more"][0])
        with pytest.raises(ttcodegen.ModuleError, match="compiled for 2"):
            model(np.asarray(x), 3.0, {"a": np.asarray(a)})


def test_what_is_no_function_is_refused_where_it_is_given() -> None:
    with pytest.raises(CompileError, match="expected a function, found dict") as caught:
        ttcodegen.jax.export({}, jnp.ones(4))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.place is not None
    assert diagnostic.place.file == __file__
    assert diagnostic.remedy


def _exact_gelu(dtype: str) -> str:
    """`jax.nn.gelu` without the approximation: erfc is spelled out by polynomials."""
    from jax import export

    exported = export.export(jax.jit(lambda x: jax.nn.gelu(x, approximate=False)))
    return exported(jax.ShapeDtypeStruct((8, 64), dtype)).mlir_module()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_spelled_out_erfc_is_part_of_a_gelu(dtype: str) -> None:
    compiled = compile_module(Source("gelu.mlir", _exact_gelu(dtype)), CompileOptions("gelu"))
    (program,) = read_ttnn(compiled.flatbuffer).programs
    names = [operation.name for operation in program.operations]
    assert names.count("ttnn.gelu") == 1
    assert "ttnn.where" not in names


def test_another_polynomial_is_no_erfc() -> None:
    text = _exact_gelu("float32")
    assert "0.563825965" in text
    text = text.replace("0.563825965", "0.553825965")
    compiled = compile_module(Source("gelu.mlir", text), CompileOptions("gelu"))
    names = [o.name for each in read_ttnn(compiled.flatbuffer).programs for o in each.operations]
    assert "ttnn.gelu" not in names
    assert "ttnn.erfc" not in names


def test_functions_of_one_project_share_parameters(tmp_path: Path) -> None:
    params = {"w": jnp.full((32, 32), 0.5), "b": jnp.ones(32)}

    def prefill(params: Any, x: Any) -> Any:
        keys = jnp.where(x > 0, x @ params["w"], 0)
        return {"keys": jax.lax.dynamic_update_slice(jnp.zeros((2, 64, 32)), keys, (0, 0, 0))}

    def decode(params: Any, x: Any, cache: Any, at: Any) -> Any:
        row = jax.nn.relu(x @ params["w"] + params["b"])
        return {"keys": jax.lax.dynamic_update_slice(cache["keys"], row, (0, at, 0))}

    x, cache = jnp.ones((2, 8, 32)), {"keys": jnp.ones((2, 64, 32))}
    functions = {"prefill": (prefill, (x,)), "decode": (decode, (x[:, :1], cache, jnp.int32(8)))}
    out = ttcodegen.jax.compile(functions, tmp_path / "out", params=params, golden=tmp_path / "g")
    assert sorted(path.name for path in (out / "data").iterdir()) == ["b.npy", "w.npy"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert [row["name"] for row in manifest["functions"]] == ["prefill", "decode"]
    assert (tmp_path / "g/decode/inputs/cache_keys.npy").is_file()
    with pytest.raises(CompileError, match="'decode': expected a function and a tuple"):
        ttcodegen.jax.compile({"decode": decode}, tmp_path / "other", params=params)
