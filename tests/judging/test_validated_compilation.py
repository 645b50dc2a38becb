"""Searches around what the library refuses: `--validate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.optimizer.modules import CHAIN, DECODING, compiled, entry
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions
from ttcodegen.dialects.ttnn.program_configs import MatmulProgramConfig
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Severity, Source
from ttcodegen.judging.library import VARIABLE
from ttcodegen.judging.python_calls import steps
from ttcodegen.judging.validated_compilation import compile_validated, search_accepted
from ttcodegen.optimizer.beam_search import Search
from ttcodegen.optimizer.refused_choices import Choice, read_refused, refused_text
from ttcodegen.systems.releases import DEFAULT_RELEASE

TWO_DIMENSIONS = "MatmulMultiCoreReuseMultiCastProgramConfig"

Step = Mapping[str, Any]


class Library:
    """A library that refuses some calls, and counts what it is asked."""

    def __init__(self, refuses: Callable[[Step], bool]) -> None:
        self.refuses = refuses
        self.asked = 0

    def answers(self, calls: Sequence[Step]) -> list[dict[str, Any]]:
        self.asked += 1
        found: list[dict[str, Any]] = []
        for index, step in enumerate(calls):
            answer: dict[str, Any] = {"index": index}
            if step["callee"] not in (None, "deallocate", "take") and self.refuses(step):
                answer["refused"] = "TT_FATAL @ op.cpp:1\ninfo:\nnot like this"
            found.append(answer)
        return found


def program_of(step: Step) -> str | None:
    """The program configuration of a call."""
    config = step["keywords"].get("program_config")
    return config["program"][0] if config else None


def searched(
    text: str, library: Library, **options: Any
) -> tuple[list[dict[str, Any]], Diagnostics]:
    """The calls that are left, and the notes."""
    diagnostics = Diagnostics()
    given = CompileOptions("m", optimize=2, **options)
    source = Source("m.mlir", text)
    module = search_accepted(source, given, lambda binary: library.answers, diagnostics=diagnostics)
    return steps(entry(module)), diagnostics


def test_what_is_accepted_is_compiled_as_without_a_library() -> None:
    library = Library(lambda step: False)
    diagnostics = Diagnostics()
    module = search_accepted(
        Source("m.mlir", CHAIN),
        CompileOptions("m", optimize=2),
        lambda binary: library.answers,
        diagnostics=diagnostics,
    )
    assert library.asked == 1
    assert not diagnostics.diagnostics
    plain = compiled(CHAIN, 2)
    assert read_ttnn(module.flatbuffer) == read_ttnn(plain.flatbuffer)
    assert module.files == plain.files


def test_a_refused_configuration_is_not_chosen_for_that_call_again() -> None:
    plain = [s for s in steps(entry(compiled(CHAIN, 2))) if s["callee"] == "matmul"]
    assert TWO_DIMENSIONS in {program_of(step) for step in plain}
    library = Library(lambda step: program_of(step) == TWO_DIMENSIONS)
    left, diagnostics = searched(CHAIN, library)
    products = [step for step in left if step["callee"] == "matmul"]
    assert len(products) == len(plain)
    assert TWO_DIMENSIONS not in {program_of(step) for step in products}
    assert library.asked > 1
    notes = diagnostics.diagnostics
    assert {note.severity for note in notes} == {Severity.NOTE}
    [scores] = [note for note in notes if "'scores'" in note.message]
    assert "the library refuses 'scores' as " in scores.message
    assert "ReuseMultiCast" in scores.message
    assert "not like this" in scores.message
    assert scores.remedy is not None
    assert scores.remedy.startswith("it is ")
    assert ".mlir:5:" in scores.render(Source("m.mlir", CHAIN))


def test_a_refusal_of_one_call_leaves_the_others_alone() -> None:
    plain = compiled(CHAIN, 2)
    first = next(s for s in steps(entry(plain)) if s["callee"] == "matmul")
    width = first["results"][0]["type"]["shape"]

    def refuses(step: Step) -> bool:
        return (
            step["callee"] == "matmul"
            and program_of(step) == TWO_DIMENSIONS
            and step["results"][0]["type"]["shape"] == width
        )

    left, diagnostics = searched(CHAIN, Library(refuses))
    assert len(diagnostics.diagnostics) == 1
    products = {
        tuple(s["results"][0]["type"]["shape"]): program_of(s)
        for s in left
        if s["callee"] == "matmul"
    }
    assert products[tuple(width)] != TWO_DIMENSIONS
    assert TWO_DIMENSIONS in products.values()


def test_a_call_that_is_refused_in_every_form_is_an_error() -> None:
    library = Library(lambda step: step["callee"] == "multiply")
    with pytest.raises(CompileError) as caught:
        searched(CHAIN, library)
    [error] = caught.value.diagnostics
    assert "the library refuses 'squared' in " in error.message
    assert "ttnn.multiply: not like this" in error.message
    assert error.remedy is not None
    assert "m.mlir:4:" in error.render(Source("m.mlir", CHAIN))


def test_a_refused_move_excludes_the_form_that_it_was_made_for() -> None:
    text = DECODING
    moves = [s for s in steps(entry(compiled(text, 2))) if s["callee"] == "to_memory_config"]
    assert moves
    places = [move["results"][0]["type"]["memory"] for move in moves]

    def refuses(step: Step) -> bool:
        return (
            step["callee"] == "to_memory_config"
            and step["results"][0]["type"]["memory"] == places[0]
        )

    left, diagnostics = searched(text, Library(refuses))
    assert not any(refuses(step) for step in left)
    assert diagnostics.diagnostics


def test_a_result_that_differs_counts_as_a_refusal() -> None:
    class Other(Library):
        def answers(self, calls: Sequence[Step]) -> list[dict[str, Any]]:
            found = super().answers(calls)
            for step, answer in zip(calls, found, strict=True):
                answer["results"] = [one["type"] for one in step["results"]]
                if program_of({"keywords": {}, **step}) == TWO_DIMENSIONS:
                    answer["results"] = [{**one, "shape": [1]} for one in answer["results"]]
            return found

    left, diagnostics = searched(CHAIN, Other(lambda step: False))
    assert TWO_DIMENSIONS not in {program_of(s) for s in left if s["callee"] == "matmul"}
    assert any("its result is" in note.message for note in diagnostics.diagnostics)


def test_refused_choices_are_read_as_they_were_written() -> None:
    choices = [Choice("main", "a", "matmul-1", ""), Choice("main", "a", "matmul-2", "")]
    assert read_refused(refused_text(choices)) == {
        ("main", "a"): frozenset({"matmul-1", "matmul-2"})
    }
    for wrong in ("{", "7", '[["main", "a"]]', '[["main", 1, "b"]]'):
        with pytest.raises(CompileError):
            read_refused(wrong)


def refusing(config: str, folder: Path) -> str:
    """A Python whose package refuses calls with a program configuration."""
    python = folder / "python"
    python.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "if sys.argv[1] == '-c':\n"
        f"    sys.exit(print({DEFAULT_RELEASE!r}))\n"
        "for index, step in enumerate(json.load(open(sys.argv[-1]))):\n"
        f"    refused = {{'refused': 'TT_FATAL: no'}} if {config!r} in json.dumps(step) else {{}}\n"
        "    print(json.dumps({'index': index, **refused}))\n"
    )
    python.chmod(0o755)
    return str(python)


def test_the_command_line_asks_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    Path("m.mlir").write_text(CHAIN)
    given = ["m.mlir", "-o", "out", "--optimize", "2", "--validate"]
    assert main([*given, "--python", refusing(TWO_DIMENSIONS, tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "note: the library refuses 'scores' as" in said
    assert "note: it is" in said
    assert f"{TWO_DIMENSIONS}{{" not in Path("out/src/tuning.hpp").read_text()
    # The environment names a package, too.
    monkeypatch.setenv(VARIABLE, refusing(TWO_DIMENSIONS, tmp_path))
    assert main([*given, "--force"]) == 0
    assert "the library refuses 'scores'" in capsys.readouterr().err


def test_without_a_package_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    Path("m.mlir").write_text(CHAIN)
    assert main(["m.mlir", "-o", "out", "--optimize", "2", "--validate"]) == 1
    said = capsys.readouterr().err
    assert "there is no Python with the package 'ttnn'" in said
    assert "--python" in said
    assert not Path("out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("text", [CHAIN, DECODING], ids=["chain", "decoding"])
def test_the_real_library_accepts_what_is_compiled(text: str, ttnn_python: str) -> None:
    diagnostics = Diagnostics()
    options = CompileOptions("m", optimize=2)
    module = compile_validated(
        Source("m.mlir", text), options, ttnn_python, diagnostics=diagnostics
    )
    assert module.flatbuffer == compiled(text, 2).flatbuffer
    assert not diagnostics.diagnostics


@pytest.mark.slow
def test_a_form_that_the_real_library_refuses_is_replaced(
    ttnn_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search is made to prefer blocks that do not divide the inner dimension."""
    priced = Search._priced

    def with_wrong_blocks(self: Search, *given: Any) -> Any:
        found = priced(self, *given)
        wrong: list[Any] = []
        for candidate, cost in found:
            config = candidate.attributes.get("matmul_program_config")
            if isinstance(config, MatmulProgramConfig) and not wrong:
                attributes = {"matmul_program_config": replace(config, in0_block_w=7)}
                attributes = {**candidate.attributes, **attributes}
                free = replace(cost, seconds=0.0)
                wrong.append((replace(candidate, attributes=attributes), free))
        return [*wrong, *found]

    monkeypatch.setattr(Search, "_priced", with_wrong_blocks)
    wrong = json.dumps([step["keywords"] for step in steps(entry(compiled(CHAIN, 2)))])
    assert '"in0_block_w": 7' in wrong
    diagnostics = Diagnostics()
    module = compile_validated(
        Source("m.mlir", CHAIN),
        CompileOptions("m", optimize=2),
        ttnn_python,
        diagnostics=diagnostics,
    )
    left = json.dumps([step["keywords"] for step in steps(entry(module))])
    assert '"in0_block_w": 7' not in left
    assert any("the library refuses" in each.message for each in diagnostics.diagnostics)
