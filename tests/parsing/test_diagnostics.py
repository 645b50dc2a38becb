"""Diagnostics: places, text, and reading of files."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.parsing.reading import T, body, failure
from ttcodegen.foundation.diagnostics import (
    CompileError,
    Diagnostic,
    Diagnostics,
    Note,
    Severity,
    Source,
    SourceLocation,
    copy_source_offset,
    place_of,
    set_source_offset,
    source_offset,
)

SOURCE = Source("in.mlir", "first\n\tsecond line\r\nthird")


@pytest.mark.parametrize(
    ("offset", "line", "column"),
    [(0, 1, 1), (5, 1, 6), (6, 2, 1), (8, 2, 3), (20, 3, 1), (25, 3, 6), (1000, 3, 6), (-1, 1, 1)],
)
def test_offsets_become_lines_and_columns(offset: int, line: int, column: int) -> None:
    assert SOURCE.location(offset) == SourceLocation("in.mlir", line, column)


def test_lines_have_no_ends() -> None:
    assert [SOURCE.line(number) for number in (0, 1, 2, 3, 4)] == [
        "",
        "first",
        "\tsecond line",
        "third",
        "",
    ]


def test_a_diagnostic_shows_line_caret_notes_and_remedy() -> None:
    diagnostic = Diagnostic(
        "wrong", 14, remedy="do it right", notes=(Note("see", 0), Note("and know"))
    )
    assert diagnostic.render(SOURCE).splitlines() == [
        "in.mlir:2:9: error: wrong",
        "\tsecond line",
        "\t       ^",
        "in.mlir:1:1: note: see",
        "first",
        "^",
        "in.mlir: note: and know",
        "note: do it right",
    ]


def test_places_without_a_source() -> None:
    assert Diagnostic("wrong", 3).render() == "error: wrong"
    assert (
        Diagnostic("wrong", severity=Severity.WARNING).render(SOURCE) == "in.mlir: warning: wrong"
    )
    elsewhere = SourceLocation("other.mlir", 3, 4)
    assert Diagnostic("wrong", elsewhere).render(SOURCE) == "other.mlir:3:4: error: wrong"


@pytest.mark.parametrize("offset", [0, 5, 5_000, 999_999])
def test_long_lines_are_shown_around_the_place(offset: int) -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(1_000_000))
    _, line, caret = Diagnostic("wrong", offset).render(Source("f", text)).splitlines()
    assert len(line) == 120
    assert line[caret.index("^")] == text[offset]


def test_what_does_not_print_does_not_reach_the_terminal() -> None:
    text = Diagnostic("wrong", 2).render(Source("f", "a\x1b[31m\x07b"))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_an_error_carries_many_diagnostics() -> None:
    error = CompileError.from_diagnostics([Diagnostic("one", 0), Diagnostic("two", 6)])
    assert str(error) == "one"
    assert [line for line in error.render(SOURCE).splitlines() if "error" in line] == [
        "in.mlir:1:1: error: one",
        "in.mlir:2:1: error: two",
    ]
    with pytest.raises(ValueError, match="at least one"):
        CompileError.from_diagnostics([])


def test_a_collector_raises_errors_and_keeps_warnings() -> None:
    found = Diagnostics()
    found.warn("careful", 0)
    found.raise_errors()
    found.error("wrong", 6, remedy="mend it")
    with pytest.raises(CompileError) as caught:
        found.raise_errors()
    assert [diagnostic.message for diagnostic in caught.value.diagnostics] == ["wrong"]
    stream = io.StringIO()
    found.write(stream, SOURCE)
    assert stream.getvalue().startswith(
        "in.mlir:1:1: warning: careful\nfirst\n^\nin.mlir:2:1: error:"
    )
    assert [diagnostic.message for diagnostic in found.warnings] == ["careful"]


def test_operations_remember_their_offset() -> None:
    from xdsl.dialects.func import ReturnOp

    origin, created, other = ReturnOp(), ReturnOp(), ReturnOp()
    set_source_offset(origin, 6)
    copy_source_offset(origin, created)
    assert source_offset(created) == 6
    assert place_of(created) == 6
    assert source_offset(other) is None
    assert CompileError("wrong", created).render(SOURCE).startswith("in.mlir:2:1: error: wrong")


def test_files_are_read_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "in.mlir"
    path.write_bytes("\ufeffcafé".encode())
    assert Source.read(str(path)).text == "café"


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"module {}")))
    source = Source.read("-")
    assert (source.name, source.text) == ("<stdin>", "module {}")


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.mlir", "nul\0byte"):
        with pytest.raises(CompileError, match="cannot read"):
            Source.read(str(path))


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"module {\n  \xff }", "bytes:2:3", "not UTF-8 text: invalid byte 0xff"),
        ("\ncaf\u00e9".encode("latin-1"), "bytes:2:4", "not UTF-8 text: invalid byte 0xe9"),
        (b"TTNN\x00\x01", "bytes:1:5", "binary data, not text"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, place: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        Source.from_bytes("bytes", data)
    text = caught.value.render()
    assert text.startswith(f"{place}: error: the input is ")
    assert message in text
    assert "note: give MLIR as text or as bytecode" in text


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'func.func @"\FF"() { return }', "1:12: error: a name is not UTF-8 text"),
        (
            f"func.func @f(%a: tensor<4x{DIGITS}xf32>) {{ return }}",
            "1:27: error: a number has too many digits",
        ),
        (
            f"func.func @f(%a: tensor<4xi{DIGITS}>) {{ return }}",
            "1:27: error: integers have at most 16777215 bits",
        ),
        (
            "func.func @f(%a: tensor<4xsi16777216>) { return }",
            "1:27: error: integers have at most 16777215 bits",
        ),
        (
            body(f'%0 = "ttir.exp"(%a#{DIGITS}) : ({T}) -> {T}'),
            "2:22: error: a number has too many digits",
        ),
        (
            body(f'%0 = "ttir.exp"(%a) : ({T}) -> {T} loc("x":{DIGITS}:1)'),
            "error: a number has too many digits",
        ),
        (
            body('%0 = "ttir.exp"(%a) {x = array<i0: 1>} : (i32) -> i32'),
            "2:38: error: constants of type i0 are not supported",
        ),
        (
            body('%0 = "ttir.constant"() <{value = dense<1> : tensor<4xi0>}> : () -> i32'),
            "2:42: error: constants of type i0 are not supported",
        ),
        (
            f"func.func @f(%a: tensor<4x!quant.uniform<i{DIGITS}:f32, 0.1>>) {{ return }}",
            "error: elements of type !quant.uniform",
        ),
    ],
)
def test_what_xdsl_only_converts_has_a_message_of_its_own(text: str, message: str) -> None:
    found = failure(text)
    assert message in found
    assert "malformed input" not in found
