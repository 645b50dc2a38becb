"""Puts the bodies of private functions where they are called.

The program that is emitted has one function per entry, so every public function has to be
self-contained.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.operations.functions import is_cpu_function, is_generic_function
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttnn.placement import has_placement
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.transforms.rewriting import erase, functions


def is_entry(function: FuncOp) -> bool:
    """True if the function is called from outside: it is public and has a body."""
    visibility = function.sym_visibility
    return not function.is_declaration and (visibility is None or visibility.data != "private")


@dataclass(frozen=True)
class InlinePass(ModulePass):
    """Leaves the entry functions, without calls, and the functions for the CPU and the regions of
    `ttir.generic` that they call.

    Raises CompileError at a call of a function that calls itself (also through others), that is not
    there, or that has no body.
    """

    name = "inline"
    cpu_functions: bool = False
    """Puts the bodies of functions for the CPU in place of the calls as well."""
    generics: bool = False
    """Puts the regions of `ttir.generic` in place of the calls as well."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, LoadCachedOp) and not any(map(has_placement, inner.results)):
                _call(op, inner)
        _Inliner(op, self).run()


def _call(module: ModuleOp, cached: LoadCachedOp) -> None:
    """Makes an ordinary call of one whose results another compiler wanted to keep: what of a
    program is computed once is found out again, from the kinds of its arguments."""
    callee = cached.callee.string_value()
    for function in functions(module):
        if function.sym_name.data == callee:
            function.sym_visibility = StringAttr("private")
    call = CallOp(callee, list(cached.inputs), [result.type for result in cached.results])
    copy_source_offset(cached, call)
    Rewriter.replace_op(cached, call)


_MOST_OPS = 1_000_000
"""Upper bound on ops after inlining: nested calls can grow exponentially."""


@dataclass
class _Frame:
    """A function whose calls are being followed."""

    function: str
    calls: list[CallOp]
    followed: int = 0


class _Inliner:
    def __init__(self, module: ModuleOp, options: InlinePass) -> None:
        self._functions = {f.sym_name.data: f for f in functions(module)}
        self._kept = {
            name: False
            for name, function in self._functions.items()
            if (is_cpu_function(function) and not options.cpu_functions)
            or (is_generic_function(function) and not options.generics)
        }
        """Functions whose calls stay, and whether one is called."""
        self._sizes: dict[str, int] = {}
        """Number of ops of each function after inlining, callees first."""

    def run(self) -> None:
        for name, function in self._functions.items():
            if is_entry(function):
                self._measure(name)
        for name in [name for name, called in self._kept.items() if called]:
            self._measure(name)
        for name in self._sizes:
            for call in self._calls(name):
                if not self._stays(name, self._callee(call)):
                    self._expand(call, self._functions[self._callee(call)])
        for name, function in self._functions.items():
            if not is_entry(function) and not self._kept.get(name):
                erase(function)

    def _stays(self, caller: str, callee: str) -> bool:
        """True if a call stays; none does between functions for the CPU."""
        if callee not in self._kept:
            return False
        ends = (self._functions[caller], self._functions[callee])
        return not all(map(is_cpu_function, ends))

    def _measure(self, entry: str) -> None:
        """Follows the calls of one function, callees first; an explicit stack, because call chains
        may be longer than Python's."""
        stack = [_Frame(entry, self._calls(entry))]
        active = {entry}
        while stack:
            frame = stack[-1]
            if frame.followed == len(frame.calls):
                stack.pop()
                active.discard(frame.function)
                self._sizes.setdefault(frame.function, self._size(frame))
                continue
            call = frame.calls[frame.followed]
            callee = self._callee(call)
            if callee in active:
                raise CompileError(
                    f"'@{callee}' calls itself: recursion has no end in a program without branches",
                    call,
                    remedy="unroll the recursion",
                )
            frame.followed += 1
            if self._stays(frame.function, callee):
                self._kept[callee] = True
            elif callee not in self._sizes:
                active.add(callee)
                stack.append(_Frame(callee, self._calls(callee)))

    def _size(self, frame: _Frame) -> int:
        """The size of a function whose callees are measured."""
        size = sum(1 for _ in self._functions[frame.function].body.block.ops)
        for call in frame.calls:
            # Some stay calls.
            size += self._sizes.get(self._callee(call), 1)
            if size > _MOST_OPS:
                raise CompileError(
                    f"the calls of '@{frame.function}' expand to more than {_MOST_OPS} operations",
                    call,
                )
        return size

    def _calls(self, name: str) -> list[CallOp]:
        function = self._functions[name]
        if function.is_declaration:
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
