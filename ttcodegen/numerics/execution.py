"""Runs functions op by op in numpy: the loop that the golden and the interpreter share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.arithmetic import Arithmetic
from ttcodegen.flatbuffer import program as file
from ttcodegen.ops.definition import Call, Definition, ResultInfo


class ExecutionError(Exception):
    """An op did not compute what the program says it computes: a bug in ttcodegen."""


class TensorInfo(Protocol):
    """What the loop needs to know of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        ...

    @property
    def dtype(self) -> str:
        """The name of the numpy dtype."""
        ...

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """The array as such a tensor holds it, in the dtype that is computed with."""
        ...

    def keeps(self, moved: Self) -> bool:
        """Whether elements that a tensor like `moved` holds, in another order, are held as well."""
        ...


@dataclass(frozen=True)
class Step:
    """One op. Operands and results are indices of tensors of the function; `callee` is the function
    that a call runs, `definition` what any other op means."""

    name: str
    location: str | None
    operands: tuple[int, ...]
    results: tuple[int, ...]
    definition: Definition | None = None
    operand_sizes: tuple[int, ...] = ()
    attributes: Mapping[str, Any] | None = None
    callee: str | None = None
    arithmetic: Arithmetic | None = None
    released: tuple[int, ...] = ()
    """The tensors that no later step uses."""

    @staticmethod
    def of_call(operation: file.Operation) -> Step:
        """The step of an operation that runs another function."""
        return Step(
            operation.name,
            operation.location,
            operation.operands,
            operation.results,
            callee=operation.callee,
        )

    def groups(self) -> dict[str, tuple[int, ...]]:
        """The operands by the names of the definition."""
        assert self.definition is not None
        groups: dict[str, tuple[int, ...]] = {}
        start = 0
        for spec, size in zip(self.definition.operands, self.operand_sizes, strict=True):
            groups[spec.name] = self.operands[start : start + size]
            start += size
        return groups

    def __str__(self) -> str:
        return f"{self.name} at {self.location}" if self.location else self.name


@dataclass(frozen=True)
class Function:
    """A function in the order of execution."""

    name: str
    tensors: Sequence[TensorInfo]
    arguments: tuple[int, ...]
    argument_names: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    @staticmethod
    def of(
        name: str,
        tensors: Sequence[TensorInfo],
        arguments: Sequence[tuple[str, int]],
        steps: Iterable[Step],
        results: Sequence[int],
    ) -> Function:
        """A function that lets go of every tensor after its last use. Its arguments are names, for
        messages, and tensors; they are identified by their places, for names may be equal."""
        ordered = tuple(steps)
        return Function(
            name,
            tensors,
            tuple(tensor for _, tensor in arguments),
            tuple(name for name, _ in arguments),
            _with_releases(ordered, results),
            tuple(results),
        )


def _with_releases(steps: Sequence[Step], results: Sequence[int]) -> tuple[Step, ...]:
    needed = set(results)
    releasing: list[Step] = []
    for step in reversed(steps):
        touched = dict.fromkeys((*step.operands, *step.results))
        released = tuple([tensor for tensor in touched if tensor not in needed])
        needed.update(released)
        releasing.append(replace(step, released=released))
    releasing.reverse()
    return tuple(releasing)


@dataclass(frozen=True)
class Observation:
    """An op that was just run."""

    function: Function
    step: Step
    results: Sequence[np.ndarray]
    """Rounded for the tensors of the function; not to be changed."""


Observer = Callable[[Observation], None]
"""Called after each op. What it raises ends the run."""


class Executor:
    """Runs functions that may call each other.

    An op that overwrites an operand gets a copy of it, so that nothing else that was computed from
    the tensor changes; an argument that was overwritten is so for the caller as well.
    """

    def __init__(self, functions: Mapping[str, Function], observe: Observer | None = None) -> None:
        self._functions = functions
        self._observe = observe

    def run(self, name: str, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results of a function, rounded for its tensors. `arguments` are left as they are.

        Raises:
            CompileError: if there is no such function, the arguments do not fit it, or memory is
                too small.
            ExecutionError: if an op fails or gives a wrong shape.
        """
        return self._run(name, arguments, range(len(arguments)))[0]

    def run_carried(
        self, name: str, arguments: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """As `run`, for arguments that are in the carriers of their tensors already; gives also
        what those that were overwritten hold then, by their position."""
        return self._run(name, arguments, ())

    def _run(
        self, name: str, arguments: Sequence[np.ndarray], borrowed: Iterable[int]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        function = self._functions.get(name)
        if function is None:
            known = ", ".join(f"'{known}'" for known in self._functions)
            raise CompileError(f"there is no function '{name}'", remedy=f"there are {known}")
        _check_arguments(function, arguments)
        try:
            with np.errstate(all="ignore"):
                return _Run(self._functions, self._observe).run(function, arguments, borrowed)
        except MemoryError:
            raise CompileError(f"'{name}' needs more memory than there is") from None


def _check_arguments(function: Function, arguments: Sequence[np.ndarray]) -> None:
    if len(arguments) != len(function.arguments):
        raise CompileError(
            f"'{function.name}' takes {len(function.arguments)} inputs, found {len(arguments)}"
        )
    for tensor, name, array in zip(
        function.arguments, function.argument_names, arguments, strict=True
    ):
        expected = function.tensors[tensor].shape
        if array.shape != expected:
            raise CompileError(
                f"the input '{name}' of '{function.name}' should have shape {expected}, "
                f"found {array.shape}"
            )


class _Run:
    """One run, with the functions that are being run in it."""

    def __init__(self, functions: Mapping[str, Function], observe: Observer | None) -> None:
        self._functions = functions
        self._observe = observe
        self._active: list[str] = []

    def run(
        self, function: Function, arguments: Sequence[np.ndarray], borrowed: Iterable[int]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """The results, and the arguments that were overwritten by their position; `borrowed` are
        the positions of arguments that are not in the carriers of their tensors yet."""
        if function.name in self._active:
            raise CompileError(f"function '{function.name}' calls itself")
        self._active.append(function.name)
        frame = _Frame(function, arguments, borrowed)
        for step in function.steps:
            if step.callee is not None:
                results = self._call(frame, step, step.callee)
            else:
                results = _execute(frame, step)
            for tensor, array in zip(step.results, results, strict=True):
                frame.arrays[tensor] = array
            if self._observe is not None:
                self._observe(Observation(function, step, results))
            # A frame that still holds them would keep the results of this step alive.
            del results
            for tensor in step.released:
                frame.arrays.pop(tensor, None)
        self._active.pop()
        return [frame.read(tensor) for tensor in function.results], frame.overwritten

    def _call(self, frame: _Frame, step: Step, name: str) -> list[np.ndarray]:
        callee = self._functions.get(name)
        if callee is None:
            raise CompileError(f"there is no function '{name}' to call")
        operands: list[np.ndarray] = []
        borrowed: list[int] = []
        for position, (tensor, argument) in enumerate(
            zip(step.operands, callee.arguments, strict=True)
        ):
            if frame.is_borrowed(tensor):
                borrowed.append(position)
                operands.append(frame.arrays[tensor])
            else:
                source, target = frame.tensors[tensor], callee.tensors[argument]
                operands.append(_passed(frame.read(tensor), source, target))
        results, overwritten = self.run(callee, operands, borrowed)
        for position, array in overwritten.items():
            frame.overwrite(step.operands[position], array)
        return [
            _passed(array, callee.tensors[returned], frame.tensors[tensor])
            for array, returned, tensor in zip(results, callee.results, step.results, strict=True)
        ]


def _passed(array: np.ndarray, source: TensorInfo, target: TensorInfo) -> np.ndarray:
    """An array of one function rounded for a tensor of another one."""
    return array if target.keeps(source) else target.rounded(array)


class _Frame:
    """The arrays of a function that runs."""

    def __init__(
        self, function: Function, arguments: Sequence[np.ndarray], borrowed: Iterable[int]
    ) -> None:
        self.tensors = function.tensors
        self.arrays = dict(zip(function.arguments, arguments, strict=True))
        self.overwritten: dict[int, np.ndarray] = {}
        self._positions = {tensor: i for i, tensor in enumerate(function.arguments)}
        # Arguments may be large and are converted when they are first used.
        self._borrowed = {function.arguments[position] for position in borrowed}

    def is_borrowed(self, tensor: int) -> bool:
        """Whether the array of a tensor was not converted yet."""
        return tensor in self._borrowed

    def read(self, tensor: int) -> np.ndarray:
        """The rounded array of a tensor; raises ExecutionError if there is none."""
        array = self.arrays.get(tensor)
        if array is None:
            raise ExecutionError(f"tensor {tensor} is read, and there is nothing in it")
        if tensor in self._borrowed:
            self._borrowed.remove(tensor)
            array = self.arrays[tensor] = self.tensors[tensor].rounded(array)
        return array

    def overwrite(self, tensor: int, array: np.ndarray) -> None:
        """Gives a tensor other elements."""
        self._borrowed.discard(tensor)
        array = self.arrays[tensor] = self.tensors[tensor].rounded(array)
        if (position := self._positions.get(tensor)) is not None:
            self.overwritten[position] = array


def _execute(frame: _Frame, step: Step) -> list[np.ndarray]:
    definition = step.definition
    assert definition is not None
    if definition.numpy is None:
        raise ExecutionError(f"{step}: the op has no meaning in numpy")
    groups = step.groups()
    changed = groups[definition.in_place] if definition.in_place is not None else ()
    copies = {tensor: np.array(frame.read(tensor)) for tensor in changed}
    operands = {
        name: [copies[t] if t in copies else frame.read(t) for t in tensors]
        for name, tensors in groups.items()
    }
    infos = [frame.tensors[tensor] for tensor in step.results]
    call = Call(
        step.name,
        operands,
        step.attributes or {},
        [ResultInfo(info.shape, info.dtype) for info in infos],
        {name: [frame.tensors[t].dtype for t in tensors] for name, tensors in groups.items()},
        step.arithmetic,
    )
    try:
        found = definition.numpy(call)
    except (MemoryError, CompileError):
        raise
    except IndexError as error:
        raise CompileError(
            f"'{step.name}' cannot run: {error}",
            remedy="the indices that it got name places that are not there",
        ) from error
    except Exception as error:
        raise ExecutionError(f"{step}: {type(error).__name__}: {error}") from error
    arrays = [found] if isinstance(found, np.ndarray | np.generic) else list(found)
    for tensor, copy in copies.items():
        frame.overwrite(tensor, copy)
    sources = {
        id(_owner(array)): frame.tensors[tensor]
        for name, tensors in groups.items()
        for tensor, array in zip(tensors, operands[name], strict=True)
        if tensor not in copies
    }
    return _checked(step, arrays, infos, sources)


def _owner(array: np.ndarray) -> object:
    """Who holds the memory of an array."""
    return array if array.base is None else array.base


def _checked(
    step: Step,
    arrays: Sequence[np.ndarray],
    infos: Sequence[TensorInfo],
    sources: Mapping[int, TensorInfo],
) -> list[np.ndarray]:
    """The results of an op in their carriers; `sources` are the operands by who holds their memory:
    a view of one of them has nothing to be rounded."""
    if len(arrays) != len(infos):
        raise ExecutionError(f"{step}: {len(infos)} results declared, {len(arrays)} computed")
    rounded: list[np.ndarray] = []
    for index, (array, info) in enumerate(zip(arrays, infos, strict=True)):
        array = np.asarray(array)
        if array.shape != info.shape:
            raise ExecutionError(
                f"{step}: result {index} is declared as {info.shape}, computed as {array.shape}"
            )
        source = sources.get(id(_owner(array)))
        kept = source is not None and info.keeps(source)
        rounded.append(array if kept else info.rounded(array))
    return rounded
