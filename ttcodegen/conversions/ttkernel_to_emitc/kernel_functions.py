"""The functions of a kernel in C++: `kernel_main`, and one for each stage of a long kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ttcodegen.conversions.ttkernel_to_emitc.arguments import KernelArguments, spelled
from ttcodegen.conversions.ttkernel_to_emitc.stages import Stage, stages_of
from ttcodegen.dialects.ttkernel.attributes import ThreadType
from ttcodegen.dialects.ttkernel.cpp_calls import cpp_type
from ttcodegen.dialects.ttkernel.operation import constant_integer, kernel_thread
from ttcodegen.dialects.ttmetal.programs import Kernel, Program
from ttcodegen.emitc.builder import EmitCBuilder
from ttcodegen.emitc.identifiers import NameScope, identifier, type_name
from ttcodegen.naming.sources import constant_name, name_in_text

_INLINE = {ThreadType.COMPUTE: "ALWI", ThreadType.NOC: "FORCE_INLINE"}
"""What tt-metal calls a function that is always inlined, in headers that any kernel includes."""
_SYMBOLS: Mapping[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.DivUIOp: "/",
    arith.RemUIOp: "%",
}


class KernelFunctions(KernelArguments):
    """Writes a kernel as one function or several.

    Args:
        file: where to.
        function: the kernel.
        kernel: its arguments.
        program: what it belongs to.
    """

    def __init__(
        self, file: EmitCBuilder, function: FuncOp, kernel: Kernel, program: Program
    ) -> None:
        super().__init__(file.function("kernel_main", []), kernel, program, kernel_thread(function))
        self._file = file
        self._stages = stages_of(function)
        self._functions = EmitCBuilder(Block())
        if self._stages:
            self.declarations = EmitCBuilder(Block())

    def stage_at(self, op: Operation) -> Stage | None:
        """The stage that begins with an op."""
        return self._stages.get(op)

    def call_stage(self, stage: Stage, write: Callable[[Iterable[Operation]], None]) -> None:
        """Calls the function of a stage, and writes it; `write` writes ops to the body."""
        captured = [value for value in stage.captured if value not in self.constants]
        name = self.names.unique(identifier(stage.name))
        self.body.call_void(name, *(self.values[value] for value in captured))
        outer = self.body, self.values
        definition = EmitCBuilder(Block())
        if stage.purpose:
            definition.comment(stage.purpose)
        types, parameters = self._parameters(captured)
        specifiers = [f"template <{', '.join(types)}>"] if types else []
        specifiers.append(_INLINE[self.thread])
        self.body = definition.function(name, parameters, specifiers=specifiers)
        self.values = dict(zip(captured, self.body.arguments, strict=True))
        write(stage.repeated)
        write(stage.ops)
        self.body.return_()
        self.body, self.values = outer
        _move(definition, self._functions)

    def _parameters(self, values: Sequence[SSAValue]) -> tuple[list[str], list[tuple[str, str]]]:
        """Template parameters of a function that takes these values, and its parameters."""
        types: list[str] = []
        parameters: list[tuple[str, str]] = []
        scope = NameScope()
        objects = sum(cpp_type(value.type) == "auto" for value in values)
        for value in values:
            name = scope.unique(identifier(name_in_text(value, "value")))
            type_ = cpp_type(value.type)
            if type_ == "auto":
                type_ = "Tensor" if objects == 1 else type_name(name)
                types.append(f"typename {type_}")
                type_ = f"const {type_}&"
            parameters.append((name, type_))
        return types, parameters

    def declared_size(self, result: SSAValue, name: str) -> bool:
        """Declares a size that is known when the kernel is compiled at file scope, where all of its
        functions see it; whether that is what the size is."""
        if not self._stages:
            return False
        text = self._constant_text(result)
        if text is None:
            return False
        unique = self.names.unique(identifier(name))
        self.declarations.verbatim(f"constexpr uint32_t {unique} = {text};")
        self._declared(result, unique, "uint32_t")
        return True

    def _constant_text(self, value: SSAValue) -> str | None:
        """The expression of a size; None if it is known only when the kernel runs."""
        if value in self.constants:
            return self.constants[value][0]
        number = constant_integer(value)
        if number is not None and constant_name(value, number) is None:
            return spelled(number)
        op = value.owner
        symbol = _SYMBOLS.get(type(op)) if isinstance(op, Operation) else None
        if symbol is None or not isinstance(op, Operation):
            return None
        left, right = (self._constant_text(operand) for operand in op.operands)
        if left is None or right is None:
            return None
        if " " in left and not (symbol == "*" and isinstance(op.operands[0].owner, arith.MuliOp)):
            left = f"({left})"
        return f"{left} {symbol} {f'({right})' if ' ' in right else right}"

    def finish(self) -> None:
        """Completes the file: what the functions share comes first, `kernel_main` last."""
        self.body.return_()
        if not self._stages:
            return
        before = EmitCBuilder(Block())
        _move(self.declarations, before)
        before.blank()
        _move(self._functions, before)
        main = self.body.block.parent_op()
        assert main is not None
        ops = list(before.block.ops)
        for op in ops:
            op.detach()
        self._file.block.insert_ops_before(ops, main)


def _move(source: EmitCBuilder, target: EmitCBuilder) -> None:
    """Moves ops to the end of another block."""
    for op in list(source.block.ops):
        op.detach()
        target.block.add_op(op)
