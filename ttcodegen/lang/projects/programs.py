"""Runner of Python programs that import `ttl` and `ttnn`, and lookup of their operations."""

from __future__ import annotations

import ast
import importlib
import linecache
import os
import posix
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import product
from pathlib import Path
from threading import RLock
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

import numpy as np

from ttcodegen.foundation.diagnostics import CompileError, Note, Source, SourceLocation
from ttcodegen.foundation.messages import is_of_user
from ttcodegen.lang.compiler.operations import operation_program
from ttcodegen.lang.projects.supervision import limited_seconds
from ttcodegen.lang.simulator.context import Launch, current, on_system
from ttcodegen.lang.simulator.locations import Instruction, error, location_of
from ttcodegen.lang.simulator.loops import COUNTERS, with_counted_loops
from ttcodegen.lang.simulator.operations import Operation
from ttcodegen.lang.simulator.spelling import PACKAGES, misspelled
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.ops.tt_lang import CalledProgram, GivenTensor
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import SystemDescription


@contextmanager
def language_packages() -> Generator[None]:
    """Scope in which `ttl` and `ttnn` are the simulator's packages, hiding installed ones."""
    hidden = {
        name: sys.modules.pop(name)
        for name in list(sys.modules)
        if name.partition(".")[0] in ("ttl", "ttnn")
    }
    sys.modules.update({name: importlib.import_module(real) for name, real in PACKAGES.items()})
    try:
        yield
    finally:
        for name in PACKAGES:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)


def run_program_text(
    source: Source,
    arguments: Sequence[str] = (),
    watch: Callable[[Launch], Callable[[], None]] | None = None,
    name: str = "__main__",
    system: SystemDescription | None = None,
) -> dict[str, object]:
    """Runs a program as `python program.py` would, with the packages of the simulator.

    Args:
        source: the program; modules next to it can be imported.
        arguments: command-line arguments, for `sys.argv`.
        watch: called with each launch of an operation before its kernels run; the function that it
            returns is called after them.
        name: value of `__name__`; `__main__` unless the program is imported.
        system: the machine that operations run on; the current one if not given.

    Returns:
        The global variables of the module after the run.

    Raises:
        CompileError: if the program breaks a rule of the language, or raises anything else.
        SystemExit: if the program exits.
    """
    code = _compile(source)
    main = ModuleType(name)
    main.__file__ = source.name
    main.__dict__.update(COUNTERS)
    lines = source.text.splitlines(keepends=True)
    linecache.cache[source.name] = (len(source.text), None, lines, source.name)
    saved = sys.argv, sys.path[:], sys.modules.get(name)
    sys.argv = [source.name, *arguments]
    sys.path.insert(0, str(Path(source.name).resolve().parent))
    sys.modules[name] = main
    current.watch = watch
    try:
        with on_system(system or current.system):
            _run(code, main)
    finally:
        current.watch = None
        sys.argv, sys.path[:] = saved[0], saved[1]
        if saved[2] is not None:
            sys.modules[name] = saved[2]
        else:
            sys.modules.pop(name)
    return main.__dict__


def _run(code: CodeType, main: ModuleType) -> None:
    with language_packages(), code_of_user(may_end=main.__name__ == "__main__"):
        exec(code, main.__dict__)


@contextmanager
def code_of_user(*, may_end: bool) -> Generator[None]:
    """Scope of user code: exceptions and attempts to end the process become errors at its lines.

    Args:
        may_end: True if the program may end its process outside of operations.
    """
    with _guarded_process(may_end):
        try:
            yield
        except SystemExit as raised:
            _check_exit_outside_operations(raised)
            raise
        except (CompileError, KeyboardInterrupt):
            raise
        except BaseException as raised:
            raise _program_error(raised) from None


def _check_exit_outside_operations(raised: SystemExit) -> None:
    """Raises CompileError if a program exits from inside an operation."""
    entries = (Operation.__call__.__code__, Operation.instantiate.__code__)
    if any(each.tb_frame.f_code in entries for each in _traceback_entries(raised)):
        at = [
            (each.tb_frame.f_code, each.tb_lasti)
            for each in _traceback_entries(raised)
            if is_of_user(each.tb_frame.f_code.co_filename)
        ]
        message = "the program ends in an operation, by sys.exit or exit"
        raise CompileError(message, location_of(at[-1]) if at else None) from None


def _compile(source: Source) -> CodeType:
    try:
        module = ast.parse(source.text, source.name)
        return compile(with_counted_loops(module), source.name, "exec", dont_inherit=True)
    except SyntaxError as syntax_error:
        where = SourceLocation(source.name, syntax_error.lineno or 1, syntax_error.offset or 1)
        raise CompileError(f"the program is no Python: {syntax_error.msg}", where) from None


def _program_error(raised: BaseException) -> CompileError:
    """Converts an exception of the program to an error at its innermost line, callers as notes."""
    frames = [
        (code, trace.tb_lasti)
        for trace in _traceback_entries(raised)
        if is_of_user((code := trace.tb_frame.f_code).co_filename)
    ]
    if isinstance(raised, RecursionError) and frames:
        return _endless_recursion(frames)
    message = misspelled(raised)
    if message is None:
        text = "".join(traceback.format_exception_only(raised)).strip()
        message = f"the program raised {text}"
    if not frames:
        return CompileError(message)
    notes = [Note("called from here", location_of(each)) for each in reversed(frames[:-1])]
    return CompileError(message, location_of(frames[-1]), notes=notes)


def _endless_recursion(frames: Sequence[Instruction]) -> CompileError:
    """Error for an endless recursion, located at the recursive call, callers as notes."""
    codes = [code for code, _ in frames]
    repeated = next(n for n, code in enumerate(codes) if codes.count(code) > 1)
    message = f"the function '{codes[repeated].co_name}' calls itself without an end"
    notes = [Note("called from here", location_of(each)) for each in reversed(frames[:repeated])]
    return CompileError(message, location_of(frames[repeated]), notes=notes)


@contextmanager
def _guarded_process(may_end: bool) -> Generator[None]:
    """Scope in which ending or replacing the process is an error, unless it is harmless.

    Otherwise the rest of an operation, or the report on watched operations, would silently be lost.
    """
    own_pid = os.getpid()
    kept: list[tuple[object, str, Any]] = []
    for module, name in product(_OS_MODULES, _EXIT_FUNCTIONS):
        kept.append((module, name, getattr(module, name)))
        setattr(module, name, _guarded_exit(name, kept[-1][2], own_pid, may_end))
    for owner, name, does in _FORBIDDEN_IN_KERNELS:
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, _guarded_in_operations(does, kept[-1][2], own_pid))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


_FORBIDDEN_IN_KERNELS: tuple[tuple[object, str, str], ...] = (
    *((module, name, f"divides the process, by os.{name}") for module in (os, posix)
      for name in ("fork", "forkpty")),
    (time, "sleep", "sleeps, and all kernels with it"),
    (threading.Thread, "start", "starts a thread, which no kernel waits for"),
)  # fmt: skip
"""Functions that kernels must not call, with the reason."""


def _guarded_in_operations(does: str, function: Any, own_pid: int) -> Any:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        is_kernel = current.kernel is not None and os.getpid() == own_pid
        if is_kernel and threading.current_thread() is threading.main_thread():
            raise error(f"the program {does}, in an operation")
        return function(*arguments, **options)

    return call


_OS_MODULES = (os, posix)
_EXIT_FUNCTIONS = ("_exit", "execv", "execve")
"""Primitives that the other exec functions, such as os.execlp, are implemented with."""


def _guarded_exit(
    name: str, leave: Callable[..., NoReturn], own_pid: int, may_end: bool
) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        in_operation = current.kernel is not None or current.node is not None
        # Forked processes may end, as those of multiprocessing do.
        if os.getpid() != own_pid or (may_end and not in_operation and current.watch is None):
            leave(*arguments, **options)
        suffix = " in an operation" if in_operation else ""
        raise error(f"the program ends the process{suffix}, by os.{name}")

    return refuse


def _traceback_entries(raised: BaseException) -> Generator[TracebackType]:
    trace = raised.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


_SIMULATOR = RLock()
"""Serializes operations, because the simulator has global state."""


@dataclass(frozen=True)
class ProgramOperations:
    """Operations of several programs.

    A model calls an operation as `[program.]operation[::version]`: the program is the name of its
    file without `.py`, the operation the name of the Python function without the underscores that
    make it private.
    """

    found: Mapping[tuple[str, str], Operation] = field(
        default_factory=dict[tuple[str, str], Operation]
    )
    """Operations by program name and operation name."""
    system: SystemDescription = field(default_factory=default_machine)
    """The machine that runs the operations."""
    called: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Names of the operations that a model has called."""

    def refusal(self, kernel_id: str) -> str | None:
        """Returns the error message if no operation, or more than one, has a name; else None."""
        matches = self._matches(kernel_id)
        count = len(matches)
        if count == 1:
            self.called.update(matches)
            return None
        if count:
            return f"several programs have an operation '{kernel_id}': say PROGRAM.OPERATION"
        known = ", ".join(f"{program}.{name}" for program, name in sorted(self.found))
        return f"no program has the operation '{kernel_id}'; there are: {known or 'none'}"

    def _matches(self, kernel_id: str) -> list[tuple[str, str]]:
        path = kernel_id.partition("::")[0].split(".")
        name, program = path[-1].strip("_") or path[-1], path[-2] if len(path) > 1 else None
        of_name = [key for key in self.found if key[1] == name]
        return [key for key in of_name if key[0] == program] or of_name

    def _operation(self, kernel_id: str) -> Operation:
        refusal = self.refusal(kernel_id)
        if refusal is not None:
            raise CompileError(refusal)
        return self.found[self._matches(kernel_id)[0]]

    @contextmanager
    def _running(self) -> Generator[None]:
        with (
            _SIMULATOR,
            on_system(self.system),
            limited_seconds(),
            code_of_user(may_end=False),
        ):
            yield

    def run(self, kernel_id: str, tensors: Sequence[GivenTensor]) -> list[np.ndarray]:
        """Simulates an operation and returns the contents of its tensors."""
        given = [_tensor(tensor) for tensor in tensors]
        with self._running():
            self._operation(kernel_id)(*given)
        return [tensor.elements() for tensor in given]

    def program(self, kernel_id: str, tensors: Sequence[GivenTensor], name: str) -> CalledProgram:
        """Compiles an operation for tensors of given shapes and types to a named program.

        Raises:
            CompileError: if the operation uses something that is not supported.
        """
        given = [_tensor(tensor) for tensor in tensors]
        with self._running():
            launch = self._operation(kernel_id).instantiate(tuple(given), {})
            made = operation_program(launch, name)
        indices = {id(tensor): index for index, tensor in enumerate(given)}
        for tensor in (*made.inputs, *made.outputs):
            if id(tensor) not in indices:
                raise CompileError(
                    f"the operation '{kernel_id}' uses a tensor that is none of its arguments",
                    remedy="let the operation have the tensor as an argument",
                )
        inputs, outputs = ([indices[id(t)] for t in each] for each in (made.inputs, made.outputs))
        return CalledProgram(made.program, made.kernels, tuple(inputs), tuple(outputs))

    def writes_all(self, kernel_id: str, tensors: Sequence[GivenTensor], place: int) -> bool:
        """True if an operation writes all elements of one of the tensors."""
        given = [_tensor(tensor) for tensor in tensors]
        launches: list[Launch] = []
        with self._running():
            outer, current.watch = current.watch, partial(_keep_launch, launches)
            try:
                self._operation(kernel_id)(*given)
            finally:
                current.watch = outer
        written = launches[0].written.get(id(given[place]))
        return written is not None and written.is_all


def _keep_launch(launches: list[Launch], launch: Launch) -> Callable[[], None]:
    """Appends a launch to a list; there is nothing to do after it."""
    launches.append(launch)
    return lambda: None


def _tensor(given: GivenTensor) -> Tensor:
    elements = given.elements
    if elements is None:
        elements = np.zeros(given.shape, np.float32 if given.data_type.is_float else np.int64)
    return Tensor(np.asarray(elements).reshape(given.shape), given.data_type, "tile")


def operations_of(
    programs: Sequence[str], system: SystemDescription | None = None
) -> ProgramOperations:
    """Imports programs as modules and collects their operations.

    Args:
        programs: paths of Python files.
        system: the machine that runs the operations; the default one if not given.

    Raises:
        CompileError: if a program cannot be read, breaks a rule, raises an error or ends itself, or
            if two have the same name.
    """
    system = system or default_machine()
    found: dict[tuple[str, str], Operation] = {}
    stems: dict[str, str] = {}
    for path in programs:
        stem = Path(path).stem
        if stem in stems:
            raise CompileError(
                f"two programs are called '{stem}': {stems[stem]} and {path}",
                remedy="models call operations by the names of their programs: rename one",
            )
        stems[stem] = path
        with on_system(system), limited_seconds():
            held = _imported(path, stem)
        operations = [each for each in held.values() if isinstance(each, Operation)]
        found |= {(stem, each.name): each for each in operations}
    return ProgramOperations(found, system)


def _imported(path: str, name: str) -> dict[str, object]:
    """Imports a program as a module of the given name."""
    try:
        return run_program_text(Source.read(path), (), None, name)
    except SystemExit as ending:
        raise CompileError(
            f"the program {path} ends itself (SystemExit: {ending}) when it is imported",
            remedy='put what only a program of its own does under `if __name__ == "__main__":`',
        ) from None
