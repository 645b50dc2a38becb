"""A small typed interface for passes that write EmitC.

    source = open_file(module, "src/mnist.cpp")
    source.include("ttnn/operations/matmul/matmul.hpp")
    with source.namespace("mnist"):
        body = source.function("forward", [("inputs", "const ForwardInputs&")], "ttnn::Tensor")
        x = body.member(body.arguments[0], "x", "ttnn::Tensor")
        body.comment("linear_relu_stack.0")
        hidden = body.call("ttnn::linear", x, Text("std::nullopt"), name="hidden")
        body.return_(hidden)

Types are given as C++ text. Names may be any text: they become unique identifiers when printed.
Text that goes into the C++ verbatim is wrapped in `Text`, so that no input name does by accident.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.dialects.emitc import EmitC_LValueType, EmitC_OpaqueAttr, EmitC_PointerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ttcodegen.emitc.expressions import (
    CallOpaqueOp,
    ConstantOp,
    DereferenceOp,
    LiteralOp,
    LoadOp,
    MemberOp,
    SubscriptOp,
    YieldOp,
)
from ttcodegen.emitc.inlining import (
    ASSIGNS,
    FIXED_NAME,
    HELD,
    NAME,
    NAMES,
    PURE,
    mentions,
    set_origins,
)
from ttcodegen.emitc.operators import BINARY_OPS, UNARY_OPS, CastOp, CmpOp, ComparisonPredicate
from ttcodegen.emitc.spelling import (
    Text,
    comment_line,
    cpp_type,
    identifier,
    is_identifier,
    type_text,
)
from ttcodegen.emitc.statements import (
    AssignOp,
    ClassOp,
    DeclareFuncOp,
    FieldOp,
    FileOp,
    ForOp,
    FuncOp,
    GlobalOp,
    IfOp,
    IncludeOp,
    ReturnOp,
    ScopeOp,
    VariableOp,
    VerbatimOp,
)
from ttcodegen.emitc.values import ARGUMENT_NAMES, INITIALIZERS, METHOD, UNTYPED
from ttcodegen.foundation.diagnostics import copy_source_offset

__all__ = ["Argument", "EmitCBuilder", "Text", "open_file"]

TENSOR = "ttnn::Tensor"


Argument = SSAValue | Text
"""Argument of a call: a value, or a piece of C++."""


def open_file(module: ModuleOp, path: str) -> EmitCBuilder:
    """Appends a file to `module`, `path` below the project's folder, and returns its builder."""
    file = FileOp(path)
    module.body.block.add_op(file)
    return EmitCBuilder(file.body.block)


class EmitCBuilder:
    """Appends ops to a block.

    Set `origins` to the op that is being lowered, followed by other ops that the same text
    implements: new ops get the source location of the first one."""

    def __init__(self, block: Block, *, origins: Sequence[Operation] = ()) -> None:
        self.block = block
        self.origins = origins

    @property
    def arguments(self) -> tuple[SSAValue, ...]:
        """Parameters of the function whose body this is."""
        return tuple(self.block.args)

    def insert(self, op: Operation) -> None:
        """Appends any op."""
        if self.origins:
            copy_source_offset(self.origins[0], op)
            set_origins(op, self.origins)
        self.block.add_op(op)

    def nested(self, block: Block) -> EmitCBuilder:
        return EmitCBuilder(block, origins=self.origins)

    # --- Calls -----------------------------------------------------------------------------------

    def call(
        self,
        callee: str,
        *args: Argument,
        type: str = TENSOR,
        template_args: Sequence[str | int] = (),
        name: str | None = None,
        pure: bool = False,
        labels: Sequence[str] = (),
    ) -> SSAValue:
        """`type name = callee<template_args>(args);`.

        Args:
            callee: the qualified C++ name.
            args: the arguments in order.
            type: the type of the result.
            template_args: types or values, as C++ text or a number.
            name: name of the variable, by default after the callee.
            pure: the call may be written where its value is used (once, and unless it has a name).
            labels: names of the parameters, written as comments before the arguments; "" for none.
        """
        op = self._call(callee, args, [type], template_args, labels)
        if pure:
            op.attributes[PURE] = UnitAttr()
        return self._named(op, name)

    def call_void(
        self,
        callee: str,
        *args: Argument,
        template_args: Sequence[str | int] = (),
        labels: Sequence[str] = (),
    ) -> None:
        """`callee<template_args>(args);`."""
        self._call(callee, args, [], template_args, labels)

    def call_several(
        self,
        callee: str,
        *args: Argument,
        types: Sequence[str],
        names: Sequence[str] | None = None,
        template_args: Sequence[str | int] = (),
        labels: Sequence[str] = (),
    ) -> tuple[SSAValue, ...]:
        """`auto [name, ...] = callee(args);`: a call whose result is a tuple, array or struct."""
        op = self._call(callee, args, types, template_args, labels)
        if names is not None:
            op.attributes[NAMES] = ArrayAttr([StringAttr(name) for name in names])
        return tuple(op.results)

    def call_method(
        self,
        receiver: SSAValue,
        method: str,
        *args: Argument,
        type: str | None = None,
        template_args: Sequence[str | int] = (),
        name: str | None = None,
        pure: bool = False,
    ) -> SSAValue | None:
        """`receiver.method(args)`, `->` for a pointer; None unless there is a result `type`."""
        types = [] if type is None else [type]
        op = self._call(method, (receiver, *args), types, template_args)
        op.attributes[METHOD] = UnitAttr()
        if pure:
            op.attributes[PURE] = UnitAttr()
        return None if type is None else self._named(op, name)

    def get(self, value: SSAValue, index: int, type: str, *, name: str | None = None) -> SSAValue:
        """`std::get<index>(value)`."""
        return self.call("std::get", value, type=type, template_args=(index,), name=name, pure=True)

    def aggregate(
        self,
        type: str,
        fields: Mapping[str, Argument],
        *,
        name: str | None = None,
        typed: bool = True,
    ) -> SSAValue:
        """`type{.field = value, ...}`; the fields in the order of their declaration.

        Unless `typed`, only the braces are written: the type follows from the parameter.
        """
        return self._initialized(type, tuple(fields), tuple(fields.values()), name, typed)

    def braced(
        self, type: str, *items: Argument, name: str | None = None, typed: bool = True
    ) -> SSAValue:
        """`type{item, ...}`; unless `typed`, only the braces are written."""
        return self._initialized(type, ("",) * len(items), items, name, typed)

    def _initialized(
        self,
        type: str,
        designators: Sequence[str],
        values: Sequence[Argument],
        name: str | None,
        typed: bool,
    ) -> SSAValue:
        op = self._call(type, values, [type], ())
        if not typed:
            op.attributes[UNTYPED] = UnitAttr()
        op.attributes[INITIALIZERS] = ArrayAttr([StringAttr(d) for d in designators])
        op.attributes[PURE] = UnitAttr()
        return self._named(op, name)

    def _call(
        self,
        callee: str,
        args: Sequence[Argument],
        types: Sequence[str],
        template_args: Sequence[str | int],
        labels: Sequence[str] = (),
    ) -> CallOpaqueOp:
        operands = [arg for arg in args if not isinstance(arg, Text)]
        listed: list[Attribute] | None = None
        if len(operands) != len(args):
            indices = iter(range(len(operands)))
            listed = [
                _opaque(arg.text) if isinstance(arg, Text) else _index(next(indices))
                for arg in args
            ]
        op = CallOpaqueOp(
            callee,
            operands,
            [cpp_type(type) for type in types],
            args=listed,
            template_args=[
                IntegerAttr(arg, i32) if isinstance(arg, int) else _opaque(arg)
                for arg in template_args
            ]
            or None,
        )
        if any(labels):
            op.attributes[ARGUMENT_NAMES] = ArrayAttr([StringAttr(label) for label in labels])
        self.insert(op)
        return op

    def _named(self, op: Operation, name: str | None) -> SSAValue:
        result = op.results[0]
        if name is not None:
            # The hint is for readers of the IR. It cannot hold every name: suffixes such as `_0`
            # are dropped, because the IR printer numbers equal names itself.
            result.name_hint = identifier(name)
            if result.name_hint != name:
                op.attributes[NAME] = StringAttr(name)
        return result

    def named(self, value: SSAValue, name: str) -> SSAValue:
        """Assigns a computed value to a variable of that name."""
        assert isinstance(value.owner, Operation)
        return self._named(value.owner, name)

    def assigned(self, value: SSAValue, variable: str) -> SSAValue:
        """`variable = ...;` instead of a declaration, where the value is written.

        Args:
            value: result of an op of this builder, named or not.
            variable: name of the variable of a dead value of the same type.
        """
        owner = value.owner
        assert isinstance(owner, Operation)
        owner.attributes.pop(NAME, None)
        owner.attributes[ASSIGNS] = StringAttr(variable)
        return value

    # --- Values ----------------------------------------------------------------------------------

    def literal(self, text: str, type: str) -> SSAValue:
        """Piece of C++ as a value, written at each use."""
        return self._value(LiteralOp(text, cpp_type(type)))

    def constant(self, value: bool | float, type: str) -> SSAValue:
        """Number, written at each use; `type` is an arithmetic type."""
        result_type = cpp_type(type)
        attribute: Attribute
        match result_type:
            case IntegerType():
                attribute = IntegerAttr(int(value), result_type)
            case Float16Type() | BFloat16Type() | Float32Type() | Float64Type():
                attribute = FloatAttr(float(value), result_type)
            case _:
                attribute = IntegerAttr(int(value), IndexType())
        return self._value(ConstantOp(attribute, result_type))

    def member(self, value: SSAValue, field: str, type: str) -> SSAValue:
        """`value.field`, `value->field` for a pointer; written at each use."""
        if isinstance(value.type, EmitC_PointerType):
            value = self._value(DereferenceOp(value))
        if isinstance(value.type, EmitC_LValueType):
            place = EmitC_LValueType(cpp_type(type))
            return self._value(LoadOp(self._value(MemberOp(field, value, place))))
        return self._value(MemberOp(field, value, cpp_type(type)))

    def subscript(
        self, value: SSAValue, index: int | SSAValue, type: str, *, name: str | None = None
    ) -> SSAValue:
        """`value[index]`, written at each use; with a `name` it gets a variable."""
        position = self.constant(index, "size_t") if isinstance(index, int) else index
        place = self._value(SubscriptOp(value, [position], cpp_type(type)))
        load = LoadOp(place)
        if name is not None:
            load.attributes[NAME] = StringAttr(name)
        return self._value(load)

    def store(self, value: SSAValue, index: SSAValue, element: SSAValue, type: str) -> None:
        """`value[index] = element;`."""
        place = self._value(SubscriptOp(value, [index], cpp_type(type)))
        self.assign(place, element)

    def binary(self, operator: str, lhs: SSAValue, rhs: SSAValue, type: str) -> SSAValue:
        """A binary operator by its EmitC mnemonic: `add`, `bitwise_and`, ..."""
        return self._value(BINARY_OPS[operator](lhs, rhs, cpp_type(type)))

    def unary(self, operator: str, operand: SSAValue, type: str) -> SSAValue:
        """A unary operator by its EmitC mnemonic: `unary_minus`, `logical_not`, ..."""
        return self._value(UNARY_OPS[operator](operand, cpp_type(type)))

    def compare(
        self, predicate: ComparisonPredicate, lhs: SSAValue, rhs: SSAValue, type: str = "bool"
    ) -> SSAValue:
        """A comparison; its value is a bool."""
        return self._value(CmpOp(predicate, lhs, rhs, cpp_type(type)))

    def cast(self, value: SSAValue, type: str) -> SSAValue:
        """An explicit conversion."""
        return self._value(CastOp(value, cpp_type(type)))

    def _value(self, op: Operation) -> SSAValue:
        self.insert(op)
        return op.results[0]

    # --- Variables and control flow --------------------------------------------------------------

    def variable(
        self, name: str, type: str, initializer: Text | None = None, *, fixed: bool = False
    ) -> SSAValue:
        """`type name = initializer;`, to `assign` to and `load` from.

        `fixed` keeps the name, because verbatim C++ in the body refers to it."""
        text = "" if initializer is None else initializer.text
        op = VariableOp(_opaque(text), EmitC_LValueType(cpp_type(type)))
        if fixed:
            op.attributes[FIXED_NAME] = UnitAttr()
        self.insert(op)
        return self._named(op, name)

    def assign(self, place: SSAValue, value: SSAValue) -> None:
        """`place = value;`."""
        self.insert(AssignOp(place, value))

    def load(self, place: SSAValue, *, held: bool = False) -> SSAValue:
        """Current value of a variable; `held` if it does not change before the last use."""
        op = LoadOp(place)
        if held:
            op.attributes[HELD] = UnitAttr()
        return self._value(op)

    def if_(self, condition: SSAValue, *, otherwise: bool = False) -> tuple[EmitCBuilder, ...]:
        """An `if`: returns the builder of its body, and that of the `else` if requested."""
        blocks = [Block() for _ in range(2 if otherwise else 1)]
        self.insert(IfOp(condition, *blocks))
        return tuple(self.nested(block) for block in blocks)

    def for_(
        self,
        start: SSAValue,
        bound: SSAValue,
        step: SSAValue,
        *,
        type: str | None = None,
        name: str | None = None,
    ) -> EmitCBuilder:
        """A counting loop: returns the builder of its body, whose first argument is the counter.

        The counter has the type `type`, by default that of the start."""
        block = Block(arg_types=[start.type if type is None else cpp_type(type)])
        if name is not None:
            block.args[0].name_hint = identifier(name)
        self.insert(ForOp(start, bound, step, block))
        return self.nested(block)

    def scope(self) -> EmitCBuilder:
        """`{ ... }`: returns the builder of its contents."""
        block = Block()
        self.insert(ScopeOp(block))
        return self.nested(block)

    def end_block(self) -> None:
        """Ends the body of an `if`, a loop or a scope."""
        self.insert(YieldOp())

    def return_(self, value: SSAValue | None = None) -> None:
        """`return value;`; every body ends in a return, one without value is not printed."""
        self.insert(ReturnOp(value))

    # --- Definitions -----------------------------------------------------------------------------

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str | None = None,
        *,
        specifiers: Sequence[str] = (),
        fixed_names: Collection[str] = (),
    ) -> EmitCBuilder:
        """Defines a function and returns the builder of its body.

        Args:
            name: an identifier.
            parameters: name and type of each.
            result: the type it returns, None for void.
            specifiers: `static`, `inline`, ...
            fixed_names: parameters that verbatim C++ in the body refers to by name.
        """
        block = Block(arg_types=[cpp_type(type) for _, type in parameters])
        for argument, (parameter, _) in zip(block.args, parameters, strict=True):
            argument.name_hint = identifier(parameter)
        self._function(name, parameters, result, Region(block), specifiers, fixed_names)
        return self.nested(block)

    def drop_unused_parameters(self) -> list[bool]:
        """Drops unused parameters of the function with this complete body.

        Returns which parameters are kept."""
        function = self.block.parent_op()
        assert isinstance(function, FuncOp)
        assert function.arg_attrs is not None
        attributes = cast("Sequence[DictionaryAttr]", function.arg_attrs.data)
        names = [cast("StringAttr", each.data[NAME]).data for each in attributes]
        used = [
            argument.uses.get_length() > 0 or mentions(self.block.walk(), name)
            for argument, name in zip(self.block.args, names, strict=True)
        ]
        for argument, is_used in zip(tuple(self.block.args), used, strict=True):
            if not is_used:
                self.block.erase_arg(argument)
        types = [argument.type for argument in self.block.args]
        function.properties["function_type"] = FunctionType.from_lists(
            types, [*function.function_type.outputs]
        )
        kept = [each for each, is_used in zip(attributes, used, strict=True) if is_used]
        if kept:
            function.properties["arg_attrs"] = ArrayAttr(kept)
        else:
            del function.properties["arg_attrs"]
        return used

    def declare(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str | None = None,
        *,
        specifiers: Sequence[str] = (),
    ) -> None:
        """Declares a function that is defined in another file."""
        self._function(name, parameters, result, Region(), specifiers)

    def declare_ahead(self, name: str) -> None:
        """Declares a function that is defined later in this file."""
        self.insert(DeclareFuncOp(name))

    def _function(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str | None,
        body: Region,
        specifiers: Sequence[str],
        fixed_names: Collection[str] = (),
    ) -> None:
        outputs = [] if result is None else [cpp_type(result)]
        type_ = FunctionType.from_lists([cpp_type(type) for _, type in parameters], outputs)
        names = ArrayAttr(
            [
                DictionaryAttr(
                    {NAME: StringAttr(text)}
                    | ({FIXED_NAME: UnitAttr()} if text in fixed_names else {})
                )
                for text, _ in parameters
            ]
        )
        self.insert(
            FuncOp(
                name, type_, body, specifiers=specifiers, arg_attrs=names if parameters else None
            )
        )

    def struct(
        self,
        name: str,
        fields: Sequence[tuple[str, str]],
        comment: str | None = None,
        field_comments: Mapping[str, str] | None = None,
    ) -> None:
        """Defines a structure; `name` and the names of the fields are identifiers.

        The comments of fields, by their names, precede them."""
        if comment is not None:
            self.comment(comment)
        op = ClassOp(name)
        self.insert(op)
        body = self.nested(op.body.block)
        comments = field_comments or {}
        for field, type in fields:
            if field in comments:
                body.comment(comments[field])
            body.insert(FieldOp(field, cpp_type(type)))

    def global_constant(self, name: str, type: str, initializer: str) -> None:
        """`const type name = initializer;` at file scope; `initializer` may be in braces."""
        self.insert(GlobalOp(name, cpp_type(type), _opaque(initializer), specifiers=["const"]))

    def include(self, header: str, *, standard: bool = True) -> None:
        """`#include <header>`, in quotes unless `standard`."""
        self.insert(IncludeOp(header, is_standard_include=standard))

    @contextmanager
    def namespace(self, name: str) -> Generator[None]:
        """Scope of a C++ namespace; `name` may be nested or empty."""
        if name and not all(is_identifier(part) for part in name.split("::")):
            raise ValueError(f"{name!r} is not the name of a namespace")
        title = f"namespace {name}" if name else "namespace"
        self.verbatim(f"{title} {{")
        self.blank()
        yield
        self.blank()
        self.verbatim(f"}}  // {title}")

    # --- Text ------------------------------------------------------------------------------------

    def comment(self, text: str) -> None:
        """`// text`; each line of the text becomes a comment line."""
        for line in text.splitlines() or [""]:
            self.verbatim(comment_line(line))

    def blank(self) -> None:
        """An empty line."""
        self.verbatim("")

    def verbatim(self, text: str, *operands: SSAValue) -> None:
        """Lines of C++ verbatim.

        With operands, `{}` is replaced by the next one and `{{` is a brace."""
        self.insert(VerbatimOp(text, operands))


def type_of(value: SSAValue) -> str:
    """C++ type of a value of a builder."""
    text = type_text(value.type)
    if text is None:
        raise ValueError(f"{value.type} has no C++ spelling")
    return text


@lru_cache(maxsize=4096)
def _index(value: int) -> Attribute:
    return IntegerAttr(value, IndexType())


@lru_cache(maxsize=4096)
def _opaque(text: str) -> EmitC_OpaqueAttr:
    return EmitC_OpaqueAttr(StringAttr(text))
