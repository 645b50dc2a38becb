"""Each option and setting of the explorer has an effect, or is refused."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_options_act import outcome
from tests.explorer.test_graphs import MODEL
from ttcodegen.cli import explorer
from ttcodegen.explorer import server, session, workers
from ttcodegen.explorer.access import Access
from ttcodegen.explorer.session import Session
from ttcodegen.explorer.stages import Settings, read_settings
from ttcodegen.foundation.diagnostics import CompileError


class _Workers:
    """No processes."""

    def warm_up(self) -> None: ...

    def wait_until_warm(self) -> None: ...

    def close(self) -> None: ...


class _Server:
    """A server that prints what it is started with, and ends at once."""

    def __init__(self, session: Session, host: str, port: int, **settings: Any) -> None:
        print(vars(session)["_settings"], host, port, settings)

    def start(self) -> None: ...

    def wait(self) -> None: ...

    def close(self) -> None: ...

    def address(self, shown: Path | None, stages: list[str]) -> str:
        return f"http://{shown}/{stages}"

    def own_address(self, shown: Path | None) -> str:
        return f"http://{shown}"


def _names(_session: Session, _model: Path, names: list[str]) -> list[str]:
    return names


def _same(_access: Access, address: str) -> str:
    return address


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    monkeypatch.setattr(server, "Server", _Server)
    monkeypatch.setattr(workers, "Workers", _Workers)
    monkeypatch.setattr(session.Session, "graphs_of_stages", _names)
    monkeypatch.setattr(Access, "page_to", _same)
    monkeypatch.setattr("webbrowser.open_new_tab", print)
    return tmp_path


VALUES = {
    "-p": ["9000"],
    "-u": ["0.0.0.0"],
    "--arch": ["blackhole"],
    "--system-desc": ["p150"],
    "--optimize": ["1"],
    "--target": ["ttmetal"],
    "--stages": ["source,emitc"],
    "--log-level": ["ERROR"],
}


def test_options_of_the_command_line_act(folder: Path) -> None:
    plain = outcome(explorer.main, ["model.mlir"])
    assert plain[0] == 0, plain[2]
    ignored: list[str] = []
    for action in explorer.argument_parser()._actions:
        if not action.option_strings or {*action.option_strings} & {"-v", "--log-level"}:
            continue
        name = action.option_strings[0]
        if outcome(explorer.main, ["model.mlir", name, *VALUES.get(name, [])]) == plain:
            ignored.append(name)
    assert not ignored


def test_a_level_for_device_programs_is_refused(folder: Path) -> None:
    status, _, printed = outcome(
        explorer.main, ["model.mlir", "--target", "ttmetal", "--optimize", "1"]
    )
    assert status == 1
    assert "no optimizer" in printed


SETTINGS: dict[str, Any] = {
    "target": "ttmetal",
    "arch": "blackhole",
    "machine": "p150",
    "optimize": 1,
    "weights": "bfp8_b",
    "activations": "bfp8_b",
    "seed": 3,
    "const_element_count_limit": 3,
    "stages": True,
    "artifact_dir": "results",
    "ttir_to_ttnn_options": ["optimization-level=1"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_act(name: str) -> None:
    assert read_settings({name: SETTINGS[name]}, Settings()) != Settings()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "ttmetal", "optimize": 2}, "'optimize' is for calls of the ttnn library"),
        (
            {"target": "ttmetal", "ttir_to_ttnn_options": ["optimization-level=1"]},
            "'ttir_to_ttnn_options' is for calls",
        ),
        ({"optimise": 2}, "there is no setting 'optimise'"),
        ({"const_element_count": 2}, "there is no setting 'const_element_count'"),
    ],
)
def test_settings_without_effect_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        read_settings(settings, Settings())


@pytest.mark.parametrize("settings", [{"edge_label_font_size": 7.5}, {"target": "ttmetal"}])
def test_settings_of_the_page_are_taken(settings: dict[str, Any]) -> None:
    read_settings(settings, Settings())


def test_each_setting_is_known() -> None:
    fields = {*asdict(Settings())} - {"override_options", "system"}
    assert fields <= SETTINGS.keys()
