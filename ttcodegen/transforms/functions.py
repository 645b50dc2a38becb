"""Inlining, dead function elimination, and common subexpressions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ttcodegen.dialects.operations.functions import (
    callee_of,
    is_cpu_function,
    is_generic_function,
    is_loop_body,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.dialects.ttcore.loops import WhileLoopOp
from ttcodegen.dialects.ttnn.placement import has_placement
from ttcodegen.foundation.diagnostics import CompileError, copy_source_offset
from ttcodegen.transforms.rewriting import (
    InPlaceWrites,
    erase,
    function_blocks,
    functions,
    is_repeatable,
)

# Inlining of private functions.
#
# The emitted program has one function per entry, so every public function has to be
# self-contained.


def is_entry(function: FuncOp) -> bool:
    """Returns whether the function is called from outside: it is public and has a body."""
    visibility = function.sym_visibility
    return not function.is_declaration and (visibility is None or visibility.data != "private")


@dataclass(frozen=True)
class InlinePass(ModulePass):
    """Inlines all calls but those of CPU functions, `ttir.generic` regions and loop bodies.

    Raises CompileError at a call of a recursive function, of one that is not in the module, or of
    one without a body.
    """

    name = "inline"
    cpu_functions: bool = False
    """True if calls of CPU functions are inlined as well."""
    generics: bool = False
    """True if regions of `ttir.generic` are inlined as well."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, LoadCachedOp) and not any(map(has_placement, inner.results)):
                _replace_cached_load(op, inner)
        _Inliner(op, self).run()


def _replace_cached_load(module: ModuleOp, cached: LoadCachedOp) -> None:
    """Replaces `ttcore.load_cached` of unplaced tensors by an ordinary call.

    Const-eval hoisting recomputes the split from the argument types.
    """
    callee = cached.callee.string_value()
    for function in functions(module):
        if function.sym_name.data == callee:
            function.sym_visibility = StringAttr("private")
    call = CallOp(callee, list(cached.inputs), [result.type for result in cached.results])
    copy_source_offset(cached, call)
    Rewriter.replace_op(cached, call)


Call = CallOp | WhileLoopOp

_MOST_OPS = 1_000_000
"""Upper bound on ops after inlining: nested calls can grow exponentially."""


@dataclass
class _Frame:
    """Entry of the call stack: a function and how many of its calls were followed."""

    function: str
    calls: list[Call]
    followed: int = 0


class _Inliner:
    def __init__(self, module: ModuleOp, options: InlinePass) -> None:
        self._functions = {f.sym_name.data: f for f in functions(module)}
        self._outlined = {
            name: False
            for name, function in self._functions.items()
            if (is_cpu_function(function) and not options.cpu_functions)
            or (is_generic_function(function) and not options.generics)
            or is_loop_body(function)
        }
        """Functions whose calls are not inlined, and whether one is called."""
        self._sizes: dict[str, int] = {}
        """Number of ops of each function after inlining, callees first."""

    def run(self) -> None:
        for name, function in self._functions.items():
            if is_entry(function):
                self._measure(name)
        for name in [name for name, called in self._outlined.items() if called]:
            self._measure(name)
        for name in self._sizes:
            for call in self._calls(name):
                if isinstance(call, CallOp) and not self._is_outlined_call(
                    name, self._callee(call)
                ):
                    self._expand(call, self._functions[self._callee(call)])
        for name, function in self._functions.items():
            if not is_entry(function) and not self._outlined.get(name):
                erase(function)

    def _is_outlined_call(self, caller: str, callee: str) -> bool:
        """Returns whether a call is kept; calls between CPU functions are always inlined, but
        bodies of loops."""
        if callee not in self._outlined:
            return False
        ends = (self._functions[caller], self._functions[callee])
        return is_loop_body(ends[1]) or not all(map(is_cpu_function, ends))

    def _measure(self, entry: str) -> None:
        """Measures a function after its callees.

        Uses an explicit stack: call chains may exceed Python's recursion limit.
        """
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
            stays = self._is_outlined_call(frame.function, callee)
            if stays:
                self._outlined[callee] = True
            if callee not in self._sizes and (not stays or isinstance(call, WhileLoopOp)):
                active.add(callee)
                stack.append(_Frame(callee, self._calls(callee)))

    def _size(self, frame: _Frame) -> int:
        """Returns the size of a function whose callees are measured."""
        size = sum(1 for _ in self._functions[frame.function].body.block.ops)
        for call in frame.calls:
            # Calls that are not inlined count as one op.
            size += self._sizes.get(self._callee(call), 1)
            if size > _MOST_OPS:
                raise CompileError(
                    f"the calls of '@{frame.function}' expand to more than {_MOST_OPS} operations",
                    call,
                )
        return size

    def _calls(self, name: str) -> list[Call]:
        function = self._functions[name]
        if function.is_declaration:
            return []
        return [op for op in function.body.block.ops if isinstance(op, Call)]

    def _callee(self, call: Call) -> str:
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
            copy_locations(op, copy)
            block.insert_op_before(copy, call)
        erase(call)


def copy_locations(op: Operation, copy: Operation) -> None:
    """Copies the locations of an op and of its regions to a clone."""
    for old, new in zip(op.walk(), copy.walk(), strict=True):
        copy_source_offset(old, new)


# Dead function elimination.


@dataclass(frozen=True)
class SymbolDCE(ModulePass):
    """Erases private functions that no public function reaches."""

    name = "symbol-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.walk() if isinstance(f, FuncOp)}
        pending = [name for name, function in functions.items() if not _is_private(function)]
        used: set[str] = set()
        while pending:
            name = pending.pop()
            if name in used or name not in functions:
                continue
            used.add(name)
            pending += [c for inner in functions[name].walk() if (c := callee_of(inner))]
        for name, function in functions.items():
            if name not in used:
                erase(function)


def _is_private(function: FuncOp) -> bool:
    visibility = function.sym_visibility
    return visibility is not None and visibility.data == "private"


# Common subexpression elimination.


class _Identities:
    """Numbers attributes such that equal ones get the same number.

    Most equal attributes are the same object, so identities are looked up before values.
    """

    def __init__(self) -> None:
        self._by_value: dict[Attribute, int] = {}
        self._by_identity: dict[int, tuple[int, Attribute]] = {}

    def __getitem__(self, attribute: Attribute) -> int:
        found = self._by_identity.get(id(attribute))
        if found is None:
            number = self._by_value.setdefault(attribute, len(self._by_value))
            # Holding a reference keeps the id from being reused.
            found = self._by_identity[id(attribute)] = (number, attribute)
        return found[0]


def merge_common_subexpressions(
    function: FuncOp, among: Collection[Operation] | None = None
) -> list[Operation]:
    """Replaces equal ops by the first of them; returns the users of the merged ops.

    Ops with a write to one of their operands in between are not equal, and results that are
    overwritten keep their own buffers.

    Args:
        function: the function, with all of its blocks.
        among: the ops that may be merged; all if not given.
    """
    identities = _Identities()
    users: dict[Operation, None] = {}
    for block in function_blocks(function):
        _merge(block, identities, users, among)
    return list(users)


def _merge(
    block: Block,
    identities: _Identities,
    users: dict[Operation, None],
    among: Collection[Operation] | None,
) -> None:
    writes = InPlaceWrites(block)
    first: dict[tuple[object, ...], CatalogueOp] = {}
    op = block.first_op
    while op is not None:
        following = op.next_op
        is_candidate = (among is None or op in among) and is_repeatable(op)
        overwritten = any(map(writes.overwrites, op.results))
        if is_candidate and isinstance(op, CatalogueOp) and not overwritten:
            known = first.setdefault(_key(op, identities, writes), op)
            if known is not op:
                for old, new in zip(op.results, known.results, strict=True):
                    users.update((use.operation, None) for use in old.uses)
                    old.replace_all_uses_with(new)
                erase(op)
                users.pop(op, None)
        op = following


def _key(op: CatalogueOp, identities: _Identities, writes: InPlaceWrites) -> tuple[object, ...]:
    attributes = [(name, identities[value]) for name, value in op.properties.items()]
    attributes += [(name, identities[value]) for name, value in op.attributes.items()]
    attributes.sort()
    return (
        op.name,
        *(id(operand) for operand in op.operands),
        *attributes,
        *(identities[result.type] for result in op.results),
        writes.versions(op),
    )


@dataclass(frozen=True)
class CommonSubexpressionElimination(ModulePass):
    """Merges equal ops in every function.

    Raises CompileError if the function deallocates tensors: the remaining one may be deallocated
    before the uses of the merged ones.
    """

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for inner in function.walk():
                if inner.name == "ttnn.deallocate":
                    raise CompileError(
                        "equal ops cannot be merged where tensors are deallocated",
                        inner,
                        remedy="run cse before ttnn-deallocate",
                    )
            merge_common_subexpressions(function)
