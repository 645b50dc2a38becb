"""Several functions of PyTorch modules in one project: weights and buffers that they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import ttcodegen.torch  # noqa: E402
from ttcodegen.foundation.diagnostics import CompileError  # noqa: E402

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

LENGTH, SIZE = 32, 32


class Store(torch.nn.Module):
    """Keys of a fixed number of positions, and the projection that makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 1, LENGTH, SIZE))
        self.project = torch.nn.Linear(SIZE, SIZE)


class Prefill(torch.nn.Module):
    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store

    def forward(self, x: Any) -> Any:
        keys = self.store.project(x)
        self.store.keys.index_copy_(2, torch.arange(x.shape[2]), keys)
        return keys.sum(-1)


class Decode(torch.nn.Module):
    def __init__(self, store: Store) -> None:
        super().__init__()
        self.inner = store

    def forward(self, x: Any, place: Any) -> Any:
        self.inner.keys.index_copy_(2, place, self.inner.project(x))
        return {"sums": self.inner.keys.sum(-1)}


class Total(torch.nn.Module):
    """Reads what the others write, and has a weight like one of theirs."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.project = torch.nn.Linear(SIZE, SIZE)

    def forward(self, x: Any) -> Any:
        return self.project(x) + self.store.keys.sum()


def functions() -> dict[str, Any]:
    torch.manual_seed(0)
    store = Store()
    x, row = torch.randn(2, 1, 8, SIZE), torch.randn(2, 1, 1, SIZE)
    return {
        "prefill": (Prefill(store).eval(), (x,)),
        "decode": (Decode(store).eval(), (row, torch.tensor([8]))),
        "total": (Total(store).eval(), (torch.randn(1, SIZE),)),
    }


def test_what_is_one_tensor_is_stored_once(tmp_path: Path) -> None:
    out = ttcodegen.torch.compile(functions(), tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    assert sorted(path.name for path in (out / "data").iterdir()) == [
        "project_bias.npy",
        "project_weight.npy",
        "store_project_bias.npy",
        "store_project_weight.npy",
    ]
    files = {
        (row["name"], each["name"]): each["file"]
        for row in manifest["functions"]
        for each in row["inputs"]
        if "file" in each
    }
    shared = files["prefill", "store.project.weight"]
    assert files["decode", "inner.project.weight"] == shared
    assert files["total", "project.weight"] != shared
    (keys,) = manifest["state"]
    assert keys["inputs"] == {
        "prefill": "store.keys",
        "decode": "inner.keys",
        "total": "store.keys",
    }
    assert keys["outputs"] == {"prefill": "new.store.keys", "decode": "new.inner.keys"}


def test_equal_weights_of_modules_of_their_own_stay_apart(tmp_path: Path) -> None:
    def norm() -> Any:
        return torch.nn.Sequential(torch.nn.LayerNorm(SIZE)).eval()

    x = torch.ones(2, SIZE)
    first = torch.nn.ModuleDict({"first": norm()})
    first.forward = lambda x: first["first"](x)
    out = ttcodegen.torch.compile({"f": (first, (x,)), "g": (norm(), (x,))}, out=tmp_path / "out")
    # Names that differ mean tensors that differ, although all of them are ones.
    names = {path.name for path in (out / "data").iterdir()}
    assert len([name for name in names if "weight" in name]) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no functions"),
        ({"f": torch.nn.Linear(2, 2)}, "'f': expected a module and a tuple of its arguments"),
        ({"f": (torch.nn.Linear(2, 2), torch.ones(2))}, "expected a module and a tuple"),
    ],
)
def test_what_is_no_function_is_refused(given: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=message):
        ttcodegen.torch.compile(given, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_arguments_by_name_is_refused() -> None:
    with pytest.raises(CompileError, match="dictionary of arguments by name, found str") as caught:
        ttcodegen.torch.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), "model.mlir")  # pyright: ignore[reportArgumentType]
    assert "out=" in str(caught.value)


@pytest.mark.slow
def test_functions_share_buffers_and_weights(tmp_path: Path) -> None:
    modules = functions()
    row, x = torch.randn(2, 1, 1, SIZE), modules["total"][1][0]
    step = ("decode", (row, torch.tensor([9])))
    out = ttcodegen.torch.compile(modules, tmp_path / "out", check=True, steps=[step])
    report = json.loads((out / "check.json").read_text())
    assert report["passed"]
    assert [call["call"] for call in report["calls"] if call["name"] == "sums"] == [1, 3]
    assert not modules["prefill"][0].store.keys.any()  # The check leaves them as they were.
    with ttcodegen.load(out) as model, torch.no_grad():
        before = model.total(x.numpy())
        np.testing.assert_allclose(before, modules["total"][0](x), atol=0.05)
        for name in ("prefill", "decode"):
            module, args = modules[name]
            found, expected = getattr(model, name)(*(each.numpy() for each in args)), module(*args)
            pairs = (
                [(found, expected)] if name == "prefill" else [(found["sums"], expected["sums"])]
            )
            for first, second in pairs:
                np.testing.assert_allclose(first, second, atol=0.1)
        np.testing.assert_allclose(model.total(x.numpy()), modules["total"][0](x), atol=0.5)
        assert np.abs(model.total(x.numpy()) - before).max() > 1
        keys = modules["prefill"][0].store.keys
        np.testing.assert_allclose(model.state.values()["store.keys"], keys, atol=0.02)
        # Buffers that the caller gives are no part of the state.
        given = {"inner.keys": np.ones_like(keys)}
        sums, changed = model.decode(row.numpy(), np.array([0]), buffers=given)
        np.testing.assert_allclose(sums["sums"][:, :, 1:], SIZE)
        assert sorted(changed) == ["inner.keys"]
        np.testing.assert_allclose(model.state.values()["store.keys"], keys, atol=0.02)
        model.state.reset()
        np.testing.assert_allclose(model.total(x.numpy()), before)
        model.set_weight("store.project.weight", np.zeros((SIZE, SIZE)))
        model.set_weight("store.project.bias", np.ones(SIZE))
        np.testing.assert_allclose(model.prefill(np.ones((2, 1, 8, SIZE))), SIZE, rtol=1e-3)
        np.testing.assert_allclose(
            model.decode(row.numpy(), np.array([8]))["sums"][:, :, :9], SIZE, rtol=1e-3
        )
