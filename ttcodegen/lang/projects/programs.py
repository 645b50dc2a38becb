"""Runs Python programs that import `ttl` and `ttnn`, and finds operations that modules call."""

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
from ttcodegen.lang.simulator.locations import Instruction, error, place
from ttcodegen.lang.simulator.loops import COUNTERS, with_counted_loops
from ttcodegen.lang.simulator.operations import Operation
from ttcodegen.lang.simulator.spelling import PACKAGES, misspelled
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.ops.tt_lang import CalledProgram, GivenTensor
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import SystemDescription


@contextmanager
def language_packages() -> Generator[None]:
    """Makes `ttl` and `ttnn` those of the simulator; packages of these names that are installed are
    back afterwards."""
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
        arguments: those that the program finds in `sys.argv`.
        watch: is called with each launch of an operation before its kernels run; what it returns is
            called afterwards.
        name: the name that it knows itself by; another one for what is imported.
        system: the machine that operations run on; the one of before if not given.

    Returns:
        What the module holds at its end.

    Raises:
        CompileError: if the program breaks a rule of the language, or raises anything else.
        SystemExit: if the program ends itself.
    """
    code = _compiled(source)
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
    """Makes what a program raises in it, and how it ends its process, errors at its lines.

    Args:
        may_end: True if the program may end its process where no operation runs.
    """
    with _kernels_stay(may_end):
        try:
            yield
        except SystemExit as raised:
            _check_left_outside(raised)
            raise
        except (CompileError, KeyboardInterrupt):
            raise
        except BaseException as raised:
            raise _raised_by_program(raised) from None


def _check_left_outside(raised: SystemExit) -> None:
    """Raises CompileError if a program ended from within an operation."""
    entries = (Operation.__call__.__code__, Operation.instantiate.__code__)
    if any(each.tb_frame.f_code in entries for each in _traces(raised)):
        at = [
            (each.tb_frame.f_code, each.tb_lasti)
            for each in _traces(raised)
            if is_of_user(each.tb_frame.f_code.co_filename)
        ]
        message = "the program ends in an operation, by sys.exit or exit"
        raise CompileError(message, place(at[-1]) if at else None) from None


def _compiled(source: Source) -> CodeType:
    try:
        module = ast.parse(source.text, source.name)
        return compile(with_counted_loops(module), source.name, "exec", dont_inherit=True)
    except SyntaxError as wrong:
        where = SourceLocation(source.name, wrong.lineno or 1, wrong.offset or 1)
        raise CompileError(f"the program is no Python: {wrong.msg}", where) from None


def _raised_by_program(raised: BaseException) -> CompileError:
    """Error for an exception of the program, at its innermost line.

    The callers are notes.
    """
    frames = [
        (code, trace.tb_lasti)
        for trace in _traces(raised)
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
    notes = [Note("called from here", place(each)) for each in reversed(frames[:-1])]
    return CompileError(message, place(frames[-1]), notes=notes)


def _endless_recursion(frames: Sequence[Instruction]) -> CompileError:
    """The function that calls itself, at the call that does, and what called it first."""
    codes = [code for code, _ in frames]
    repeated = next(n for n, code in enumerate(codes) if codes.count(code) > 1)
    message = f"the function '{codes[repeated].co_name}' calls itself without an end"
    notes = [Note("called from here", place(each)) for each in reversed(frames[:repeated])]
    return CompileError(message, place(frames[repeated]), notes=notes)


@contextmanager
def _kernels_stay(may_end: bool) -> Generator[None]:
    """Makes a program that would end the process, or put another in its place, an error where
    something is left out thereby without a word: the rest of an operation, or what is said of the
    operations that were watched."""
    own = os.getpid()
    kept: list[tuple[object, str, Any]] = []
    for module, name in product(_MODULES, _ENDINGS):
        kept.append((module, name, getattr(module, name)))
        setattr(module, name, _refusing(name, kept[-1][2], own, may_end))
    for owner, name, does in _NOT_IN_KERNELS:
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, _refusing_in_operations(does, kept[-1][2], own))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


_NOT_IN_KERNELS: tuple[tuple[object, str, str], ...] = (
    *((module, name, f"divides the process, by os.{name}") for module in (os, posix)
      for name in ("fork", "forkpty")),
    (time, "sleep", "sleeps, and all kernels with it"),
    (threading.Thread, "start", "starts a thread, which no kernel waits for"),
)  # fmt: skip
"""Functions that no kernel can call, and the reason."""


def _refusing_in_operations(does: str, function: Any, own: int) -> Any:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        is_kernel = current.kernel is not None and os.getpid() == own
        if is_kernel and threading.current_thread() is threading.main_thread():
            raise error(f"the program {does}, in an operation")
        return function(*arguments, **options)

    return call


_MODULES = (os, posix)
_ENDINGS = ("_exit", "execv", "execve")
"""The functions that the others, as os.execlp, are made of."""


def _refusing(
    name: str, leave: Callable[..., NoReturn], own: int, may_end: bool
) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        in_operation = current.kernel is not None or current.node is not None
        # What was forked may end, as those of multiprocessing do.
        if os.getpid() != own or (may_end and not in_operation and current.watch is None):
            leave(*arguments, **options)
        within = " in an operation" if in_operation else ""
        raise error(f"the program ends the process{within}, by os.{name}")

    return refuse


def _traces(raised: BaseException) -> Generator[TracebackType]:
    trace = raised.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


_SIMULATOR = RLock()
"""One operation runs at a time, whichever thread calls it."""


@dataclass(frozen=True)
class ProgramOperations:
    """The operations of some programs.

    A model calls one `[program.]operation[::version]`: the program is the name of its file without
    `.py`, the operation that of the Python function, without the underscores that keep it private.
    """

    found: Mapping[tuple[str, str], Operation] = field(
        default_factory=dict[tuple[str, str], Operation]
    )
    """By the names of the program and of the operation."""
    system: SystemDescription = field(default_factory=default_machine)
    """The machine that runs them."""
    called: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Those that a model has called, by the same names."""

    def refusal(self, kernel_id: str) -> str | None:
        """Returns why there is no operation of this name, or None if there is one."""
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
        """The program that an operation is for tensors of these kinds, under a name.

        Raises:
            CompileError: if the compiler does not take the operation.
        """
        given = [_tensor(tensor) for tensor in tensors]
        with self._running():
            launch = self._operation(kernel_id).instantiate(tuple(given), {})
            made = operation_program(launch, name)
        places = {id(tensor): place for place, tensor in enumerate(given)}
        for tensor in (*made.inputs, *made.outputs):
            if id(tensor) not in places:
                raise CompileError(
                    f"the operation '{kernel_id}' uses a tensor that is none of its arguments",
                    remedy="let the operation have the tensor as an argument",
                )
        inputs, outputs = ([places[id(t)] for t in each] for each in (made.inputs, made.outputs))
        return CalledProgram(made.program, made.kernels, tuple(inputs), tuple(outputs))

    def writes_all(self, kernel_id: str, tensors: Sequence[GivenTensor], place: int) -> bool:
        """True if an operation writes all elements of one of the tensors."""
        given = [_tensor(tensor) for tensor in tensors]
        launches: list[Launch] = []
        with self._running():
            outer, current.watch = current.watch, partial(_kept, launches)
            try:
                self._operation(kernel_id)(*given)
            finally:
                current.watch = outer
        written = launches[0].written.get(id(given[place]))
        return written is not None and written.is_all


def _kept(launches: list[Launch], launch: Launch) -> Callable[[], None]:
    """Keeps a launch; nothing is left to do after it."""
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
    """The operations of programs, which are run for it as modules that are imported.

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
