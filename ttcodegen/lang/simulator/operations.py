"""Operation functions, their kernels, and the scheduler."""

from __future__ import annotations

import ast
import builtins
import ctypes
import functools
import inspect
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache, partial
from itertools import product
from math import prod
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeGuard

import numpy as np
from greenlet import GreenletExit, getcurrent, greenlet

from ttcodegen.foundation.diagnostics import Note
from ttcodegen.foundation.messages import did_you_mean, is_of_user
from ttcodegen.lang.simulator import loops
from ttcodegen.lang.simulator.buffers import NEVER_RELEASED_REMEDY, DataflowBuffer, never_released
from ttcodegen.lang.simulator.composition import inline_operations
from ttcodegen.lang.simulator.context import (
    Awaitable,
    Coordinates,
    Kernel,
    KernelKind,
    Launch,
    Node,
    Task,
    building_node,
    current,
    current_chip,
)
from ttcodegen.lang.simulator.functions import debug_print
from ttcodegen.lang.simulator.locations import (
    Instruction,
    ProgramError,
    error,
    error_at,
    here,
    location_of,
    syntax_of_function,
    user_frame,
)
from ttcodegen.lang.simulator.loops import check_ends
from ttcodegen.lang.simulator.meshes import mesh_of, part_of
from ttcodegen.lang.simulator.pipes import check_balance
from ttcodegen.lang.simulator.shapes import is_integer, is_tuple
from ttcodegen.lang.simulator.spelling import wrong_arguments
from ttcodegen.lang.simulator.unified import GENERATED_KERNELS, SplitOperation, has_kernels, split

_PREFIXES = ("scipy_", "")
_SUFFIXES = ("64_", "")
"""Affixes of OpenBLAS function names: in numpy's wheels, and in libraries with 64-bit indices."""


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Scope in which matmuls use a single thread, if numpy uses the OpenBLAS of its wheels.

    Other BLAS libraries keep their settings.
    """
    functions = thread_functions()
    if functions is None:
        yield
        return
    threads, set_threads = functions
    before = threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)


@cache
def thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Getter and setter of OpenBLAS's number of threads; None if numpy uses another library."""
    package = Path(np.__file__).parent
    folders = (package.with_name("numpy.libs"), package / ".dylibs")
    for path in sorted(path for folder in folders for path in folder.glob("lib*openblas*")):
        library = ctypes.CDLL(str(path))
        for prefix, suffix in product(_PREFIXES, _SUFFIXES):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                return getattr(library, names[0]), getattr(library, names[1])
    return None


# Cooperative scheduler of the kernels of all nodes: a kernel runs until it has to wait.
#
# The order is deterministic: kernels start node by node, in the order of their definitions, and
# resume in the order in which the conditions that they wait for may have changed.

MAX_NOTES = 12
"""Maximum number of waiting kernels in the notes of a deadlock."""


class Scheduler:
    """Scheduler of the kernels of one launch."""

    def __init__(self) -> None:
        self._ready: deque[Task] = deque()
        self._tasks: list[Task] = []
        self._running: Task | None = None
        self._switches = 0
        self._hub = getcurrent()

    def run(self, kernels: Sequence[Kernel]) -> None:
        """Runs kernels until they end.

        Raises:
            ProgramError: if a kernel breaks a rule, or in a deadlock.
        """
        self._hub = getcurrent()
        self._tasks = [Task(kernel, greenlet(partial(_run_kernel, kernel))) for kernel in kernels]
        self._ready.extend(self._tasks)
        outer = current.node, current.kernel
        try:
            with one_blas_thread(), loops.progress_required(self._steps, self._no_progress):
                self._run_ready()
            stuck = [task for task in self._tasks if not task.thread.dead]
            if stuck:
                raise _deadlock(stuck)
        finally:
            current.node, current.kernel = outer
            self._end()

    def _run_ready(self) -> None:
        while self._ready:
            task = self._ready.popleft()
            self._running = task
            self._switches += 1
            current.node, current.kernel = task.kernel.node, task.kernel
            task.thread.switch()

    def _steps(self) -> object:
        """Progress counter, which changes with each block operation and context switch."""
        return self._switches, self._running.kernel.steps if self._running is not None else 0

    def _no_progress(self) -> ProgramError:
        kernel = self._running.kernel if self._running is not None else "no kernel"
        return error(
            f"{kernel} makes no progress: in {loops.PROGRESS_SECONDS:g} s of processor time it "
            "has not waited, and not read, written, pushed or popped a block",
            remedy="let the loop end, or wait in it",
        )

    def _end(self) -> None:
        """Unwinds kernels that have not ended, after an error."""
        for task in self._tasks:
            if not task.thread.dead:
                task.thread.throw(GreenletExit)
        self._tasks = []
        self._ready.clear()

    def wait_until(
        self, awaitable: Awaitable, condition: Callable[[], bool], what: Callable[[], str]
    ) -> None:
        """Suspends the running kernel until a condition holds; `what` describes it for messages."""
        task = self._running
        assert task is not None
        while not condition():
            task.waits_for, task.awaited = what, awaitable
            awaitable.waiting.append(task)
            self._hub.switch()
        task.waits_for = task.awaited = None

    def changed(self, awaitable: Awaitable) -> None:
        """Wakes the kernels that wait for an object, to check their conditions again."""
        if awaitable.waiting:
            self._ready.extend(awaitable.waiting)
            awaitable.waiting.clear()


def returned_value(kernel: Kernel) -> ProgramError:
    """Error for a kernel that returns a value."""
    message = f"the kernel '{kernel.name}' returns a value; kernel functions return None"
    return error(message, at=kernel.defined)


def _run_kernel(kernel: Kernel) -> None:
    """Body of a kernel's greenlet."""
    # The device does not report infinities; numpy's error state is local to each greenlet.
    with np.errstate(all="ignore"):
        # Annotated as None, but user code may return anything.
        try:
            returned: object = kernel.function()
        except SystemExit as raised:
            frames = [frame for frame, _ in traceback.walk_tb(raised.__traceback__)]
            at = next(
                (
                    (frame.f_code, frame.f_lasti)
                    for frame in reversed(frames)
                    if is_of_user(frame.f_code.co_filename)
                ),
                kernel.defined,
            )
            raise error(f"{kernel} ends the program; a kernel ends by return", at=at) from None
    kernel.has_ended = True
    if returned is not None:
        raise returned_value(kernel)


def _frame_of(task: Task) -> FrameType | None:
    """User frame in which a kernel waits."""
    frame = task.thread.gr_frame
    return None if frame is None else user_frame(frame)


def _deadlock(stuck: Sequence[Task]) -> ProgramError:
    """Error for a deadlock, with notes on the waiting kernels and their causes."""
    notes: list[Note] = []
    for task in stuck[:MAX_NOTES]:
        assert task.waits_for is not None
        frame = _frame_of(task)
        where = location_of((frame.f_code, frame.f_lasti)) if frame is not None else None
        notes.append(Note(f"{task.kernel} waits for {task.waits_for()}", where))
    if len(stuck) > MAX_NOTES:
        notes.append(Note(f"and {len(stuck) - MAX_NOTES} more kernels wait"))
    where = notes[0].place
    awaited = {id(task.awaited): task.awaited for task in stuck if task.awaited is not None}
    explained = [note for awaitable in awaited.values() for note in awaitable.wait_notes()]
    notes += explained[:MAX_NOTES]
    message = "deadlock: no kernel can go on"
    reasons = (awaitable.endless_wait_reason() for awaitable in awaited.values())
    reason = next(filter(None, reasons), None)
    if reason is not None:
        message += f"; {reason}"
    return ProgramError(message, where, notes=notes)


# Operation functions and their kernels

MAX_KERNELS = {KernelKind.COMPUTE: 1, KernelKind.DATA_MOVEMENT: 2}
"""Maximum number of kernels of a node: compute processors count as one."""


def _device_grid() -> Coordinates:
    rows, columns = current_chip().grid
    return columns, rows


def _checked_grid(grid: object) -> Coordinates:
    if grid in ("full", "auto"):
        return _device_grid()
    if is_tuple(grid) and grid and all(is_integer(n) and int(n) > 0 for n in grid):
        return tuple(int(n) for n in grid)
    raise error(f'the grid of an operation is "full", "auto" or a tuple of sizes, not {grid!r}')


def _check_size(grid: Coordinates) -> None:
    """Raises ProgramError if a grid has more nodes than the device has cores."""
    columns, rows = _device_grid()
    if prod(grid) > columns * rows:
        raise error(
            f"a grid of {'x'.join(map(str, grid))} nodes is larger than the device, which has "
            f"{columns}x{rows} cores",
            remedy='take at most one node a core, or grid="full", and a loop in the kernels over '
            "what is left",
        )


_IGNORED_OPTIONS = frozenset(
    "fp32_dest_acc_en dst_full_sync_en math_fidelity memory_space num_outs options tiled".split()
)
"""Options that other compilers of the language know; they have no effect here."""


def operation(
    *, grid: object = "auto", **options: object
) -> Callable[[Callable[..., Any]], Operation]:
    """Decorator that makes a function an operation.

    Args:
        grid: "full" or "auto" for the grid of the device, or a tuple of sizes.
        options: options of other compilers, which have no effect.

    Raises:
        ProgramError: if the grid is larger than the device, or an option is unknown.
    """
    for name in options:
        if name not in _IGNORED_OPTIONS:
            known = did_you_mean(name, ("grid", *_IGNORED_OPTIONS))
            raise error(f"ttl.operation has no option '{name}'{known}")
    checked = _checked_grid(grid)
    _check_size(checked)
    return lambda function: Operation(function, checked)


class Operation:
    """An operation; a call runs its kernels on all nodes of its grid."""

    def __init__(self, function: Callable[..., Any], grid: Coordinates) -> None:
        self.function = function
        self.grid = grid
        functools.update_wrapper(self, function)

    @property
    def name(self) -> str:
        """Name of the function, without the underscores that make it private."""
        return self.function.__name__.strip("_") or self.function.__name__

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        if current.node is not None:
            raise error(f"the operation '{self.name}' is called inside of an operation")
        mesh = mesh_of([*arguments, *keywords.values()])
        if mesh is not None:
            count = mesh.get_num_devices()
            try:
                for device in range(count):
                    current.remaining_devices = count - 1 - device
                    parts = [part_of(value, device) for value in arguments]
                    self(*parts, **{name: part_of(each, device) for name, each in keywords.items()})
            finally:
                current.remaining_devices = 0
            return
        mistake = wrong_arguments(self.name, self.function, arguments, keywords)
        if mistake is not None:
            raise error(mistake)
        launch = self.instantiate(arguments, keywords)
        kernels = [kernel for node in launch.nodes.values() for kernel in node.kernels]
        if not kernels:
            raise error(f"the operation '{self.name}' has no kernel function")
        finish = current.watch(launch) if current.watch is not None else None
        launch.scheduler.run(kernels)
        _check_released(launch)
        check_balance(launch)
        if finish is not None:
            finish()

    @functools.cached_property
    def _split(self) -> SplitOperation | None:
        """Kernels generated from a unified body; None if the operation defines kernels itself."""
        if not isinstance(self.function, FunctionType):
            return None
        syntax = syntax_of_function(self.function)
        if syntax is None or has_kernels(syntax):
            return None
        syntax = deepcopy(syntax)
        values = inline_operations(self.function, syntax, self, _is_operation)
        return split(self.function, syntax, values)

    def _run_body(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> object:
        """Runs the body on the current node."""
        if self._split is None:
            return self.function(*arguments, **keywords)
        made = self._split.function(*arguments, **keywords)
        for role, function in zip(self._split.roles, made, strict=True):
            kind = KernelKind.COMPUTE if role.is_compute else KernelKind.DATA_MOVEMENT
            _register(kind, function, (function.__code__, 0))
        return None

    def instantiate(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Launch:
        """Creates the kernels by running the body of the operation on each node."""
        launch = Launch(
            self.name, self.grid, Scheduler(), remaining_devices=current.remaining_devices
        )
        signature = inspect.signature(self.function)
        with suppress(TypeError):  # The call itself reports arguments that do not fit.
            launch.arguments.update(signature.bind(*arguments, **keywords).arguments)
        for coordinates in product(*map(range, self.grid)):
            launch.nodes[coordinates] = current.node = Node(coordinates, launch)
            try:
                returned = self._run_body(arguments, keywords)
            finally:
                current.node = None
            if returned is not None:
                raise error(f"the operation '{self.name}' returns a value; operations return None")
        return launch


def _check_released(launch: Launch) -> None:
    for node in launch.nodes.values():
        for buffer in node.made.of(DataflowBuffer):
            for block in buffer.unreleased():
                raise error(
                    f"{never_released(buffer.name, block.acquisition)} on node {node}",
                    at=block.acquired,
                    remedy=NEVER_RELEASED_REMEDY,
                )


def _kernel_decorator(kind: KernelKind) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        node = building_node(f"a {kind.value} kernel")
        if inspect.iscoroutinefunction(function):
            raise error(no_statement("async"))
        if function.__code__.co_argcount:  # pyright: ignore
            raise error(
                f"the kernel '{function.__name__}' has arguments; kernel functions have none"
            )
        same = [kernel for kernel in node.kernels if kernel.kind is kind]
        if len(same) == MAX_KERNELS[kind]:
            raise error(
                f"a node runs at most {MAX_KERNELS[kind]} {kind.value} kernels at a time",
                notes=[Note("the first one", location_of(same[0].defined))],
            )
        _register(kind, function, here())
        return function

    return register


def _register(kind: KernelKind, function: Callable[[], None], defined: Instruction | None) -> None:
    """Makes a function a kernel of the current node."""
    node = building_node(f"a {kind.value} kernel")
    if isinstance(function, FunctionType):
        _check_statements(function)
    check_ends(function.__name__, function.__code__)  # pyright: ignore
    made = Kernel(function.__name__, kind, _with_debug_print(function), node, defined)
    node.kernels.append(made)


def no_statement(word: str) -> str:
    """Error message for a statement that kernels do not support."""
    return f"kernels of the device have no statement '{word}'"


REFUSED_STATEMENTS: dict[type[ast.AST], str] = {
    ast.Try: "try",
    ast.TryStar: "try",
    ast.ClassDef: "class",
    ast.AsyncFunctionDef: "async",
    ast.AsyncFor: "async",
    ast.AsyncWith: "async",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}
"""Statements that Python could run but kernels do not support, with their keywords."""


def no_expression(node: ast.expr) -> str:
    """Error message for an expression that kernels do not support."""
    word = REFUSED_STATEMENTS.get(type(node))
    text = ast.unparse(node)
    return no_statement(word) if word is not None else f"kernels do not compute '{text}'"


def _check_statements(kernel: FunctionType) -> None:
    """Raises ProgramError at a statement that kernels do not support."""
    syntax = GENERATED_KERNELS.get(kernel.__code__) or syntax_of_function(kernel)
    for node in ast.walk(syntax) if syntax is not None else ():
        if (word := REFUSED_STATEMENTS.get(type(node))) is not None:
            raise error_at(kernel.__code__.co_filename, no_statement(word), node)


def _is_operation(value: object) -> TypeGuard[Operation]:
    """True if a value is an operation."""
    return isinstance(value, Operation)


def compute() -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator for the compute kernel in an operation's body."""
    return _kernel_decorator(KernelKind.COMPUTE)


def datamovement() -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorator for a data movement kernel in an operation's body."""
    return _kernel_decorator(KernelKind.DATA_MOVEMENT)


def _with_debug_print(function: Callable[[], None]) -> Callable[[], None]:
    """Replaces `print` in a function by one that supports objects of the language."""
    assert isinstance(function, FunctionType)
    if "print" not in _names(function.__code__) or "print" in function.__globals__:
        return function
    known = {**vars(builtins), "print": debug_print}
    changed = FunctionType(
        function.__code__,
        {**function.__globals__, "__builtins__": known},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return changed


def _names(code: CodeType) -> set[str]:
    """Global names that a function uses, including nested functions."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))
