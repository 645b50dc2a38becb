"""Compilation in which the library refuses choices of the optimizer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ttcodegen.compilation import CompiledModule, CompileOptions
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.reader import read_ttnn
from ttcodegen.flatbuffer.system import system_of
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Diagnostics, Severity, Source
from ttcodegen.judging.library import Libraries, memory_limit, python_of_release
from ttcodegen.judging.programs import all_of, mocked_command, program_groups
from ttcodegen.judging.python_calls import joined_steps
from ttcodegen.optimizer.refused_choices import NONE_REFUSED, Choice, refused_text
from ttcodegen.staged_compilation import compile_stages

if TYPE_CHECKING:
    from ttcodegen.transforms.pass_runner import PassRunner

_MOST_SHOWN = 200
"""Limit on the characters of the library's message that are shown."""

Answers = Callable[[Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
"""Answers the library's calls, given as a list of steps."""


@dataclass(frozen=True)
class Refusal:
    """Call of a program that the library refuses."""

    program: str
    index: int
    """Index of the operation in its program."""
    op: str
    reason: str


def refusals(binary: file.Binary, answers: Answers) -> Iterator[Refusal]:
    """Refused calls of a flatbuffer, and calls whose results differ from those it states.

    Args:
        binary: the flatbuffer.
        answers: makes calls with the library.
    """
    for programs in program_groups(binary):
        joined = joined_steps(programs)
        said = iter(answers(all_of(joined)))
        for program, steps in zip(programs, joined, strict=True):
            for index, (step, answer) in enumerate(zip(steps, said, strict=False), -1):
                reason = answer.get("refused")
                if reason is None:
                    results = zip(step["results"], answer.get("results") or (), strict=False)
                    differing = [(one["type"], found) for one, found in results
                                 if one["type"] != found]  # fmt: skip
                    if differing:
                        reason = f"its result is {differing[0][1]}, not {differing[0][0]}"
                if reason is not None:
                    name = program.operations[index].name if index >= 0 else "ttnn.empty"
                    yield Refusal(program.name, index, name, _first_line(reason))


def _first_line(reason: str) -> str:
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    # The library's message follows this line.
    said = lines[lines.index("info:") + 1 :] if "info:" in lines else lines
    text = said[0] if said else "it does not say why"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def responsible_choice(
    binary: file.Binary, choices: Mapping[str, Sequence[Choice | None]], refusal: Refusal
) -> Choice | None:
    """Choice of the search that a refused call follows from, None if there is none.

    This is the call's own, or that of the first call which reads its result, for which tensors
    were moved, or else that of the last call which made its operands.
    """
    program = binary.program(refusal.program)
    if refusal.index < 0:
        return None
    own = choices.get(program.name, ())
    places = range(refusal.index, len(program.operations))
    values = {*program.operations[refusal.index].results}
    for index in places:
        operation = program.operations[index]
        if index == refusal.index or values & {*operation.operands}:
            if index < len(own) and (found := own[index]) is not None:
                return found
            values |= {*operation.results}
    if values & {output.tensor for output in program.outputs}:
        found = _choice_of_caller(binary, choices, program.name)
        if found is not None:
            return found
    values = {*program.operations[refusal.index].operands}
    for index in reversed(range(refusal.index)):
        operation = program.operations[index]
        if values & {*operation.results}:
            if index < len(own) and (found := own[index]) is not None:
                return found
            values |= {*operation.operands}
    return None


def _choice_of_caller(
    binary: file.Binary, choices: Mapping[str, Sequence[Choice | None]], name: str
) -> Choice | None:
    """Choice of the first call that reads what a const-eval program returns."""
    for caller in binary.programs:
        for index, operation in enumerate(caller.operations):
            if operation.callee == name:
                at_call = Refusal(caller.name, index, operation.name, "")
                return responsible_choice(binary, choices, at_call)
    return None


def compile_validated(
    source: Source,
    options: CompileOptions,
    python: str | None = None,
    runner: PassRunner | None = None,
    diagnostics: Diagnostics | None = None,
) -> CompiledModule:
    """Compiles a module such that the library accepts its calls, on a mocked device.

    Forms of calls that the library refuses are excluded, and the search is repeated, until all
    calls are accepted or a call has no other form.

    Args:
        source: text of the module.
        options: options of compilation, for the target ttnn, at level 1 or 2.
        python: interpreters with the package `ttnn`, or None for those of the environment.
        runner: pass runner.
        diagnostics: receives warnings, and a note for each call whose form was refused.

    Raises:
        CompileError: as by `compile_stages`; if there is no package of the release, or it refuses
            a call in every known form.
    """
    interpreter = python_of_release(python, options.release)
    with closing(Libraries()) as libraries:

        def answers(binary: file.Binary) -> Answers:
            command = mocked_command(interpreter, system_of(binary).chip, memory_limit(None))
            return libraries.of(command).answers

        return search_accepted(source, options, answers, runner, diagnostics)


def search_accepted(
    source: Source,
    options: CompileOptions,
    library: Callable[[file.Binary], Answers],
    runner: PassRunner | None = None,
    diagnostics: Diagnostics | None = None,
) -> CompiledModule:
    """Compiles a module again and again until a library accepts its calls.

    Args:
        source: text of the module.
        options: options of compilation.
        library: returns the library for a flatbuffer's device and release.
        runner: pass runner of the first compilation.
        diagnostics: receives warnings of the first compilation, and the notes.

    Raises:
        CompileError: as by `compile_validated`.
    """
    refused: dict[tuple[str, str], list[tuple[Choice, Refusal]]] = defaultdict(list)
    compiled = compile_stages(source, replace(options, refused=NONE_REFUSED), runner, diagnostics)
    while True:
        binary = read_ttnn(compiled.flatbuffer)
        last: list[Diagnostic] = []
        found = list(refusals(binary, library(binary)))
        for refusal in found:
            choice = responsible_choice(binary, compiled.choices, refusal)
            if choice is None:
                last.append(_no_choice(refusal))
                continue
            known = refused[choice.function, choice.call]
            if any(each.form == choice.form for each, _ in known):
                last.append(_no_form_left(choice, refusal, len({e.form for e, _ in known})))
            known.append((choice, refusal))
        if last:
            raise CompileError.from_diagnostics(list(dict.fromkeys(last)))
        if not found:
            break
        excluded = [choice for forms in refused.values() for choice, _ in forms]
        again = replace(options, refused=refused_text(dict.fromkeys(excluded)))
        compiled = compile_stages(source, again)
    if diagnostics is not None:
        for note in _notes(compiled, refused):
            diagnostics.diagnostics.append(note)
    return compiled


def _notes(
    compiled: CompiledModule,
    refused: Mapping[tuple[str, str], Sequence[tuple[Choice, Refusal]]],
) -> Iterator[Diagnostic]:
    """Note for each call whose form was refused, with the form that it has now."""
    now = {
        (choice.function, choice.call): choice.text
        for choices in compiled.choices.values()
        for choice in choices
        if choice is not None
    }
    for (function, call), forms in refused.items():
        choice, refusal = forms[0]
        others = len({each.form for each, _ in forms}) - 1
        more = f", and {others} more" if others else ""
        text = now.get((function, call))
        yield Diagnostic(
            f"the library refuses '{call}' as {choice.text}{more}: {refusal.op}: {refusal.reason}",
            choice.offset,
            None if text is None else f"it is {text} instead",
            severity=Severity.NOTE,
        )


def _no_form_left(choice: Choice, refusal: Refusal, tried: int) -> Diagnostic:
    forms = "its only form" if tried == 1 else f"all {tried} forms that were tried"
    return Diagnostic(
        f"the library refuses '{choice.call}' in {forms}: {refusal.op}: {refusal.reason}",
        choice.offset,
        "compile without validation for a project with this call as it is, or give the call "
        "another form by an override",
    )


def _no_choice(refusal: Refusal) -> Diagnostic:
    return Diagnostic(
        f"the library refuses {refusal.op} (step {refusal.index + 1} of '{refusal.program}'), "
        f"which the search did not choose: {refusal.reason}",
        None,
        "compile without validation for a project with this call as it is",
    )
