"""The stock package of Model Explorer loads the adapter, and its page comes from our server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explorer.test_graphs import MODEL

pytest.importorskip("model_explorer", reason="needs the extra explorer")


def test_the_stock_package_runs_the_commands(tmp_path: Path) -> None:
    from model_explorer.extension_manager import ExtensionManager

    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    manager = ExtensionManager(["ttcodegen.explorer"])
    manager.load_extensions()
    command = {
        "extensionId": "ttcodegen",
        "cmdId": "convert",
        "modelPath": str(path),
        "settings": {"stages": False},
        "deleteAfterConversion": False,
    }
    (graph,) = manager.run_cmd(command)["graphs"]
    assert graph["id"] == "model"
    assert graph["nodes"][0]["id"] == "input:x"
    (reported,) = manager.run_cmd({**command, "cmdId": "initialize"})["graphs"]
    assert Path(reported["system_desc_path"]).is_file()
    pairs = [{"key": "memory", "value": "l1"}]
    settings = {"overrides": {"scores": {"attributes": pairs}}}
    (reported,) = manager.run_cmd({**command, "cmdId": "override", "settings": settings})["graphs"]
    assert reported == {"success": True}
    (reported,) = manager.run_cmd({**command, "cmdId": "overrides"})["graphs"]
    assert reported["functions"]["*"]["scores"] == {"memory": "l1"}


def test_the_page_of_the_package_is_found() -> None:
    from ttcodegen.explorer.server import web_folder

    folder = web_folder()
    assert folder is not None
    assert (folder / "index.html").is_file()
