"""manifest.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.optimizer.modules import CHAIN
from ttcodegen import __version__
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.manifest import (
    MANIFEST,
    indented,
    manifest_hashes,
    manifest_text,
    read_manifest,
)
from ttcodegen.systems.releases import DEFAULT_RELEASE


def test_it_describes_the_module(project: Path) -> None:
    manifest = json.loads((project / MANIFEST).read_text())
    assert manifest["tool"] == "ttcodegen"
    assert manifest["tool_version"] == __version__
    assert manifest["tt_metal_release"] == DEFAULT_RELEASE
    assert (manifest["target"], manifest["arch"]) == ("ttnn", "wormhole_b0")
    assert manifest["kernels"] == []
    forward, types = manifest["functions"]
    assert [i["kind"] for i in forward["inputs"]] == ["input", "parameter", "constant"]
    assert forward["inputs"][1] == {
        "name": "layer.weight",
        "cpp_name": "layer_weight",
        "kind": "parameter",
        "shape": [4, 3],
        "dtype": "float32",
        "layout": "tile",
        "buffer_type": "dram",
        "source_dtype": "float32",
        "file": "data/forward.layer_weight.npy",
    }
    assert [o["source_dtype"] for o in types["outputs"]] == ["int64", "bfloat16", "uint16", "bool"]
    assert types["outputs"][3]["dtype"] == "bfloat16"


def test_it_lists_every_file_with_its_hash(project: Path) -> None:
    listed = manifest_hashes(read_manifest(project) or {})
    present = {str(p.relative_to(project)) for p in project.rglob("*") if p.is_file()}
    assert present == {*listed, MANIFEST}
    for path, sha256 in listed.items():
        assert hashlib.sha256((project / path).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"tool": "other"}', "\xff", "[" * 100000])
def test_other_files_are_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text, "latin-1")
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a\0b"])
def test_paths_that_lead_out_of_the_folder_are_ignored(path: str) -> None:
    rows = [{"path": path, "sha256": "0"}, {"path": "src/a.cpp", "sha256": "1"}, 7, {"path": 1}]
    assert manifest_hashes({"files": rows}) == {"src/a.cpp": "1"}
    assert manifest_hashes({"files": 3}) == {}


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_estimates_of_calls_add_up(level: int, arch: str) -> None:
    options = CompileOptions("m", arch=arch, optimize=level)
    description = compile_module(Source("m.mlir", CHAIN), options).description
    (function,) = json.loads(manifest_text(description, {}))["functions"]
    estimate = function["estimate"]
    calls = estimate["ops"]
    assert [c["op"] for c in calls].count("ttnn.matmul") == 2
    assert all(0 <= c["least_us"] <= c["time_us"] for c in calls)
    assert estimate["time_us"] == pytest.approx(sum(c["time_us"] for c in calls), abs=0.01)
    assert sum(estimate["bound_us"].values()) == pytest.approx(estimate["time_us"], abs=0.01)
    assert estimate["l1_bytes"] == max(c["l1_bytes"] for c in calls)


@pytest.mark.parametrize(
    "value",
    [
        *(0, True, None, 1.5, -1e-300, '\u00e9 "}] , :\n', [], {}, [[]], [{}], {"a": {}}, {"": []}),
        {"plain": {"a": 1, "b": "}", "c": None}, "list": [1, 2, "]"], "tuple": (1, 2.5), "end": 3},
        [1, {"nested": [{"deep": [True, [False]]}, "text"]}, [], "\\ \u2028"],
    ],
)
def test_it_is_indented_as_json_is(value: object) -> None:
    assert indented(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_marks_of_direction_in_names_are_escaped() -> None:
    name = "a\\E2\\80\\AE\\C2\\9Bb"
    text = (
        f'func.func @f(%x: tensor<4xf32> {{ttir.name = "{name}"}}) -> tensor<4xf32> {{\n'
        '  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n'
    )
    compiled = compile_module(Source("m.mlir", text), CompileOptions("m"))
    written = manifest_text(compiled.description, {})
    assert "a\\u202e\\u009bb" in written
    assert json.loads(written)["functions"][0]["inputs"][0]["name"] == "a\u202e\x9bb"
