"""Unified operations: one body whose statements are divided among the kernels.

Computations on blocks become the compute kernel. Copies into reserved blocks become one data
movement kernel, copies out of blocks that were waited for the other one. Loops, conditions and
integer arithmetic are duplicated in each kernel that needs them; the creation of buffers, pipe nets
and semaphores stays in the body. The generated kernels are functions like those that users write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from types import CellType, CodeType, FunctionType
from typing import Any

from ttcodegen.lang.simulator.locations import ProgramError, error_at
from ttcodegen.lang.simulator.loops import COUNTERS, with_counted_loops
from ttcodegen.lang.simulator.occurrences import occurrences, variables_in


class KernelRole(Enum):
    """Role and name of a kernel that is generated from a unified body."""

    READ = "read"
    COMPUTE = "compute"
    WRITE = "write"

    @property
    def is_compute(self) -> bool:
        """True for the compute kernel."""
        return self is KernelRole.COMPUTE


_Roles = frozenset[KernelRole]

GENERATED_KERNELS: dict[CodeType, ast.FunctionDef] = {}
"""Syntax trees of kernels that were generated from unified bodies, by code object."""

_ACQUISITION_ROLES = {"reserve": KernelRole.READ, "wait": KernelRole.WRITE}
_MOVEMENT_FUNCTIONS = frozenset("copy raw_element_read raw_element_write read_index".split())
"""Functions of `ttl` that data movement kernels call."""
_MOVEMENT_METHODS = frozenset(
    "publish if_src if_dst wait_eq wait_ge set inc get_remote get_remote_multicast".split()
)
_NEUTRAL_METHODS = ("push", "pop")
_CONSTRUCTORS = frozenset(
    "make_dataflow_buffer_like make_dfb make_tensor_backed_dfb make_dfb_allocation_group PipeNet "
    "Pipe Semaphore".split()
)
"""Functions of `ttl` that create objects shared by kernels."""


def has_kernels(syntax: ast.FunctionDef) -> bool:
    """True if an operation defines kernels itself: nested functions with any decorator."""
    return any(
        isinstance(node, ast.FunctionDef) and node is not syntax and bool(node.decorator_list)
        for node in ast.walk(syntax)
    )


@dataclass
class UnifiedBody:
    """A unified body, whose statements are divided among kernels."""

    file: str
    syntax: ast.FunctionDef
    _roles: dict[int, _Roles] = field(default_factory=dict[int, _Roles])
    """Roles by identity of statements and acquisitions; nodes without any have all roles."""
    _names: dict[str, _Roles] = field(default_factory=dict[str, _Roles])
    """Roles of the values that variables hold."""

    def kernels(self) -> list[tuple[KernelRole, ast.FunctionDef]]:
        """Generates the kernels that have statements of their own."""
        self._divide(self.syntax.body)
        shared = [each for each in self.syntax.body if self._is_shared(each)]
        rest = [each for each in self.syntax.body if each not in shared]
        self.syntax.body = shared
        if not rest:
            return []
        found: list[tuple[KernelRole, ast.FunctionDef]] = []
        for role in KernelRole:
            body = self._slice(rest, role)
            if not any(self._has_role(each, role) for each in rest):
                continue
            kernel = ast.FunctionDef(role.value, _no_arguments(), body, [], None, None)
            ast.copy_location(kernel, rest[0])
            found.append((role, kernel))
        return found

    def refuse(self, message: str, node: ast.AST, remedy: str | None = None) -> ProgramError:
        """Creates an error at a syntax node of the body."""
        return error_at(self.file, message, node, remedy)

    # Division of statements among kernels

    def _divide(self, statements: Sequence[ast.stmt]) -> None:
        """Assigns roles to statements, recursively."""
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            match statement:
                case ast.With(items, body):
                    for item in items:
                        self._acquire(item.context_expr, item.optional_vars, body)
                    self._divide(body)
                case ast.For(_, iterated, body):
                    self._roles[id(statement)] = self._roles_of(iterated)
                    self._divide(body)
                case ast.While(test, body):
                    self._roles[id(statement)] = self._roles_of(test)
                    self._divide(body)
                case ast.If(test, body, orelse):
                    self._roles[id(statement)] = self._roles_of(test)
                    self._divide(body)
                    self._divide(orelse)
                case ast.FunctionDef(name, _, body):
                    self._divide(body)
                    self._names[name] = self._roles_in(body)
                    self._roles[id(statement)] = self._names[name]
                case ast.Assign([target], value):
                    if not self._acquire(value, target, rest):
                        self._leaf(statement, [target], rest)
                case ast.AugAssign(target) | ast.AnnAssign(target):
                    self._leaf(statement, [target], rest)
                case ast.Assign(targets):
                    self._leaf(statement, targets, rest)
                case _:
                    self._leaf(statement, [], rest)

    def _acquire(self, value: ast.expr, target: ast.expr | None, users: Sequence[ast.stmt]) -> bool:
        """Assigns an acquisition to the kernel that uses its block; False if it is not one."""
        match value:
            case ast.Call(ast.Attribute(ast.Name(buffer), "reserve" | "wait" as method), [], []):
                pass
            case _:
                return False
        if not isinstance(target, ast.Name):
            raise self.refuse(
                f"the block of '{buffer}' that {method} gives needs a name: who uses it says which "
                "kernel acquires it",
                value,
            )
        is_moved, is_computed = self._uses(target.id, users)
        if is_moved and is_computed:
            raise self.refuse(
                f"the block '{target.id}' is computed with and copied: each statement belongs to "
                "one kernel",
                value,
                "store what is computed into a dataflow buffer, and copy from there",
            )
        if not is_moved and not is_computed:
            raise self.refuse(
                f"nothing uses the block '{target.id}', so no kernel acquires it", value
            )
        role = KernelRole.COMPUTE if is_computed else _ACQUISITION_ROLES[method]
        self._roles[id(value)] = frozenset([role])
        self._names[target.id] = frozenset([role])
        return True

    def _uses(self, name: str, statements: Sequence[ast.stmt]) -> tuple[bool, bool]:
        """Returns whether a block is moved (copied, or accessed by element), and computed with.

        Uses are counted until the variable is assigned again.
        """
        moved = computed = False
        for statement in statements:
            moved_nodes = {
                id(part)
                for node in ast.walk(statement)
                if isinstance(node, ast.Call) and _called(node) in _MOVEMENT_FUNCTIONS
                for argument in (*node.args, *(each.value for each in node.keywords))
                for part in ast.walk(argument)
            }
            neutral = {
                id(node.value)
                for node in ast.walk(statement)
                if isinstance(node, ast.Attribute) and node.attr in _NEUTRAL_METHODS
            }
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == name:
                    if isinstance(node.ctx, ast.Store):
                        if node in _stored_by(statement):
                            return moved, computed
                    elif id(node) in moved_nodes:
                        moved = True
                    elif id(node) not in neutral:
                        computed = True
        return moved, computed

    def _leaf(
        self, statement: ast.stmt, targets: Sequence[ast.expr], rest: Sequence[ast.stmt]
    ) -> None:
        """Assigns a role to a statement without nested statements, and to its targets."""
        roles = self._roles_of(statement)
        names = [each.id for each in occurrences(*targets)]
        if not roles and any(
            isinstance(node, ast.Call) and _called(node) == "GroupTransfer"
            for node in ast.walk(statement)
        ):
            roles = self._roles_of_group(names, rest)
        if len(roles) > 1:
            kinds = " and ".join(f"'{each.value}'" for each in KernelRole if each in roles)
            raise self.refuse(
                f"this statement is one of the kernels {kinds}: each belongs to one kernel",
                statement,
                "store what is computed into a dataflow buffer, and copy from there",
            )
        self._roles[id(statement)] = roles
        for name in names:
            if roles or name not in self._names:
                self._names[name] = roles

    def _roles_of_group(self, names: Sequence[str], rest: Sequence[ast.stmt]) -> _Roles:
        """Role of a group of transfers: that of the first block that is copied in it."""
        acquired = [(item.context_expr, item.optional_vars, each.body)
                    for statement in rest for each in ast.walk(statement)
                    if isinstance(each, ast.With) for item in each.items]  # fmt: skip
        for value, target, body in acquired:
            if isinstance(target, ast.Name) and self._acquire(value, target, body):
                self._names.pop(target.id)
        for node in (each for statement in rest for each in ast.walk(statement)):
            match node:
                case ast.Call(ast.Attribute(ast.Name(group), "add"), arguments) if group in names:
                    blocks = variables_in(*arguments)
                    for value, target, _ in acquired:
                        if isinstance(target, ast.Name) and target.id in blocks:
                            return self._roles[id(value)]
                    return self._roles_of(node) or frozenset([KernelRole.READ])
                case _:
                    pass
        return frozenset([KernelRole.READ])

    def _roles_of(self, node: ast.AST) -> _Roles:
        """Roles that an expression requires."""
        found: set[KernelRole] = set()
        is_moving = False
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                found |= self._names.get(part.id, frozenset())
            is_moving = is_moving or (isinstance(part, ast.Call) and self._is_movement(part))
        if is_moving and not found:
            return frozenset([KernelRole.READ])
        return frozenset(found)

    @staticmethod
    def _is_movement(call: ast.Call) -> bool:
        name = _called(call)
        is_method = isinstance(call.func, ast.Attribute)
        return name in _MOVEMENT_FUNCTIONS or (is_method and name in _MOVEMENT_METHODS)

    def _roles_in(self, statements: Sequence[ast.stmt]) -> _Roles:
        """Roles of all statements."""
        nodes = (node for statement in statements for node in ast.walk(statement))
        return _Roles().union(*(self._roles.get(id(n), frozenset()) for n in nodes))

    # Kernels

    def _is_shared(self, statement: ast.stmt) -> bool:
        """True if a statement stays in the body: it makes shared objects or assigns constants."""
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr | ast.FunctionDef):
            return False
        if self._roles_in([statement]):
            return False
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        if any(_called(call) in _CONSTRUCTORS for call in calls):
            return True
        stored = {node.id for node in _stored_by(statement)}
        others = [other for other in self.syntax.body if other is not statement]
        return not stored & variables_in(*others, context=ast.Store)

    def _has_role(self, statement: ast.stmt, role: KernelRole) -> bool:
        """True if a statement contains work of a role."""
        return role in self._roles_in([statement])

    def _slice(self, statements: Sequence[ast.stmt], role: KernelRole) -> list[ast.stmt]:
        """Statements that a kernel executes."""
        found = [part for each in statements for part in self._part(each, role)]
        return found or [ast.copy_location(ast.Pass(), statements[0])]

    def _part(self, statement: ast.stmt, role: KernelRole) -> Iterator[ast.stmt]:
        """Yields what remains of a statement in the kernel of a role."""
        own = self._roles.get(id(statement), frozenset())
        if not isinstance(statement, ast.With | ast.For | ast.While | ast.If | ast.FunctionDef):
            acquired = getattr(statement, "value", None)
            own = own or self._roles.get(id(acquired), frozenset())
            if not own or role in own:
                yield statement
            return
        if not self._has_role(statement, role) and self._roles_in([statement]):
            return
        if isinstance(statement, ast.With):
            items = [
                item
                for item in statement.items
                if role in self._roles.get(id(item.context_expr), frozenset([role]))
            ]
            body = self._slice(statement.body, role)
            if items:
                yield ast.copy_location(ast.With(items, body), statement)
            else:
                yield from body
            return
        if own - {role}:
            (other, *_) = own - {role}
            raise self.refuse(
                f"what the kernel '{other.value}' finds out decides about statements of the kernel "
                f"'{role.value}'",
                statement,
            )
        copied = type(statement)(**dict(ast.iter_fields(statement)))
        ast.copy_location(copied, statement)
        copied.body = self._slice(statement.body, role)
        if isinstance(copied, ast.If) and isinstance(statement, ast.If) and statement.orelse:
            copied.orelse = self._slice(statement.orelse, role)
        yield copied


def _called(call: ast.Call) -> str:
    """Name of the called function or method."""
    of = call.func
    return of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""


def _stored_by(statement: ast.stmt) -> list[ast.Name]:
    """Names that a statement assigns itself, not by nested statements."""
    targets: list[ast.expr] = []
    match statement:
        case ast.Assign(found):
            targets = found
        case ast.AugAssign(target) | ast.AnnAssign(target) | ast.For(target):
            targets = [target]
        case _:
            pass
    return occurrences(*targets)


def _no_arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])


@dataclass(frozen=True)
class SplitOperation:
    """An operation whose kernels were generated from its body."""

    function: FunctionType
    """Runs the body on a node, and returns the kernels."""
    roles: tuple[KernelRole, ...]
    """Roles of the returned kernels, in order."""


def split(
    function: FunctionType, syntax: ast.FunctionDef, values: Mapping[str, Any]
) -> SplitOperation | None:
    """Replaces the unified body of an operation by kernels; None if no statement has a role.

    Args:
        function: the operation.
        syntax: its syntax tree, with calls of other operations inlined.
        values: outer variables of the inlined operations, by their names in the tree.

    Raises:
        ProgramError: if a statement belongs to several kernels, or an acquisition to none.
    """
    body = UnifiedBody(function.__code__.co_filename, syntax)
    kernels = body.kernels()
    if not kernels:
        return None
    names = [ast.Name(kernel.name, ast.Load()) for _, kernel in kernels]
    result = ast.Return(ast.Tuple([*names], ast.Load()))
    syntax.body = [*syntax.body, *(kernel for _, kernel in kernels), result]
    syntax.decorator_list, syntax.returns = [], None
    made = _compile(function, syntax, values)
    by_name = {kernel.name: kernel for _, kernel in kernels}
    for each in made.__code__.co_consts:
        if isinstance(each, CodeType) and each.co_name in by_name:
            GENERATED_KERNELS[each] = by_name[each.co_name]
    return SplitOperation(made, tuple(role for role, _ in kernels))


def _compile(
    function: FunctionType, syntax: ast.FunctionDef, values: Mapping[str, Any]
) -> FunctionType:
    """Compiles a syntax tree to a function with the free variables of another function."""
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = {**closure, **{name: CellType(value) for name, value in values.items()}}
    outer = ast.FunctionDef("__ttl_outer__", _no_arguments(), [], [], None, None)
    nothing = ast.Constant(None)
    outer.body = [
        *(ast.Assign([ast.Name(name, ast.Store())], nothing) for name in cells),
        syntax,
    ]
    module = ast.Module([outer], [])
    for node in (outer, *outer.body[:-1]):
        ast.copy_location(node, syntax)
    # Only the executed code has counters: the compiler reads the original syntax.
    counted = deepcopy(module)
    if COUNTERS.keys() <= function.__globals__.keys():
        counted = with_counted_loops(counted)
    code = compile(
        ast.fix_missing_locations(counted), function.__code__.co_filename, "exec", dont_inherit=True
    )
    outer_code = next(each for each in code.co_consts if isinstance(each, CodeType))
    inner = next(
        each
        for each in outer_code.co_consts
        if isinstance(each, CodeType) and each.co_name == syntax.name
    )
    given = tuple(cells[name] for name in inner.co_freevars)
    ast.fix_missing_locations(syntax)
    return FunctionType(inner, function.__globals__, function.__name__, None, given)
