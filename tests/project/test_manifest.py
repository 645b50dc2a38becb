"""manifest.json."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ttcodegen import __version__
from ttcodegen.project.manifest import MANIFEST, manifest_hashes, read_manifest


def test_it_describes_the_module(project: Path) -> None:
    manifest = json.loads((project / MANIFEST).read_text())
    assert manifest["tool"] == "ttcodegen"
    assert manifest["tool_version"] == __version__
    assert manifest["tt_metal_release"] == "0.70.1"
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
