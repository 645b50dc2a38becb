"""clang-format: whole files, long files in pieces, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.diagnostics import CompileError
from ttcodegen.emitc import formatting
from ttcodegen.emitc.formatting import format_files, start_formatting

STYLE = "BasedOnStyle: Google\nIndentWidth: 4\nAccessModifierOffset: -2\nColumnLimit: 100\n"


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
    monkeypatch.setattr(formatting, "_PIECE_SIZE", 10**9)
    whole = format_files({"f.cpp": text}, STYLE)["f.cpp"]
    monkeypatch.setattr(formatting, "_PIECE_SIZE", 8_000)
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
    folder = Path(running._folder.name)
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
