"""Options of `ttcodegen.torch` and `ttcodegen.jax` have an effect, or are refused."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.settings import ProjectSettings

DECISIONS = '{"version": 1, "functions": {}}'
VALUES: dict[str, dict[str, Any]] = {
    "optimize": {"optimize": 2},
    "weights": {"weights": "bfp8_b"},
    "activations": {"activations": "bfp8_b"},
    "overrides": {"overrides": "given.json"},
    "write_overrides": {"write_overrides": "written.json"},
    "validate": {"validate": True},
    "python": {"python": "ttnn/bin/python"},
    "trace": {"trace": True},
    "mesh": {"mesh": "1x2"},
    "hosts": {"hosts": "1x2"},
    "fabric": {"fabric": "ring"},
    "parallel": {"parallel": "data=0"},
    "stages": {"stages": 2},
    "micro_batches": {"micro_batches": 2},
    "kind": {"kind": "exe"},
    "tt_metal": {"tt_metal": "0.70.1"},
    "f16": {"f16": "float32"},
    "keep_edits": {"keep_edits": "fail"},
    "embed_goldens": {"embed_goldens": True},
    "explain": {"explain": True},
    "format": {"format": False},
    "dump_ir": {"dump_ir": "dump"},
    "target": {"target": "ttmetal"},
    "arch": {"arch": "blackhole"},
    "system_desc": {"system_desc": "p150"},
    "name": {"name": "other"},
    "seed": {"seed": 3},
}
"""A value of each option that is not its default."""
OF_EDITS = {"keep_edits"}
"""Options that say what becomes of files which are there already."""
NOT_SEEN = {"out", "build", "check", "force", "golden", "example_kwargs", "steps"}
"""Parameters that are no options, or whose effects other tests compare."""


def torch_compile(**options: Any) -> None:
    torch = pytest.importorskip("torch")
    import ttcodegen.torch

    class Scaled(torch.nn.Module):  # pyright: ignore
        def __init__(self) -> None:
            super().__init__()  # pyright: ignore[reportUnknownMemberType]
            self.linear = torch.nn.Linear(512, 512)

        def forward(self, x: Any) -> Any:
            return torch.exp(self.linear(x))

    torch.manual_seed(0)
    model = Scaled().half() if "f16" in options else Scaled()
    example = torch.ones(512, 512, dtype=torch.float16 if "f16" in options else torch.float32)
    ttcodegen.torch.compile(model, (example,), out="out", **options)


def jax_compile(**options: Any) -> None:
    pytest.importorskip("jax.numpy")
    import jax.numpy as jnp

    import ttcodegen.jax

    dtype = np.float16 if "f16" in options else np.float32

    def scaled(weights: Any, x: Any) -> Any:
        return jnp.exp(x @ weights["w"])

    weights = {"w": np.full((512, 512), 0.01, dtype)}
    ttcodegen.jax.compile(scaled, np.ones((512, 512), dtype), out="out", params=weights, **options)


def outcome(compile_: Callable[..., None], options: dict[str, Any], printed: Any) -> Any:
    """The files that a compilation writes and what it prints, or its refusal."""
    before = {path for path in Path().rglob("*") if path.is_file()}
    printed.readouterr()
    try:
        compile_(**options)
    except CompileError as error:
        return str(error)
    files = {str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file() and p not in before}
    for name in files:
        Path(name).unlink()
    shutil.rmtree("out")
    return files, printed.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("compile_", [torch_compile, jax_compile])
def test_each_option_acts_or_is_refused(
    compile_: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("given.json").write_text(DECISIONS)
    plain = outcome(compile_, {}, capsys)
    assert not isinstance(plain, str), plain
    quick = {"format": False}
    unformatted = outcome(compile_, quick, capsys)
    assert not isinstance(unformatted, str), unformatted
    assert unformatted != plain
    ignored = [
        name
        for name, value in VALUES.items()
        if name not in (*OF_EDITS, "format")
        and outcome(compile_, {**quick, **value}, capsys) == unformatted
    ]
    assert ignored == []


def test_each_option_has_a_value() -> None:
    assert ProjectSettings.__annotations__.keys() <= VALUES.keys()


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_parameters_are_options_or_known(name: str) -> None:
    pytest.importorskip(name)
    module = pytest.importorskip(f"ttcodegen.{name}")
    parameters = inspect.signature(module.compile).parameters.values()
    keywords = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}
    of_shapes = {"dynamic_shapes", "lengths", "padding", "static", "params"}
    assert keywords - VALUES.keys() <= NOT_SEEN | of_shapes
