"""The EmitC ops that are statements, definitions and files, and the dialect of all of them.

Names, operands, properties and the generic syntax are those of the upstream dialect
(https://mlir.llvm.org/docs/Dialects/EmitC/, LLVM 24), so that its parser reads our output. What
upstream has no op for is marked by discardable attributes, which other tools preserve:

- `ttcodegen.name` (string, also in `arg_attrs`), `ttcodegen.names` (array, several results): the
  name of the C++ variable. SSA name hints are the fallback; they lose endings such as `_0`.
- `ttcodegen.pure` on a call: its value depends on its operands alone, it may move to its use.
- `ttcodegen.method` on a call: the first operand is the object whose member function is called.
- `ttcodegen.initializers` on a call: the callee is a type that is initialised with braces; the
  array holds a designator for each argument, empty for one by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I1,
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.emitc import (
    EmitC_ArrayType,
    EmitC_LValueType,
    EmitC_OpaqueAttr,
    EmitC_OpaqueType,
    EmitC_PointerType,
    EmitC_PtrDiffT,
    EmitC_SignedSizeT,
    EmitC_SizeT,
    EmitCIntegerIndexOpaqueTypeConstr,
    EmitCPointerWideTypeConstr,
    EmitCTypeConstr,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
)
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from ttcodegen.emitc.expressions import (
    DICTIONARIES,
    EXPRESSION_OPS,
    LVALUE,
    LVALUE_OR_ARRAY,
    YieldOp,
)
from ttcodegen.emitc.operators import EmitCOperation, require
from ttcodegen.foundation.diagnostics import CompileError

_COUNTABLE = EmitCIntegerIndexOpaqueTypeConstr | EmitCPointerWideTypeConstr


# --- Files and definitions -----------------------------------------------------------------------


@irdl_op_definition
class FileOp(EmitCOperation):
    """One file of the generated project; `id` is its path below the project's folder."""

    name = "emitc.file"
    id = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolTable())

    def __init__(self, path: str, body: Block | None = None) -> None:
        super().__init__(properties={"id": StringAttr(path)}, regions=[Region(body or Block())])


@irdl_op_definition
class IncludeOp(EmitCOperation):
    """`#include`."""

    name = "emitc.include"
    include = prop_def(StringAttr)
    is_standard_include = opt_prop_def(UnitAttr)

    def __init__(self, include: str, *, is_standard_include: bool = True) -> None:
        properties: dict[str, Attribute] = {"include": StringAttr(include)}
        if is_standard_include:
            properties["is_standard_include"] = UnitAttr()
        super().__init__(properties=properties)


@irdl_op_definition
class VerbatimOp(EmitCOperation):
    """Lines of text, verbatim.

    With operands the text is a format: `{}` is replaced by the next operand, `{{` for a brace.
    """

    name = "emitc.verbatim"
    value = prop_def(StringAttr)
    format_args = var_operand_def()

    def __init__(self, value: str, format_args: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=format_args, properties={"value": StringAttr(value)})

    def pieces(self) -> list[str | None]:
        """The text in pieces; None marks an operand."""
        text = self.value.data
        if not self.operands:
            return [text]
        pieces: list[str | None] = []
        position = start = 0
        while (position := text.find("{", position)) >= 0:
            if text.startswith("{{", position):
                pieces.append(text[start : position + 1])
            elif text.startswith("{}", position):
                pieces += [text[start:position], None]
            else:
                position += 1
                continue
            position += 2
            start = position
        return [*pieces, text[start:]]

    def verify_(self) -> None:
        if self.operands:
            places = self.pieces().count(None)
            count = len(self.operands)
            require(places == count, self, f"the text has {places} places for {count} operands")


@irdl_op_definition
class FuncOp(EmitCOperation):
    """A function; a declaration if its body is empty.

    `ttcodegen.name` in `arg_attrs` names a parameter.
    """

    name = "emitc.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    specifiers = opt_prop_def(BaseAttr(ArrayAttr))
    arg_attrs = opt_prop_def(DICTIONARIES)
    res_attrs = opt_prop_def(DICTIONARIES)
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(
        self,
        name: str,
        function_type: FunctionType,
        body: Region | None = None,
        *,
        specifiers: Sequence[str] = (),
        arg_attrs: Attribute | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "specifiers": ArrayAttr([StringAttr(s) for s in specifiers])
                if specifiers
                else None,
                "arg_attrs": arg_attrs,
            },
            regions=[body or Region()],
        )

    def verify_(self) -> None:
        inputs, outputs = self.function_type.inputs.data, self.function_type.outputs.data
        require(len(outputs) <= 1, self, f"a function returns one value, found {len(outputs)}")
        for type_ in inputs:
            require(not isinstance(type_, EmitC_LValueType), self, "an argument is an lvalue")
        for type_ in outputs:
            place = EmitC_LValueType | EmitC_ArrayType
            require(not isinstance(type_, place), self, f"cannot return {type_}")
        if not self.body.blocks:
            return
        require(len(self.body.blocks) == 1, self, "the body must be one block")
        found = [argument.type for argument in self.body.block.args]
        require(found == list(inputs), self, "the arguments of the body are not those of the type")


@irdl_op_definition
class DeclareFuncOp(EmitCOperation):
    """A declaration of an emitc.func of the same file, ahead of its definition."""

    name = "emitc.declare_func"
    sym_name = prop_def(FlatSymbolRefAttrConstr)

    def __init__(self, name: str) -> None:
        super().__init__(properties={"sym_name": SymbolRefAttr(name)})


@irdl_op_definition
class ReturnOp(EmitCOperation):
    """`return`, with a value or without."""

    name = "emitc.return"
    operand = opt_operand_def(EmitCTypeConstr)
    traits = traits_def(IsTerminator(), HasParent(FuncOp))

    def __init__(self, operand: SSAValue | None = None) -> None:
        super().__init__(operands=[] if operand is None else [operand])

    def verify_(self) -> None:
        function = self.parent_op()
        assert isinstance(function, FuncOp)
        expected = list(function.function_type.outputs.data)
        found = [operand.type for operand in self.operands]
        require(
            expected == found,
            self,
            f"returns ({', '.join(map(str, found))}), the function's type says "
            f"({', '.join(map(str, expected))})",
        )


@irdl_op_definition
class ClassOp(EmitCOperation):
    """A class or, if `class_type` is 1, a structure; all its members are public."""

    name = "emitc.class"
    sym_name = prop_def(StringAttr)
    class_type = opt_prop_def(IntegerAttr)
    final_specifier = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolTable(), SymbolOpInterface())

    def __init__(self, name: str, body: Block | None = None) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "class_type": IntegerAttr(1, i32)},
            regions=[Region(body or Block())],
        )

    @property
    def is_struct(self) -> bool:
        """True if it is written with the keyword `struct`."""
        return self.class_type is not None and self.class_type.value.data == 1


@irdl_op_definition
class FieldOp(EmitCOperation):
    """A data member of a structure."""

    name = "emitc.field"
    sym_name = prop_def(StringAttr)
    type = prop_def(EmitCTypeConstr)
    initial_value = opt_prop_def(AnyAttr())
    traits = traits_def(HasParent(ClassOp), SymbolOpInterface())

    def __init__(self, name: str, type_: Attribute, initial_value: Attribute | None = None) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "type": type_,
                "initial_value": initial_value,
            }
        )


@irdl_op_definition
class GlobalOp(EmitCOperation):
    """A variable outside functions."""

    name = "emitc.global"
    sym_name = prop_def(StringAttr)
    type = prop_def(EmitCTypeConstr)
    initial_value = opt_prop_def(AnyAttr())
    extern_specifier = opt_prop_def(UnitAttr)
    static_specifier = opt_prop_def(UnitAttr)
    const_specifier = opt_prop_def(UnitAttr)
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        type_: Attribute,
        initial_value: Attribute | None = None,
        *,
        specifiers: Sequence[str] = (),
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "sym_name": StringAttr(name),
            "type": type_,
            "initial_value": initial_value,
        }
        properties |= {f"{specifier}_specifier": UnitAttr() for specifier in specifiers}
        super().__init__(properties=properties)

    def verify_(self) -> None:
        both = self.extern_specifier is not None and self.static_specifier is not None
        require(not both, self, "cannot be both extern and static")


# --- Statements ----------------------------------------------------------------------------------


@irdl_op_definition
class VariableOp(EmitCOperation):
    """A local variable; an empty opaque value leaves its initialisation to its type."""

    name = "emitc.variable"
    value = prop_def(AnyAttr())
    result = result_def(LVALUE_OR_ARRAY)

    def __init__(self, value: Attribute, result_type: Attribute) -> None:
        super().__init__(result_types=[result_type], properties={"value": value})


@irdl_op_definition
class AssignOp(EmitCOperation):
    """`var = value;`."""

    name = "emitc.assign"
    var = operand_def(LVALUE)
    value = operand_def(EmitCTypeConstr)

    def __init__(self, var: SSAValue, value: SSAValue) -> None:
        super().__init__(operands=[var, value])

    def verify_(self) -> None:
        held = self.var.type
        assert isinstance(held, EmitC_LValueType)
        require(
            held.value_type == self.value.type,
            self,
            f"a value of {self.value.type} is assigned to a variable of {held.value_type}",
        )


@irdl_op_definition
class IfOp(EmitCOperation):
    """`if`, with an `else` unless the second region is empty."""

    name = "emitc.if"
    condition = operand_def(I1)
    then_region = region_def("single_block")
    else_region = region_def()

    def __init__(self, condition: SSAValue, then: Block, otherwise: Block | None = None) -> None:
        super().__init__(
            operands=[condition],
            regions=[Region(then), Region([] if otherwise is None else otherwise)],
        )


@irdl_op_definition
class ScopeOp(EmitCOperation):
    """`{ ... }`: what is declared in it ends with it. MLIR's dialect has no such op."""

    name = "emitc.scope"
    body = region_def("single_block")

    def __init__(self, body: Block) -> None:
        super().__init__(regions=[Region(body)])


@irdl_op_definition
class ForOp(EmitCOperation):
    """`for (T i = lower_bound; i < upper_bound; i += step)`."""

    name = "emitc.for"
    lower_bound = operand_def(_COUNTABLE)
    upper_bound = operand_def(_COUNTABLE)
    step = operand_def(_COUNTABLE)
    body = region_def("single_block")

    def __init__(
        self, lower_bound: SSAValue, upper_bound: SSAValue, step: SSAValue, body: Block
    ) -> None:
        super().__init__(operands=[lower_bound, upper_bound, step], regions=[Region(body)])

    def verify_(self) -> None:
        types = {operand.type for operand in self.operands}
        types |= {argument.type for argument in self.body.block.args}
        one = len(types) == 1 and len(self.body.block.args) == 1
        require(one, self, "bounds, step and the one argument of the body need the same type")


@irdl_op_definition
class DoOp(EmitCOperation):
    """`do body while (condition);`: the second region yields an expression of type i1."""

    name = "emitc.do"
    body = region_def("single_block")
    condition = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, body: Block, condition: Block) -> None:
        super().__init__(regions=[Region(body), Region(condition)])

    def verify_(self) -> None:
        last = self.condition.block.last_op
        require(
            isinstance(last, YieldOp) and [o.type for o in last.operands] == [i1],
            self,
            "the condition must yield one value of type i1",
        )


@irdl_op_definition
class SwitchOp(EmitCOperation):
    """`switch`: the first region is the default, the others belong to `cases`."""

    name = "emitc.switch"
    arg = operand_def(_COUNTABLE)
    cases = prop_def(DenseArrayBase)
    default_region = region_def("single_block")
    case_regions = var_region_def("single_block")

    def __init__(self, arg: SSAValue, default: Block, cases: Sequence[tuple[int, Block]]) -> None:
        super().__init__(
            operands=[arg],
            properties={"cases": DenseArrayBase.from_list(i64, [value for value, _ in cases])},
            regions=[Region(default), *(Region(block) for _, block in cases)],
        )

    def case_values(self) -> list[int]:
        """The value of each case region."""
        return list(cast("DenseArrayBase[IntegerType]", self.cases).get_values())

    def verify_(self) -> None:
        values = self.case_values()
        require(len(set(values)) == len(values), self, "a case occurs twice")
        require(
            len(values) == len(self.regions) - 1,
            self,
            f"there are {len(values)} cases and {len(self.regions) - 1} regions for them",
        )


STATEMENT_OPS: Sequence[type[Operation]] = (
    FileOp,
    IncludeOp,
    VerbatimOp,
    FuncOp,
    DeclareFuncOp,
    ReturnOp,
    ClassOp,
    FieldOp,
    GlobalOp,
    VariableOp,
    AssignOp,
    IfOp,
    ForOp,
    DoOp,
    SwitchOp,
)


EmitC = Dialect(
    "emitc",
    [*EXPRESSION_OPS, *STATEMENT_OPS],
    [
        EmitC_ArrayType,
        EmitC_LValueType,
        EmitC_OpaqueAttr,
        EmitC_OpaqueType,
        EmitC_PointerType,
        EmitC_PtrDiffT,
        EmitC_SignedSizeT,
        EmitC_SizeT,
    ],
)
"""Registered in place of the dialect of that name in xDSL, which has three of the ops."""


def verify(module: ModuleOp) -> None:
    """Verifies `module`.

    Raises:
        CompileError: if an op violates the dialect.
    """
    try:
        module.verify()
    except VerifyException as error:
        reason = str(error).strip() or "the module does not verify"
        raise CompileError(
            f"the EmitC module is malformed: {reason}",
            remedy="this is a defect of the pass that made the module",
        ) from error
