"""Puts the bodies of private functions where they are called.

The program that is emitted has one function per entry, so every public function has to stand alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.diagnostics import CompileError, copy_source_offset
from ttcodegen.transforms.rewriting import erase, functions


def is_entry(function: FuncOp) -> bool:
    """Whether the function is called from outside: it is public and has a body."""
    visibility = function.sym_visibility
    return not function.is_declaration and (visibility is None or visibility.data != "private")


@dataclass(frozen=True)
class InlinePass(ModulePass):
    """Leaves the entry functions only, without calls.

    Raises CompileError at a call of a function that calls itself (also through others), that is not
    there, or that has no body.
    """

    name = "inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _Inliner(op).run()


@dataclass
class _Frame:
    """A function whose calls are being inlined."""

    function: str
    calls: list[CallOp]
    expanded: int = 0


class _Inliner:
    def __init__(self, module: ModuleOp) -> None:
        self._functions = {f.sym_name.data: f for f in functions(module)}
        self._flat: set[str] = set()

    def run(self) -> None:
        for name, function in self._functions.items():
            if is_entry(function):
                self._flatten(name)
        for function in self._functions.values():
            if not is_entry(function):
                erase(function)

    def _flatten(self, entry: str) -> None:
        """Inlines the calls of one function, callees first; an explicit stack, because call chains
        may be longer than Python's."""
        stack = [_Frame(entry, self._calls(entry))]
        active = {entry}
        while stack:
            frame = stack[-1]
            if frame.expanded == len(frame.calls):
                stack.pop()
                active.discard(frame.function)
                self._flat.add(frame.function)
                continue
            call = frame.calls[frame.expanded]
            callee = self._callee(call)
            if callee in active:
                raise CompileError(
                    f"'@{callee}' calls itself: recursion has no end in a program without branches",
                    call,
                    remedy="unroll the recursion",
                )
            if callee in self._flat:
                self._expand(call, self._functions[callee])
                frame.expanded += 1
            else:
                # The call is expanded when it comes up again: its callee is flat by then.
                active.add(callee)
                stack.append(_Frame(callee, self._calls(callee)))

    def _calls(self, name: str) -> list[CallOp]:
        function = self._functions[name]
        if name in self._flat or function.is_declaration:
            return []
        return [op for op in function.body.block.ops if isinstance(op, CallOp)]

    def _callee(self, call: CallOp) -> str:
        name = call.callee.string_value()
        function = self._functions.get(name)
        if function is None or function.is_declaration:
            what = "is not in the module" if function is None else "has no body"
            raise CompileError(
                f"the called function '@{name}' {what}",
                call,
                remedy="give the whole program in one module",
            )
        return name

    def _expand(self, call: CallOp, callee: FuncOp) -> None:
        block = call.parent
        assert block is not None
        values: dict[SSAValue, SSAValue] = dict(
            zip(callee.body.block.args, call.operands, strict=True)
        )
        for op in callee.body.block.ops:
            if isinstance(op, ReturnOp):
                for result, value in zip(call.results, op.operands, strict=True):
                    result.replace_all_uses_with(values.get(value, value))
                break
            copy = op.clone(values)
            _keep_places(op, copy)
            block.insert_op_before(copy, call)
        erase(call)


def _keep_places(op: Operation, copy: Operation) -> None:
    for old, new in zip(op.walk(), copy.walk(), strict=True):
        copy_source_offset(old, new)
