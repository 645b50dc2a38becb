"""clang-format: whole files, long files in pieces, failures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ttcodegen.emitc import formatting
from ttcodegen.emitc.formatting import Piece, format_files, start_formatting
from ttcodegen.foundation.diagnostics import CompileError

STYLE = "BasedOnStyle: Google\nIndentWidth: 4\nAccessModifierOffset: -2\nColumnLimit: 100\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for formatted texts, which holds none yet."""
    monkeypatch.setenv("TTCODEGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ttcodegen" / "formatted"


def long_text(functions: int) -> str:
    statements = "".join(
        f"    // layers.{n}\n    ttnn::Tensor hidden_{n} = ttnn::linear(inputs.x, "
        f"weights.weight_{n}, weights.bias_{n}, false, false, kDram, ttnn::DataType::BFLOAT16, "
        f"std::nullopt);\n"
        for n in range(10)
    )
    bodies = "".join(
        f"// layer {n}\nttnn::Tensor layer_{n}(const Inputs& inputs, const Weights& weights, "
        f"ttnn::MeshDevice* /*device*/) {{\n{statements}    return hidden_9;\n}}\n\n"
        for n in range(functions)
    )
    return f"#include <b>\n#include <a>\n\nnamespace model {{\n\n{bodies}}}  // namespace model\n"


def test_long_calls_are_wrapped() -> None:
    arguments = ["argument_" + "x" * 19] * 4
    text = f"void f() {{\n    call({', '.join(arguments)});\n}}\n"
    lines = format_files({"f.cpp": text}, STYLE)["f.cpp"].splitlines()
    assert lines[0] == "void f() {"
    assert lines[1] == f"    call({', '.join(arguments[:3])},"
    assert lines[2] == f"         {arguments[3]});"


def test_files_keep_their_order_and_paths() -> None:
    files = {"src/b.cpp": "int  x;\n", "src/a.hpp": "int  y;\n"}
    formatted = format_files(files, STYLE)
    assert list(formatted.items()) == [("src/b.cpp", "int x;\n"), ("src/a.hpp", "int y;\n")]


def test_formatting_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "clang_format_binary", lambda: "/nowhere/clang-format")
    assert format_files({"f.cpp": "int  x;\n"}, STYLE, enabled=False) == {"f.cpp": "int  x;\n"}


def test_pieces_of_a_long_file_are_formatted_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    text = long_text(30)
    monkeypatch.setattr(formatting, "PIECE_SIZE", 10**9)
    whole = format_files({"f.cpp": text}, STYLE)["f.cpp"]
    monkeypatch.setattr(formatting, "PIECE_SIZE", 8_000)
    assert format_files({"f.cpp": text}, STYLE)["f.cpp"] == whole
    assert len([piece for piece, format_it in formatting._split(text) if format_it]) > 3


def test_the_header_of_a_source_file_comes_first() -> None:
    files = {f"{folder}/model.cpp": '#include <a>\n#include "model.hpp"\n' for folder in "xy"}
    expected = '#include "model.hpp"\n\n#include <a>\n'
    assert format_files(files, STYLE) == dict.fromkeys(files, expected)


def test_texts_that_are_empty_or_not_ascii() -> None:
    files = {"a.cpp": "", "b.cpp": "// \u00e9\r\n"}
    assert format_files(files, STYLE) == files


def test_formatting_an_already_formatted_text_changes_nothing() -> None:
    once = format_files({"f.cpp": long_text(2)}, STYLE)
    assert format_files(once, STYLE) == once


def test_a_missing_clang_format_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    formatting.clang_format_binary.cache_clear()
    monkeypatch.setattr(formatting.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match="clang-format was not found") as error:
        format_files({"f.cpp": "int x;\n"}, STYLE)
    assert "--no-format" in (error.value.diagnostics[0].remedy or "")
    formatting.clang_format_binary.cache_clear()


def test_a_style_that_clang_format_refuses_is_said_so() -> None:
    with pytest.raises(CompileError, match=r"(?s)clang-format failed on f\.cpp: .*IndentWidth"):
        format_files({"f.cpp": "int x;\n"}, "IndentWidth: wide\n")


def test_a_clang_format_that_does_not_run_is_said_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "clang-format"
    broken.write_text("no program")
    monkeypatch.setattr(formatting, "clang_format_binary", lambda: str(broken))
    with pytest.raises(CompileError, match=r"clang-format did not run on f\.cpp"):
        format_files({"f.cpp": "int x;\n"}, STYLE)


def test_an_abandoned_formatting_leaves_nothing_behind() -> None:
    running = start_formatting({"f.cpp": long_text(3)}, STYLE)
    assert running._formatted is not None
    folder = Path(running._formatted._folder.name)
    assert folder.exists()
    running.close()
    assert not folder.exists()


def test_what_is_marked_as_unformatted_stays() -> None:
    table = "// clang-format off\nint  table[] = {\n  1,\n};\n// clang-format on\n"
    text = f"#include <a>\n\n// rows\n{table}\nint  x;\n\n\n{table}"
    expected = f"#include <a>\n\n// rows\n{table}\nint x;\n\n\n{table}"
    assert format_files({"f.cpp": text}, STYLE) == {"f.cpp": expected}
    formatted = [piece for piece, format_it in formatting._split(text) if format_it]
    assert formatted
    assert not any("table" in piece for piece in formatted)


def broken_binary(tmp_path: Path) -> str:
    """A clang-format that fails whatever it is given."""
    binary = tmp_path / "clang-format"
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    return str(binary)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Records the number of pieces that each process started from now on formats."""
    counts: list[int] = []
    start = formatting._Process.__init__

    def started(
        self: formatting._Process,
        command: Sequence[str],
        pieces: Sequence[Piece],
        files: Sequence[Path],
    ) -> None:
        counts.append(len(pieces))
        start(self, command, pieces, files)

    monkeypatch.setattr(formatting._Process, "__init__", started)
    return counts


def test_only_what_changed_is_formatted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.cpp": "int  x;\n", "b.cpp": "int  y;\n"}
    first = format_files(files, STYLE)
    counts = counted(monkeypatch)
    assert format_files(files, STYLE) == first
    assert counts == []
    again = format_files(files | {"b.cpp": "int  z;\n"}, STYLE)
    assert again == {"a.cpp": "int x;\n", "b.cpp": "int z;\n"}
    assert counts == [1]


def test_another_style_name_or_clang_format_finds_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = '#include <a>\n#include "b.h"\nvoid f() {\n  g();\n  h();\n}\n'
    format_files({"b.cpp": text}, STYLE)
    counts = counted(monkeypatch)
    narrow = format_files({"b.cpp": text}, STYLE.replace("IndentWidth: 4", "IndentWidth: 2"))
    assert "\n  g();" in narrow["b.cpp"]
    assert format_files({"c.cpp": text}, STYLE)["c.cpp"].startswith("#include <a>")
    assert format_files({"b.cpp": text}, STYLE)["b.cpp"].startswith('#include "b.h"')
    assert counts == [1, 1]
    monkeypatch.setattr(formatting, "clang_format_binary", lambda: broken_binary(tmp_path))
    with pytest.raises(CompileError, match="clang-format failed"):
        format_files({"b.cpp": text}, STYLE)


@pytest.mark.parametrize("damage", [b"", b"int", b"0123int q;\n"])
def test_a_damaged_text_is_formatted_again(cache: Path, damage: bytes) -> None:
    format_files({"a.cpp": "int  x;\n"}, STYLE)
    (kept,) = cache.iterdir()
    kept.write_bytes(damage)
    assert format_files({"a.cpp": "int  x;\n"}, STYLE) == {"a.cpp": "int x;\n"}


def test_a_cache_that_cannot_be_written_costs_only_the_time(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    assert format_files({"a.cpp": "int  x;\n"}, STYLE) == {"a.cpp": "int x;\n"}


def test_texts_that_were_not_used_for_long_go_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_files({"a.cpp": "int  x;\n"}, STYLE)
    (first,) = cache.iterdir()
    os.utime(first, (0, 0))
    monkeypatch.setattr(formatting, "_MOST_BYTES", 30)
    format_files({"a.cpp": "int  y;\n"}, STYLE)
    assert first.exists()
    format_files({"a.cpp": "int  z;\n"}, STYLE)
    assert not first.exists()
    assert len(list(cache.iterdir())) == 1
