"""Execution of functions op by op in numpy."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ttcodegen.dialects.operations.compute_config import Arithmetic
from ttcodegen.dialects.operations.operation import Call, ChipsMeaning, Definition, ResultInfo
from ttcodegen.dialects.ttcore.device import chips_of
from ttcodegen.flatbuffer import program as file
from ttcodegen.foundation.diagnostics import CompileError

MOST_ITERATIONS = 1 << 16
"""Upper bound on the iterations of a loop whose trip count is only known at run time."""

# Execution loop shared by the golden run and the interpreters.


class ExecutionError(Exception):
    """An op computed something else than the program declares: a bug in ttcodegen."""


class Parts(tuple[np.ndarray, ...]):
    """Shards of a tensor on the devices of a mesh, in device order.

    A tensor that all devices hold alike is a single array instead.
    """

    __slots__ = ()

    @staticmethod
    def of(arrays: Sequence[np.ndarray]) -> Value:
        """Returns a single array if all devices share it."""
        return arrays[0] if all(each is arrays[0] for each in arrays) else Parts(arrays)


Value = np.ndarray | Parts


def on_chip(value: Value, chip: int) -> np.ndarray:
    """Returns the shard of a tensor on a device."""
    return value[chip] if isinstance(value, Parts) else value


def on_each_chip(value: Value, change: Callable[[np.ndarray], np.ndarray]) -> Value:
    """Applies a function to every shard of a tensor."""
    return Parts(map(change, value)) if isinstance(value, Parts) else change(value)


class TensorInfo(Protocol):
    """Properties of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape."""
        ...

    @property
    def dtype(self) -> str:
        """Name of the numpy dtype."""
        ...

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Returns the array rounded to the tensor's type, in the compute dtype."""
        ...

    def keeps(self, moved: Self) -> bool:
        """Returns whether values of a tensor like `moved`, in another order, need no rounding."""
        ...


@dataclass(frozen=True)
class Step:
    """An op with operands and results as tensor indices of its function.

    `callee` is the function that a call runs, `definition` the semantics of any other op.
    """

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
    """Tensors that no later step uses."""

    @staticmethod
    def of_call(operation: file.Operation) -> Step:
        """Returns the step of an operation that runs another function."""
        counts = [each for each in operation.attributes if each.name == file.TRIP_COUNT]
        trips = {each.name: file.plain_value(each.value, ()) for each in counts}
        return Step(
            operation.name,
            operation.location,
            operation.operands,
            operation.results,
            attributes=trips or None,
            callee=operation.callee,
        )

    @property
    def is_loop(self) -> bool:
        """Returns whether it is a loop: with a condition as first operand, or with a trip count."""
        return self.name == file.WHILE_LOOP

    def groups(self) -> dict[str, tuple[int, ...]]:
        """Returns the operands by their names in the definition."""
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
    """A function as steps in execution order."""

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
        """Returns a function that releases every tensor after its last use.

        Arguments are pairs of name and tensor; names are for messages and need not be unique.
        """
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
    """An op that has just run."""

    function: Function
    step: Step
    results: Sequence[np.ndarray]
    """Rounded results on the first device; read-only."""


Observer = Callable[[Observation], None]
"""Called after each op; exceptions end the run."""


class Executor:
    """Runs functions that may call each other.

    In-place ops write to a copy of their operand, so that aliases do not change; callers see writes
    to arguments.
    """

    def __init__(self, functions: Mapping[str, Function], observe: Observer | None = None) -> None:
        self._functions = functions
        self._observe = observe

    def run(self, name: str, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results of a function, rounded for its tensors; shards are those of the first
        device.

        `arguments` are not modified.

        Raises:
            CompileError: if there is no such function, the arguments do not fit it, or memory is
                too small.
            ExecutionError: if an op fails or gives a wrong shape.
        """
        results, _ = self._run(name, arguments, range(len(arguments)))
        return [on_chip(result, 0) for result in results]

    def run_carried(
        self, name: str, arguments: Sequence[np.ndarray]
    ) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
        """Runs a function like `run` on arguments that are rounded for its tensors already.

        Also returns the overwritten arguments, by position.
        """
        results, overwritten = self._run(name, arguments, ())
        return (
            [on_chip(result, 0) for result in results],
            {position: on_chip(value, 0) for position, value in overwritten.items()},
        )

    def _run(
        self, name: str, arguments: Sequence[np.ndarray], borrowed: Iterable[int]
    ) -> tuple[list[Value], dict[int, Value]]:
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
    """A single run, with its stack of active functions."""

    def __init__(self, functions: Mapping[str, Function], observe: Observer | None) -> None:
        self._functions = functions
        self._observe = observe
        self._active: list[str] = []

    def run(
        self, function: Function, arguments: Sequence[Value], borrowed: Iterable[int]
    ) -> tuple[list[Value], dict[int, Value]]:
        """Returns the results, and the overwritten arguments by position.

        `borrowed` are the positions of arguments that are not rounded for their tensors yet.
        """
        if function.name in self._active:
            raise CompileError(f"function '{function.name}' calls itself")
        self._active.append(function.name)
        frame = _Frame(function, arguments, borrowed)
        for step in function.steps:
            if step.is_loop:
                results = self._loop(frame, step)
            elif step.callee is not None:
                results = self._call(frame, step.callee, step.operands, step.results)
            else:
                results = _execute(frame, step)
            for tensor, array in zip(step.results, results, strict=True):
                frame.arrays[tensor] = array
            if self._observe is not None:
                seen = [on_chip(result, 0) for result in results]
                self._observe(Observation(function, step, seen))
                del seen
            # Otherwise this frame would keep the results alive until the next step.
            del results
            for tensor in step.released:
                frame.arrays.pop(tensor, None)
        self._active.pop()
        return [frame.read(tensor) for tensor in function.results], frame.overwritten

    def _loop(self, frame: _Frame, step: Step) -> list[Value]:
        """Calls the body of a loop while its condition holds, or for its trip count.

        The carried tensors are kept in the results of the step between iterations.
        """
        trips: int | None = (step.attributes or {}).get(file.TRIP_COUNT)
        flags = step.operands[: int(trips is None)]
        given = step.operands[len(flags) :]
        carried = given[: len(step.results)]
        captured = given[len(carried) :]
        for tensor, result in zip(carried, step.results, strict=True):
            frame.arrays[result] = frame.read(tensor)
        going = [frame.read(flag) for flag in flags]
        for iteration in range(MOST_ITERATIONS + 1 if trips is None else trips + 1):
            if iteration == trips or not all(bool(on_chip(flag, 0).any()) for flag in going):
                return [frame.read(result) for result in step.results]
            operands = [*(step.results if iteration else carried), *captured]
            returned = (*flags, *step.results)
            found = self._call(frame, str(step.callee), operands, returned)
            going, values = found[: len(flags)], found[len(flags) :]
            for result, value in zip(step.results, values, strict=True):
                frame.arrays[result] = value
        raise CompileError(
            f"the loop '{step.callee}' runs more than {MOST_ITERATIONS} times on these inputs",
            remedy="give inputs for which it ends sooner",
        )

    def _call(
        self,
        frame: _Frame,
        name: str,
        passed: Sequence[int],
        returned_as: Sequence[int],
    ) -> list[Value]:
        """Returns the results of a callee on tensors of the frame, rounded for the result
        tensors."""
        callee = self._functions.get(name)
        if callee is None:
            raise CompileError(f"there is no function '{name}' to call")
        operands: list[Value] = []
        borrowed: list[int] = []
        for position, (tensor, argument) in enumerate(zip(passed, callee.arguments, strict=True)):
            source, target = frame.tensors[tensor], callee.tensors[argument]
            # What the callee rounds differently is rounded for the caller's tensor first.
            if frame.is_borrowed(tensor) and target.keeps(source):
                borrowed.append(position)
                operands.append(frame.arrays[tensor])
            else:
                operands.append(_passed(frame.read(tensor), source, target))
        results, overwritten = self.run(callee, operands, borrowed)
        for position, array in overwritten.items():
            frame.overwrite(passed[position], array)
        return [
            _passed(array, callee.tensors[returned], frame.tensors[tensor])
            for array, returned, tensor in zip(results, callee.results, returned_as, strict=True)
        ]


def _passed(value: Value, source: TensorInfo, target: TensorInfo) -> Value:
    """Returns a value rounded for a tensor of another function."""
    return value if target.keeps(source) else on_each_chip(value, target.rounded)


class _Frame:
    """Values of the tensors of a running function."""

    def __init__(
        self, function: Function, arguments: Sequence[Value], borrowed: Iterable[int]
    ) -> None:
        self.tensors = function.tensors
        self.arrays = dict(zip(function.arguments, arguments, strict=True))
        self.overwritten: dict[int, Value] = {}
        self._positions = {tensor: i for i, tensor in enumerate(function.arguments)}
        # Arguments may be large: they are converted on first use.
        self._borrowed = {function.arguments[position] for position in borrowed}

    def is_borrowed(self, tensor: int) -> bool:
        """Returns whether the array of a tensor has not been converted yet."""
        return tensor in self._borrowed

    def read(self, tensor: int) -> Value:
        """Returns the rounded elements of a tensor; raises ExecutionError if it was never
        written."""
        value = self.arrays.get(tensor)
        if value is None:
            raise ExecutionError(f"tensor {tensor} is read, and there is nothing in it")
        if tensor in self._borrowed:
            self._borrowed.remove(tensor)
            value = on_each_chip(value, self.tensors[tensor].rounded)
            self.arrays[tensor] = value
        return value

    def overwrite(self, tensor: int, value: Value) -> None:
        """Sets the elements of a tensor."""
        self._borrowed.discard(tensor)
        value = self.arrays[tensor] = on_each_chip(value, self.tensors[tensor].rounded)
        if (position := self._positions.get(tensor)) is not None:
            self.overwritten[position] = value


def _execute(frame: _Frame, step: Step) -> list[Value]:
    definition = step.definition
    assert definition is not None
    groups = step.groups()
    changed = groups[definition.in_place] if definition.in_place is not None else ()
    operands = {name: [frame.read(t) for t in tensors] for name, tensors in groups.items()}
    if definition.chips is not None and (chips := chips_of(step.attributes or {})) > 1:
        return _execute_between_chips(frame, step, definition.chips, operands, chips)
    parts = [v for values in operands.values() for v in values if isinstance(v, Parts)]
    if not parts:
        results, copies = _execute_on_chip(frame, step, operands, changed, 0)
        for tensor, copy in copies.items():
            frame.overwrite(tensor, copy)
        return list(results)
    per_chip = [
        _execute_on_chip(frame, step, operands, changed, chip) for chip in range(len(parts[0]))
    ]
    for tensor in changed:
        frame.overwrite(tensor, Parts(copies[tensor] for _, copies in per_chip))
    return [Parts(results) for results in zip(*(results for results, _ in per_chip), strict=True)]


def _call_of(
    frame: _Frame, step: Step, operands: Mapping[str, Sequence[np.ndarray]]
) -> tuple[Call, list[TensorInfo]]:
    """Returns the call of an op on arrays, and its result tensors."""
    infos = [frame.tensors[tensor] for tensor in step.results]
    groups = step.groups()
    call = Call(
        step.name,
        operands,
        step.attributes or {},
        [ResultInfo(info.shape, info.dtype) for info in infos],
        {name: [frame.tensors[t].dtype for t in tensors] for name, tensors in groups.items()},
        step.arithmetic,
    )
    return call, infos


def _execute_between_chips(
    frame: _Frame,
    step: Step,
    meaning: ChipsMeaning,
    operands: Mapping[str, Sequence[Value]],
    chips: int,
) -> list[Value]:
    calls: list[Call] = []
    for chip in range(chips):
        arrays = {name: [on_chip(v, chip) for v in values] for name, values in operands.items()}
        calls.append(_call_of(frame, step, arrays)[0])
    infos = [frame.tensors[tensor] for tensor in step.results]
    with _failures_of(step):
        found = [
            [each] if isinstance(each, np.ndarray | np.generic) else list(each)
            for each in meaning(calls)
        ]
    results: list[Value] = []
    for index, info in enumerate(infos):
        arrays = [each[index] for each in found]
        # Arrays that several devices share are rounded once and remain shared.
        unique = {id(array): array for array in arrays}
        rounded = {key: _checked(step, [array], [info], {})[0] for key, array in unique.items()}
        results.append(Parts.of([rounded[id(array)] for array in arrays]))
    return results


def _execute_on_chip(
    frame: _Frame,
    step: Step,
    operands: Mapping[str, Sequence[Value]],
    changed: Sequence[int],
    chip: int,
) -> tuple[list[np.ndarray], dict[int, np.ndarray]]:
    """Returns the results of an op on one device, and the new values of tensors written in
    place."""
    definition = step.definition
    assert definition is not None
    if definition.numpy is None:
        raise ExecutionError(f"{step}: the op has no meaning in numpy")
    groups = step.groups()
    copies = {tensor: np.array(on_chip(frame.read(tensor), chip)) for tensor in changed}
    arrays = {
        name: [
            copies[tensor] if tensor in copies else on_chip(value, chip)
            for tensor, value in zip(tensors, operands[name], strict=True)
        ]
        for name, tensors in groups.items()
    }
    call, infos = _call_of(frame, step, arrays)
    with _failures_of(step):
        found = definition.numpy(call)
    results = [found] if isinstance(found, np.ndarray | np.generic) else list(found)
    sources = {
        id(_owner(array)): frame.tensors[tensor]
        for name, tensors in groups.items()
        for tensor, array in zip(tensors, arrays[name], strict=True)
        if tensor not in copies
    }
    return _checked(step, results, infos, sources), copies


@contextmanager
def _failures_of(step: Step) -> Generator[None]:
    """Adds the op to the errors of its evaluation."""
    try:
        yield
    except (MemoryError, CompileError):
        raise
    except IndexError as error:
        raise CompileError(
            f"'{step.name}' cannot run: {error}",
            remedy="an index is out of range",
        ) from error
    except Exception as error:
        raise ExecutionError(f"{step}: {type(error).__name__}: {error}") from error


def _owner(array: np.ndarray) -> object:
    """Returns the array that owns the memory of an array."""
    return array if array.base is None else array.base


def _checked(
    step: Step,
    arrays: Sequence[np.ndarray],
    infos: Sequence[TensorInfo],
    sources: Mapping[int, TensorInfo],
) -> list[np.ndarray]:
    """Returns the results of an op, rounded for their tensors.

    `sources` are the operands by the owner of their memory: views of them may need no rounding.
    """
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
