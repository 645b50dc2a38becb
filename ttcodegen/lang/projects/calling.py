"""Operations of programs that a compiled model calls, by the names that it has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import RLock

import numpy as np

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.lang.compiler.operations import operation_program
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.simulator.context import Launch, current, on_system
from ttcodegen.lang.simulator.operations import Operation
from ttcodegen.lang.simulator.tensors import Tensor
from ttcodegen.ops.tt_lang import CalledProgram, GivenTensor
from ttcodegen.systems.cards import default_machine
from ttcodegen.systems.description import SystemDescription

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

    def refusal(self, kernel_id: str) -> str | None:
        """Returns why there is no operation of this name, or None if there is one."""
        count = len(self._matches(kernel_id))
        if count == 1:
            return None
        if count:
            return f"several programs have an operation '{kernel_id}': say PROGRAM.OPERATION"
        known = ", ".join(f"{program}.{name}" for program, name in sorted(self.found))
        return f"no program has the operation '{kernel_id}'; there are: {known or 'none'}"

    def _matches(self, kernel_id: str) -> list[Operation]:
        path = kernel_id.partition("::")[0].split(".")
        name, program = path[-1].strip("_") or path[-1], path[-2] if len(path) > 1 else None
        of_name = {key: each for key, each in self.found.items() if key[1] == name}
        exact = [each for key, each in of_name.items() if key[0] == program]
        return exact or list(of_name.values())

    def _operation(self, kernel_id: str) -> Operation:
        refusal = self.refusal(kernel_id)
        if refusal is not None:
            raise CompileError(refusal)
        return self._matches(kernel_id)[0]

    def run(self, kernel_id: str, tensors: Sequence[GivenTensor]) -> list[np.ndarray]:
        """Simulates an operation and returns the contents of its tensors."""
        given = [_tensor(tensor) for tensor in tensors]
        with _SIMULATOR, on_system(self.system):
            self._operation(kernel_id)(*given)
        return [tensor.elements() for tensor in given]

    def program(self, kernel_id: str, tensors: Sequence[GivenTensor], name: str) -> CalledProgram:
        """The program that an operation is for tensors of these kinds, under a name.

        Raises:
            CompileError: if the compiler does not take the operation.
        """
        given = [_tensor(tensor) for tensor in tensors]
        with _SIMULATOR, on_system(self.system):
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
        with _SIMULATOR, on_system(self.system):
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
        with on_system(system):
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
