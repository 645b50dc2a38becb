"""The complementary error function where jax spells it out: polynomials near zero and far from it.

Coefficients and the order of operations differ from release to release, so what is spelled out is
recognized by its values: the ops are computed for numbers from the whole range.
"""

from __future__ import annotations

from math import erfc

from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import bf16, element_of, f32
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import splat_of
from ttcodegen.transforms.evaluation import evaluate
from ttcodegen.transforms.rewriting import PatternSet, Rewriter
from ttcodegen.transforms.ttir.queries import is_elementwise

ERROR_FUNCTIONS = PatternSet()

_MOST_OPS = 160
_ENDS = (0.0, -0.0, 0.999, -0.999, 1.0, -1.0, 2.0, -2.0, float("inf"), -float("inf"), float("nan"))


@ERROR_FUNCTIONS.on("ttir.where")
def fuse_spelled_complement(rewriter: Rewriter, op: CatalogueOp) -> SSAValue | None:
    """1 - x * p(x^2) where abs(x) < 1, and exp(-x^2) / x * q(1 / x^2) elsewhere."""
    is_near = rewriter.defining(op.operands[0], "ttir.lt")
    if is_near is None or splat_of(is_near.operands[1]) != 1:
        return None
    size = rewriter.defining(is_near.operands[0], "ttir.abs")
    if size is None or element_of(op.results[0].type) != f32:
        return None
    x = size.operands[0]
    if x.type != op.results[0].type:
        return None
    samples = np.concatenate([np.linspace(-11, 11, 353), _ENDS]).astype(np.float32)
    found = _computed(op.results[0], x, samples)
    expected = np.array([erfc(float(each)) for each in samples])
    # Subnormal numbers are zero, on the device too.
    if found is None or not np.allclose(found, expected, 1e-4, 1e-30, equal_nan=True):
        return None
    cast = rewriter.defining(x, "ttir.typecast")
    users = [use.operation for use in op.results[0].uses]
    is_narrow = cast is not None and element_of(cast.operands[0].type) == bf16
    if cast is not None and is_narrow and users and all(map(_narrows, users)):
        found_narrow = rewriter.emit("erfc", [cast.operands[0]], cast.operands[0].type)
        return rewriter.typecast(found_narrow, f32)
    return rewriter.emit("erfc", [x], op.result_type)


def _narrows(user: object) -> bool:
    if not isinstance(user, CatalogueOp) or user.name != "ttir.typecast":
        return False
    return user.result_type.element_type == bf16


def _computed(value: SSAValue, x: SSAValue, samples: Array) -> Array | None:
    """Evaluates `value` elementwise from samples of `x`, None if it depends on more."""
    known: dict[SSAValue, Array] = {x: samples}
    order: list[CatalogueOp] = []
    pending = [value]
    seen = {x}
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        if (splat := splat_of(each)) is not None:
            known[each] = np.full(samples.shape, splat, np.float32)
            continue
        op = each.owner
        if not isinstance(op, CatalogueOp) or not is_elementwise(op):
            return None
        order.append(op)
        if len(order) > _MOST_OPS:
            return None
        pending += op.operands
    while order:
        ready = [op for op in order if all(operand in known for operand in op.operands)]
        if not ready:
            return None
        for op in ready:
            operands = [known[operand] for operand in op.operands]
            known[op.results[0]] = evaluate(op, operands, [samples.shape])[0]
        order = [op for op in order if op.results[0] not in known]
    return known[value]
