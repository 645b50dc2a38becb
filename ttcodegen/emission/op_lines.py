"""The lines of the printed C++ that belong to each op of a lowered module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.foundation.diagnostics import source_offset
from ttcodegen.optimizer.overrides.overrides import CallNames

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from ttcodegen.emitc.printer import PrintedLines


class LoweredOp(NamedTuple):
    """An op of a lowered module, as those know it who do not have the module."""

    function: str
    name: str
    """Its name among the ops of the function."""
    offset: int | None
    """The location in the source of the op that it was made from."""


class OpLines(NamedTuple):
    """Lines of a file that belong to an op, counted from 1, both ends included."""

    op: LoweredOp
    path: str
    first: int
    last: int


@dataclass(frozen=True)
class _Launched:
    """A device program, as it is launched."""

    launch: LoweredOp
    kernels: Sequence[str]
    """The files of its kernels."""
    computed: Sequence[LoweredOp]
    """The ops that say what it computes."""


@dataclass
class LoweredOps:
    """The ops of the functions of a module, collected before it becomes C++.

    Device programs are known by the ops that launch them.

    Args:
        module: the lowered module.
        kernel_paths: the file of each kernel, by the names of its program and its own.
    """

    module: ModuleOp
    kernel_paths: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _ops: dict[Operation, LoweredOp] = field(default_factory=lambda: {})
    _launched: list[_Launched] = field(default_factory=list[_Launched])

    def __post_init__(self) -> None:
        launches: list[Operation] = []
        computed: dict[str, list[LoweredOp]] = {}
        for function in self.module.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                computed[function.sym_name.data] = self._add(function, launches)
        if not launches:
            return
        # What only device programs need takes longer to import than a small model to lower.
        from ttcodegen.dialects.ttmetal.device_module import launch_of

        for op in launches:
            found = launch_of(op)
            program = found.program
            kernels = [self.kernel_paths[program.name, kernel.name] for kernel in program.kernels]
            self._launched.append(
                _Launched(
                    self._ops[op], list(dict.fromkeys(kernels)), computed.get(found.meaning, [])
                )
            )

    def _add(self, function: FuncOp, launches: list[Operation]) -> list[LoweredOp]:
        names = CallNames(function)
        added: list[LoweredOp] = []
        taken = set(names)
        launched = 0
        for op in function.body.block.ops:
            if op in names:
                name = names[op]
            elif operation_name(op) == RUN_PROGRAM:
                launched += 1
                launches.append(op)
                name = f"{RUN_PROGRAM.rpartition('.')[2]}:{launched}"
            elif op.results and (hint := op.results[0].name_hint) is not None and hint not in taken:
                # A buffer that a program writes.
                name = hint
                taken.add(hint)
            else:
                continue
            self._ops[op] = LoweredOp(names.function, name, source_offset(op))
            added.append(self._ops[op])
        return added

    def lines(
        self, files: Mapping[str, str], printed: Mapping[str, Sequence[PrintedLines]]
    ) -> tuple[OpLines, ...]:
        """The lines of the ops.

        A kernel belongs as a whole to the launches of its program, and both belong to the ops that
        the program computes.

        Args:
            files: the text of each file that was printed.
            printed: which of its lines belong to which op.
        """
        found = list(self._printed(printed))
        launching: dict[LoweredOp, list[OpLines]] = {}
        for each in found if self._launched else ():
            launching.setdefault(each.op, []).append(each)
        for program in self._launched:
            whole = [
                OpLines(program.launch, path, 1, files[path].count("\n"))
                for path in program.kernels
            ]
            found += whole
            for op in program.computed:
                found += [
                    each._replace(op=op) for each in (*launching.get(program.launch, ()), *whole)
                ]
        return tuple(found)

    def _printed(self, printed: Mapping[str, Sequence[PrintedLines]]) -> Iterator[OpLines]:
        for path, lines in printed.items():
            for each in lines:
                op = self._ops.get(each.origin)
                if op is not None:
                    yield OpLines(op, path, each.first + 1, each.end)
