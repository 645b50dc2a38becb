"""`--check`: compares C++, flatbuffer and golden runs on the same random inputs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.func import FuncOp

from ttcodegen.cost import quick_runs
from ttcodegen.dialects.operations.functions import has_kernels
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.foundation.messages import Level, printable_json
from ttcodegen.foundation.messages import report as message
from ttcodegen.frontends import source_module
from ttcodegen.naming.arguments import argument_names
from ttcodegen.numerics.comparison import (
    MOST_ROUNDED,
    MOST_UNDECIDED,
    Agreement,
    OutputCheck,
    check_output,
    compare,
    compare_decided,
    golden_tolerance,
    report,
)
from ttcodegen.numerics.drawing import depends_on_draws, depends_on_floats, draw_inputs
from ttcodegen.numerics.edges import (
    BEYOND_INTEGERS,
    CHOICES,
    LARGEST,
    NOT_FINITE,
    chosen_edges,
    edge_cases,
    follows_convention,
    hides_values,
    leaves_integers,
    loses_upper_half,
)
from ttcodegen.numerics.execution import ExecutionError
from ttcodegen.numerics.golden_values import Golden
from ttcodegen.numerics.lowered import (
    ChosenValues,
    LoweredInterpreter,
    coarse_outputs,
    holds_truth,
    interpreter_of,
    perturbed_runs,
    read_flatbuffer,
    undecided_places,
    unsteady_places,
)
from ttcodegen.numerics.rounding import shared_conversions
from ttcodegen.numerics.tolerances import EQUAL, SIXTEEN_BITS
from ttcodegen.project.building import BUILD_FOLDER, build_project
from ttcodegen.project.processes import mpi_launcher
from ttcodegen.project.running import (
    TIMEOUT,
    Background,
    Executed,
    FunctionInputs,
    FunctionRuns,
    Reference,
    against_reference,
    given_arguments,
    refuse_too_large,
    run_executable,
)
from ttcodegen.project.writer import CHECK_REPORT

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ttcodegen.compilation import CompiledModule
    from ttcodegen.emission.description import ProjectKind
    from ttcodegen.project.toolchain import Toolchain


def check_function(
    run: FunctionRuns,
    outputs: Mapping[str, np.ndarray],
    failure: str | None,
) -> list[OutputCheck]:
    """Compares the outputs of a function.

    Where the C++ differs, the flatbuffer run is repeated with perturbed rounding, which widens the
    tolerance of outputs that it moves.

    Args:
        run: results of the numpy runs.
        outputs: outputs of the C++, by field.
        failure: reason for which the C++ failed, if it did.

    Returns:
        An entry for each output.
    """
    checks = _compare_outputs(run, outputs, failure)
    imprecise = {
        index: run.tolerances[index]
        for index, check in enumerate(checks)
        if check.device is not None
        and not check.device.passed
        and check.device.measure in ("correlation", "relative error")
        and run.tolerances[index].allows_less_than(SIXTEEN_BITS)
    }
    if imprecise:
        perturbed = perturbed_runs(run.binary, run.function.name, run.inputs)
        coarse = coarse_outputs(run.flatbuffer, imprecise, perturbed)
        checks = _compare_outputs(run, outputs, failure, coarse)
    written = [outputs.get(output.field) for output in run.function.outputs]
    doubtful = [
        index
        for index, check in enumerate(checks)
        if run.depends_on_floats[index]
        and check.device is not None
        and check.device.measure == "agreement"
        and not check.device.passed
    ]
    if doubtful:
        name = run.function.name
        found = run.chosen.settled(name, run.flatbuffer, {i: written[i] for i in doubtful})
        checks = _decided_checks(run, checks, found)
    return _wide_weight_checks(run, _steady_checks(run, _golden_decisions(run, checks)))


def _wide_weight_checks(run: FunctionRuns, checks: Sequence[OutputCheck]) -> list[OutputCheck]:
    """Rechecks floats that four-bit weights move from the golden, with bf16 weights.

    Their rounding is a choice of the user's, and its cost a figure: no bound would distinguish it
    from an error of the program.
    """
    found = list(checks)
    for index, check in enumerate(checks):
        correlation = check.golden.correlation
        if check.golden.passed or correlation is None or run.with_wide_weights is None:
            continue
        data_type = run.function.outputs[index].data_type
        tolerance = golden_tolerance(data_type, False, False)
        agreement = compare(run.with_wide_weights[index], run.golden[index], tolerance)
        if agreement.passed:
            found[index] = replace(check, golden=agreement, narrow_weights=correlation)
    return found


def _decided_checks(
    run: FunctionRuns,
    checks: Sequence[OutputCheck],
    found: Mapping[int, np.ndarray | None],
) -> list[OutputCheck]:
    """Replaces checks by exact comparisons of outputs that were recomputed from the C++'s
    decisions.

    Boolean elements that depend on rounding are excluded.
    """
    checked = list(checks)
    truths = {i: array for i, array in found.items() if run.golden[i].dtype.kind == "b"}
    places: Mapping[int, np.ndarray] = {}
    if truths:
        perturbed = perturbed_runs(run.binary, run.function.name, run.inputs)
        places = undecided_places(run.flatbuffer, truths, perturbed)
    for index, actual in found.items():
        expected = run.flatbuffer[index]
        if actual is None:
            continue
        if index in truths:
            agreement = compare_decided(actual, expected != 0, EQUAL, places[index])
        else:
            agreement = compare(actual, expected, EQUAL)
        checked[index] = replace(checked[index], device=agreement)
    return checked


def _golden_decisions(run: FunctionRuns, checks: Sequence[OutputCheck]) -> list[OutputCheck]:
    """Rechecks integer and boolean outputs that depend on floats and differ from the golden.

    The golden is recomputed with the flatbuffer run's decisions; differences are accepted where
    rounding changes the element.
    """
    differing = [
        index
        for index, check in enumerate(checks)
        if run.depends_on_floats[index]
        and check.golden.passed
        and check.golden.measure == "agreement"
        and check.golden.value != 1.0
    ]
    found = list(checks)
    if not differing:
        return found
    binary, name = run.binary, run.function.name
    golden = run.chosen.settled(name, run.flatbuffer, {i: run.golden[i] for i in differing})
    places = unsteady_places(binary, name, run.inputs, run.flatbuffer, differing)
    for index in differing:
        expected = golden[index]
        assert expected is not None
        most = MOST_UNDECIDED if expected.dtype.kind == "b" else MOST_ROUNDED
        agreement = compare_decided(run.flatbuffer[index], expected, EQUAL, places[index], most)
        found[index] = replace(found[index], golden=agreement)
    return found


def _steady_checks(run: FunctionRuns, checks: Sequence[OutputCheck]) -> list[OutputCheck]:
    """Rechecks floats that differ from the golden, without elements whose finiteness or truth
    depends on rounding."""
    found = list(checks)
    failed = [
        index
        for index, check in enumerate(checks)
        if not check.golden.passed
        and run.golden[index].dtype.kind not in "biu"
        and (not np.isfinite(run.golden[index]).all() or holds_truth(run.golden[index]))
    ]
    if failed:
        binary, name = run.binary, run.function.name
        unsteady = unsteady_places(binary, name, run.inputs, run.flatbuffer, failed)
        for index, places in unsteady.items():
            tolerance = golden_tolerance(run.function.outputs[index].data_type, False, False)
            lowered, golden = run.flatbuffer[index], run.golden[index]
            agreement = compare_decided(lowered, golden, tolerance, places)
            found[index] = replace(found[index], golden=agreement)
    return found


def _compare_outputs(
    run: FunctionRuns,
    outputs: Mapping[str, np.ndarray],
    failure: str | None,
    coarse: Container[int] = (),
) -> list[OutputCheck]:
    """Compares the outputs; `coarse` ones, which rounding moves, have bf16's tolerance."""
    checks: list[OutputCheck] = []
    for index, output in enumerate(run.function.outputs):
        check = check_output(
            run.function.name,
            output.name,
            output.data_type,
            outputs.get(output.field),
            run.flatbuffer[index],
            run.golden[index],
            run.depends_on_floats[index],
            run.drawn[index],
            SIXTEEN_BITS if index in coarse else run.tolerances[index],
        )
        if check.device is None:
            reason = failure or "the program did not write it"
            failed = Agreement(False, "none", None, math.inf, reason)
            check = OutputCheck(run.function.name, output.name, failed, check.golden)
        checks.append(check)
    return checks


InputsOf = Callable[["ModuleOp", FuncOp], tuple[np.ndarray, ...]]
"""Returns the inputs of a function of a module."""


def check_project(
    source: Source,
    compiled: CompiledModule,
    out: Path,
    toolchain: Toolchain,
    *,
    kind: ProjectKind = "exe",
    seed: int = 0,
    timeout: float = TIMEOUT,
    reference: Mapping[str, Reference] | None = None,
    edges: bool = False,
) -> list[OutputCheck]:
    """Builds the project in `out`, checks it and writes check.json.

    Args:
        source: the compiled source.
        compiled: the compiled module, as written to `out`.
        out: the project's folder.
        toolchain: builds the project.
        kind: what to build besides the executable.
        seed: of the random inputs.
        timeout: limit on the C++'s run time in seconds.
        reference: a framework's inputs and outputs by function; its inputs replace random ones and
            the C++ is compared with its outputs.
        edges: whether to also run on edge-case inputs; small programs run on a selection of them in
            any case.

    Returns:
        One entry per output of each function; of unrequested edge cases only those that failed.

    Raises:
        BuildError: if the build fails.
        CompileError: if memory does not suffice, the program cannot be run in numpy, or the report
            cannot be written.
    """
    refuse_too_large(compiled)
    build_kind: ProjectKind = kind if kind in ("exe", "runner") else "both"
    name = compiled.description.name
    given = given_arguments(compiled.description, reference or {})
    building = Background(lambda: build_project(out, name, toolchain, build_kind))

    ranks = math.prod(compiled.description.hosts)
    launcher = mpi_launcher(ranks)
    if ranks > 1 and not launcher:
        message(Level.WARNING, "warning: MPI is not installed: one process emulates all hosts")

    def build_and_execute(inputs: Sequence[FunctionInputs]) -> Executed:
        built = building.result()
        assert built.executable is not None
        folder = out / BUILD_FOLDER
        if launcher:
            return run_executable(built.executable, inputs, folder, timeout, launcher)
        return run_executable(built.executable, inputs, folder, timeout)

    # Build and run the C++ concurrently with numpy: they are independent.
    executing: list[Background[Executed]] = []
    runs = run_in_numpy(
        source,
        compiled,
        partial(_given_or_drawn, given=given, seed=seed),
        lambda inputs: executing.append(Background(lambda: build_and_execute(inputs))),
    )
    outputs, failure = executing[0].result()
    checks = [
        check for run in runs for check in check_function(run, outputs[run.function.name], failure)
    ]
    if reference:
        checks = against_reference(checks, runs, outputs, reference)
    most = quick_runs(runs[0].binary) if runs and not (edges or reference) else 0
    chosen = CHOICES[:most]
    if edges or chosen:
        found = _edge_checks(source, compiled, runs, build_and_execute, None if edges else chosen)
        # Report only failures of edge cases that were not requested.
        checks += [check for check in found if edges or not check.passed or check.loses_upper_half]
    _write_report(out, {**report(checks), "seed": seed})
    return checks


def _edge_checks(
    source: Source,
    compiled: CompiledModule,
    drawn: Sequence[FunctionRuns],
    run_cpp: Callable[[Sequence[FunctionInputs]], Executed],
    chosen: Sequence[str] | None,
) -> list[OutputCheck]:
    """Checks all functions on edge-case inputs; an entry per case and output.

    Runs every case, or the `chosen` ones of `CHOICES`, for which lost upper halves of 64-bit
    integers are no failure.
    """
    module = source_module(source, mesh=compiled.description.mesh)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    inputs = {run.function.name: run.inputs for run in drawn}
    found: dict[str, dict[str, tuple[np.ndarray, ...]]] = {}
    for name, arrays in inputs.items():
        by_name = dict(zip(argument_names(functions[name]), arrays, strict=True))
        cases = (
            edge_cases(module, functions[name], by_name)
            if chosen is None
            else chosen_edges(module, functions[name], by_name, chosen)
        )
        for case, changed in cases:
            found.setdefault(case, {})[name] = changed
    target = compiled.description.target
    excuses = {
        name: (
            follows_convention(module, functions[name], target),
            leaves_integers(module, functions[name]),
            hides_values(module, functions[name]),
            loses_upper_half(module, functions[name]),
        )
        for name in inputs
    }
    checks: list[OutputCheck] = []
    for case, changed in found.items():
        given = {**inputs, **changed}
        runs = run_in_numpy(source, compiled, lambda _, f, g=given: g[f.sym_name.data])
        outputs, failure = run_cpp(runs)
        for run in runs:
            if (name := run.function.name) in changed:
                of_run = check_function(run, outputs[name], failure)
                each_output = zip(of_run, run.golden, *excuses[name], strict=True)
                checks += [
                    replace(
                        each,
                        name=f"{each.name} ({case})",
                        loses_upper_half=chosen is not None and loses and not each.golden.passed,
                    )
                    for each, golden, has_own, leaves, hides, loses in each_output
                    if each.passed or not _is_excused(case, each, golden, has_own, leaves, hides)
                ]
    return checks


def _is_excused(
    case: str, check: OutputCheck, golden: np.ndarray, has_own: bool, leaves: bool, hides: bool
) -> bool:
    """Returns whether a failed check of an edge case is expected.

    `has_own`: an op with its own NaN semantics computes the output. `leaves`: the output is an
    integer computed from floats. `hides`: attention computes the output.
    """
    if leaves and case in BEYOND_INTEGERS and (check.device is None or check.device.passed):
        return True
    if case == LARGEST:
        # Overflow of large numbers depends on the order of evaluation.
        return not np.isfinite(golden.astype(np.float64)).all()
    agrees = check.device is None or check.device.passed
    return case in NOT_FINITE and (hides or (has_own and agrees))


def _given_or_drawn(
    module: ModuleOp,
    function: FuncOp,
    given: Mapping[str, Mapping[str, np.ndarray]],
    seed: int,
) -> tuple[np.ndarray, ...]:
    known = given.get(function.sym_name.data, {})
    return tuple(
        known.get(name, drawn) for name, drawn in draw_inputs(module, function, seed).items()
    )


def run_in_numpy(
    source: Source,
    compiled: CompiledModule,
    inputs_of: InputsOf,
    when_drawn: Callable[[Sequence[FunctionInputs]], None] = lambda _: None,
) -> list[FunctionRuns]:
    """Runs the source and the flatbuffer of each entry function in numpy.

    Args:
        source: the compiled source.
        compiled: the compiled module.
        inputs_of: returns the inputs of a function.
        when_drawn: called with all inputs before the runs.

    Raises:
        CompileError: if an op has no numpy semantics, or a run fails.
    """
    # Parse again: compilation mutated the module, and the golden run is of the source.
    module = source_module(source, mesh=compiled.description.mesh)
    if has_kernels(module):
        from ttcodegen.transforms.ttmetal.device_programs import call_meanings

        call_meanings(module)
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    given = [
        FunctionInputs(function, inputs_of(module, functions[function.name]))
        for function in compiled.description.functions
    ]
    when_drawn(given)
    golden = Golden(module)
    chosen = ChosenValues()
    binary = read_flatbuffer(compiled.flatbuffer)
    interpreter = interpreter_of(binary, chosen.observe)
    runs: list[FunctionRuns] = []
    in_programs = compiled.description.target == "ttmetal"
    for each in given:
        op = functions[each.function.name]
        decisions = tuple(depends_on_floats(module, op))
        outputs = zip(each.function.outputs, decisions, strict=True)
        places = [
            i for i, (out, decided) in enumerate(outputs) if decided and not out.data_type.is_float
        ]
        chosen.watch(interpreter, each.function.name, places)
        expected, lowered = _run_both(golden, interpreter, each, op)
        drawn = tuple(depends_on_draws(module, op, in_programs=in_programs))
        tolerances = tuple(interpreter.output_tolerances(each.function.name))
        runs.append(
            FunctionRuns(
                each.function,
                each.inputs,
                expected,
                lowered,
                decisions,
                drawn,
                tolerances,
                chosen,
                binary,
            )
        )
    return runs


def _run_both(
    golden: Golden, interpreter: LoweredInterpreter, given: FunctionInputs, op: FuncOp
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Runs the source and the flatbuffer concurrently: numpy releases the GIL for large arrays."""
    name = given.function.name

    def run(program: Golden | LoweredInterpreter) -> tuple[np.ndarray, ...]:
        # The device saturates and divides by zero silently.
        with np.errstate(all="ignore"):
            return tuple(program.run(name, given.inputs))

    try:
        with shared_conversions(given.inputs):
            running = Background(lambda: run(golden))
            try:
                lowered = run(interpreter)
            finally:
                expected = running.result()
    except ExecutionError as error:
        raise CompileError(f"'{name}' cannot be checked: {error}", op) from None
    return expected, lowered


def add_calls(out: Path, entries: Sequence[Mapping[str, Any]], *, passed: bool) -> None:
    """Adds the outputs of consecutive calls to the report of a check.

    Raises:
        CompileError: if the report cannot be written.
    """
    content = json.loads((out / CHECK_REPORT).read_text("utf-8"))
    passed = passed and content["passed"]
    _write_report(out, {**content, "passed": passed, "calls": list(entries)})


def _write_report(out: Path, content: Mapping[str, Any]) -> None:
    text = printable_json(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"
    fresh = out / f".{CHECK_REPORT}.{os.getpid()}"
    try:
        # What is there of that name, even a link, is not written through.
        fresh.unlink(missing_ok=True)
        with fresh.open("x", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(out / CHECK_REPORT)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise CompileError(f"cannot write '{out / CHECK_REPORT}': {error.strerror}") from None
