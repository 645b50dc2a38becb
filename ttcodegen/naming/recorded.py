"""Names of values that are written down before other ops hide what they follow from."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.functions import body_of
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.emitc.identifiers import identifier
from ttcodegen.naming.constants import bias_name
from ttcodegen.naming.modules import given_names, names_of_function
from ttcodegen.naming.sources import given_name


def name_values(function: FuncOp) -> None:
    """Names the values of a function of TTIR that the source does not name: constants after the
    layers that they are biases of, others as in a program that calls the library."""
    given = given_names(function)
    ops = [op for op in body_of(function).ops if isinstance(op, CatalogueOp)]
    constants = [result for op in ops if not op.operands for result in op.results]
    for value in constants:
        if (name := given_name(value)) is not None:
            given.give(value, name, is_weight=True)
    for value in constants:
        if value not in given.names and (name := bias_name(value, given.names)) is not None:
            given.give(value, name, is_weight=True)
            value.name_hint = identifier(name)
    names = names_of_function(function, given)
    for op in ops:
        for result in op.results:
            hint = result.name_hint
            is_counted = hint is None or hint[-1:].isdigit()
            if op.operands and is_counted and given_name(result) is None:
                result.name_hint = identifier(names[result])
