"""Names of function arguments and results, in C++ and at the interface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.operations.functions import argument_attribute, attributes_at, body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.dialect import LoadCachedOp
from ttcodegen.emitc.spelling import identifier, type_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.roles import is_attention, reaches, turns
from ttcodegen.naming.sources import is_generic, stem_of_weight
from ttcodegen.naming.values import operand_noun
from ttcodegen.ops.core.definition import TTIR, library_definition, traits_of
from ttcodegen.ops.core.traits import Trait

# Names at the interface: functions, arguments and results.


def entry_name(symbol: str) -> str:
    """C++ name of an entry function; `main` is reserved for the program that links it."""
    return "forward" if symbol == "main" else identifier(symbol)


def prepare_name(function: str) -> str:
    """C++ name of the function that computes the constants of an entry function.

    Args:
        function: the C++ name of the entry function.
    """
    return f"prepare_{function}"


def struct_name(function: str, kind: str) -> str:
    """Name of a structure that a function takes or returns: `ForwardWeights`.

    Args:
        function: its C++ name.
        kind: content of the structure: inputs, weights, constants, outputs, arguments, ...
    """
    return f"{type_name(function)}{kind.capitalize()}"


def argument_names(function: FuncOp) -> list[str]:
    """Names of the arguments, from `ttir.name` or the text; all distinct."""
    names = [
        _declared_name(function.arg_attrs, index) or argument.name_hint or f"arg{index}"
        for index, argument in enumerate(function.args)
    ]
    return _unique(names)


def result_names(function: FuncOp) -> list[str]:
    """Names of the results, from `ttir.name`; all distinct."""
    count = len(function.function_type.outputs)
    return _unique(
        [
            _declared_name(function.res_attrs, index)
            or ("output" if count == 1 else f"output{index}")
            for index in range(count)
        ]
    )


def _declared_name(dictionaries: ArrayAttr[DictionaryAttr] | None, index: int) -> str | None:
    name = attributes_at(dictionaries, index).get("ttir.name")
    return name.data if isinstance(name, StringAttr) else None


def _unique(names: Sequence[str]) -> list[str]:
    """Makes names distinct by numbers for later ones."""
    taken = set(names)
    seen: set[str] = set()
    unique: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in seen or (candidate != name and candidate in taken):
            candidate, number = f"{name}_{number}", number + 1
        seen.add(candidate)
        unique.append(candidate)
    return unique


# Names of arguments in C++: those of the source, or their roles in the ops if these are
# uninformative.

FunctionOf = Callable[[str], FuncOp | None]
"""Looks up the function of a symbol."""

TITLE = "ttcodegen.title"
"""Attribute with the name of an argument, for functions whose ops no longer imply it."""

_OF_PASSES = re.compile(r"input_\d+_[a-z]\w*?_\d+(?:_fork_clone\d*)?|p\d+[._]\d+")
"""Generated names of parameters.

TT-Forge names them after the op that takes them and the clone, torch_xla after their number and
that of the instruction."""

_ROLES: Mapping[str, str] = {
    "update_index": "position",
    "cur_pos_tensor": "positions",
    "page_table": "page_table",
    "attention_mask": "mask",
    "cache": "cache",
    "key": "keys",
    "value": "values",
    "cos_cache": "cosine",
    "sin_cache": "sine",
}
"""Roles of arguments by operand; the first that applies."""
_ORDER = (*dict.fromkeys(_ROLES.values()), "indices")
_CACHES = {frozenset({"cache", "keys"}): "key_cache", frozenset({"cache", "values"}): "value_cache"}
_MOST_FOLLOWED = 64
"""Maximum number of uses that are followed."""


def argument_titles(function: FuncOp, function_of: FunctionOf) -> list[str]:
    """Titles of the arguments in C++, as text; several may be equal.

    A generic name of the source (`arg16_1`), or one that a compiler generated
    (`input_0_divide_3_fork_clone`), is replaced by the argument's role: the cache of keys, the bias
    of a convolution."""
    names = [
        given.data if isinstance(given := argument_attribute(function, i, TITLE), StringAttr) else n
        for i, n in enumerate(argument_names(function))
    ]
    if not any(map(_is_uninformative, names)):
        return names
    uses = _Uses(dict(zip(body_of(function).args, names, strict=True)), function_of)
    return [
        (_is_uninformative(name) and uses.role(value)) or name for value, name in uses.names.items()
    ]


def _is_uninformative(name: str) -> bool:
    return is_generic(name) or _OF_PASSES.fullmatch(name) is not None


class _Uses:
    """Uses of the arguments of a function, there and in its const-eval functions."""

    def __init__(self, names: Mapping[SSAValue, str], function_of: FunctionOf) -> None:
        self.names = names
        self._function_of = function_of
        self._outside: dict[SSAValue, SSAValue] = {}
        """Operands of const-eval functions, by their arguments."""
        self._origins: dict[SSAValue, str | None] = dict(names)
        """Memoized argument name that each value is a form of."""

    def role(self, argument: SSAValue) -> str | None:
        """Role of an argument in the ops that use it; None if it has none."""
        found: set[str] = set()
        for op, index in self._users(argument):
            adjusted = self._adjusted(op, index)
            if adjusted is not None:
                return adjusted
            operand = _operand_name(op, index)
            if operand in _ROLES:
                found.add(_ROLES[operand])
            elif _is_index(op, operand):
                found.add("indices")
            elif (name := _attended_name(op, argument)) is not None:
                found.add(name)
        cache = next((name for roles, name in _CACHES.items() if roles <= found), None)
        return cache or next((role for role in _ORDER if role in found), None)

    def _users(self, argument: SSAValue) -> Iterator[tuple[CatalogueOp, int]]:
        """Yields the ops that use an argument, in any form, with the operand index."""
        rest, seen = [argument], 0
        loads: dict[Operation, LoadCachedOp] = {}
        while rest and seen < _MOST_FOLLOWED:
            for use in rest.pop(0).uses:
                seen += 1
                op = use.operation
                if isinstance(op, LoadCachedOp):
                    inner = self._function_of(op.callee.string_value())
                    if inner is None:
                        continue
                    block = body_of(inner)
                    self._outside.update(zip(block.args, op.operands, strict=True))
                    assert block.last_op is not None
                    loads[block.last_op] = op
                    rest.append(block.args[use.index])
                elif op in loads:
                    rest.append(loads[op].results[use.index])
                elif isinstance(op, CatalogueOp) and _is_form(op):
                    rest += op.results
                elif isinstance(op, CatalogueOp):
                    yield op, use.index

    def _adjusted(self, op: CatalogueOp, index: int) -> str | None:
        """Name of an argument that scales or shifts a weight or the result of a layer."""
        if _is_layer(op) and index >= 2:
            weight, suffix = self._origin(op.operands[1]), "bias"
        elif not op.results or not _is_repeated(op, index):
            return None
        elif operand_noun(op) == "factor" and len(op.operands) == 2:
            weight, suffix = self._origin(op.operands[1 - index]), "scale"
        elif len(op.operands) == 2 and (layer := _shifted_layer(op, index)):
            weight, suffix = self._origin(layer.operands[1]), "bias"
        else:
            return None
        stem = stem_of_weight(weight or "")
        if weight is None or stem in ("", weight) or _is_uninformative(weight):
            return None
        return f"{stem}.{suffix}" if "." in stem else f"{stem}_{suffix}"

    def _origin(self, value: SSAValue) -> str | None:
        """Name of the weight that a value is a form of."""
        passed: list[SSAValue] = []
        source: SSAValue | None = value
        while source is not None and source not in self._origins:
            passed.append(source)
            source = self._source(source)
        found = None if source is None else self._origins[source]
        self._origins.update(dict.fromkeys(passed, found))
        return found

    def _source(self, value: SSAValue) -> SSAValue | None:
        """Value that a value is a form of; None if there is none."""
        owner = value.owner
        if isinstance(owner, LoadCachedOp) and isinstance(value, OpResult):
            inner = self._function_of(owner.callee.string_value())
            terminator = None if inner is None else body_of(inner).last_op
            if inner is None or terminator is None:
                return None
            self._outside.update(zip(body_of(inner).args, owner.operands, strict=True))
            return terminator.operands[value.index]
        if isinstance(owner, CatalogueOp) and owner.operands:
            return owner.operands[0]
        return self._outside.get(value)


def _is_repeated(op: CatalogueOp, index: int) -> bool:
    """Returns whether an operand is at most one row or column, or smaller than the result."""
    sizes = shape_of(op.operands[index].type)
    return prod(sizes) == max(sizes, default=1) or prod(sizes) < prod(op.result_shape)


def _shifted_layer(op: CatalogueOp, index: int) -> CatalogueOp | None:
    """Layer to whose result a sum adds an operand; None for other ops."""
    layer = op.operands[1 - index].owner
    if operand_noun(op) != "offset" or not isinstance(layer, CatalogueOp):
        return None
    return layer if _is_layer(layer) and len(layer.operands) > 1 else None


def _is_layer(op: CatalogueOp) -> bool:
    return Trait.OF_LAYER in traits_of(library_definition(op))


def _is_form(op: CatalogueOp) -> bool:
    """Returns whether the result is the operand in another form."""
    if op.definition.rearranges or op.definition.short_name == "typecast":
        return True
    changes = traits_of(library_definition(op)) & (Trait.ALTERS | Trait.ADJUSTS)
    return bool(changes) and len(op.operands) == 1


def _attended_name(op: CatalogueOp, argument: SSAValue) -> str | None:
    """Role of an argument in positions and masks of attention, by an op that uses it."""
    short = op.definition.short_name
    if short == "add" and _only_user(op) == "softmax":
        return "mask"
    if not op.results or not isinstance(element_of(argument.type), IntegerType):
        return None
    if short in ("matmul", "multiply") and reaches(op.results[0], turns):
        return "positions"
    if not reaches(op.results[0], is_attention):
        return None
    return "position" if short == "add" else "mask"


def _only_user(op: CatalogueOp) -> str:
    user = op.results[0].get_user_of_unique_use()
    return user.definition.short_name if isinstance(user, CatalogueOp) else ""


def _operand_name(op: CatalogueOp, index: int) -> str:
    """Catalogue name of an operand."""
    position = 0
    for name, group in op.operand_groups().items():
        position += len(group)
        if index < position:
            return name
    return ""


def _is_index(op: CatalogueOp, operand: str) -> bool:
    """Returns whether the operand holds row indices of another one."""
    definition = TTIR.get(op.definition.short_name)
    specs = definition.operands if definition is not None else ()
    return any(spec.name == operand and spec.input_kind == "index" for spec in specs)


# Values implied by names of arguments.

VARIANCES = (0.5, 1.5)
"""Range of random variances, which must be positive: the ops divide by their roots."""

_VARIANCE = re.compile(r"(^|[^a-z])(running_)?var(iance)?$")


def is_variance(name: str) -> bool:
    """Returns whether a name in the source is one of a variance, as batch norms have it."""
    return _VARIANCE.search(name.lower()) is not None


def refuse_unusable_names(module: ModuleOp) -> None:
    """Raises CompileError for names that contain NUL, which C strings would truncate."""
    for op in module.walk():
        if not isinstance(op, FuncOp):
            continue
        names = [op.sym_name.data]
        for attributes in (*(op.arg_attrs or ()), *(op.res_attrs or ())):
            name = attributes.data.get("ttir.name")
            names += [name.data] if isinstance(name, StringAttr) else []
        for name in names:
            if "\0" in name:
                raise CompileError(
                    f"the name '{name.replace(chr(0), chr(92) + '0')}' has a NUL", op
                )
