"""Every rewrite keeps what NaN, infinities, zeros of both signs, subnormals and ties give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue

from tests.transforms import (
    test_canonicalize,
    test_erase_inverse,
    test_fusing,
    test_fusing_decoding,
    test_fusing_library_functions,
    test_fusing_spellings,
)
from tests.transforms.edge_values import difference, edge_inputs
from tests.transforms.numpy_execution import run
from tests.transforms.programs import TOLERANCES, Formulas, Transformed, apply
from tests.transforms.test_fusing_attention import Attention, parts_of
from tests.transforms.test_fusing_batch_norm import by_factor
from tests.transforms.test_fusing_grouped_attention import Grouped
from tests.transforms.test_fusing_repetitions import attention as repeated_attention
from tests.transforms.test_fusing_repetitions import known_mask, shared_heads
from tests.transforms.test_fusing_rotary import Rotation
from ttcodegen.dialects.core.datatypes import (
    bf16,
    element_of,
    f32,
    numpy_name,
    shape_of,
    si32,
    ui32,
)
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.parsing import parse_module
from ttcodegen.transforms import rewriting
from ttcodegen.transforms.rewriting import PatternSet, Replacement, Rewriter, Rule
from ttcodegen.transforms.ttir.canonicalize import TTIRCanonicalizePass
from ttcodegen.transforms.ttir.fusing.heads import SPLITS
from ttcodegen.transforms.ttir.fusing.rules import TTIRFusingPass, fusing_rules
from ttcodegen.transforms.ttir.movement_passes import TTIREraseInversePass, erasing_rules

Build = Callable[[Formulas], "SSAValue | list[SSAValue]"]


def broadcast(p: Formulas, value: SSAValue, *factors: int) -> SSAValue:
    shape = [a * b for a, b in zip(shape_of(value.type), factors, strict=True)]
    result = TensorType(element_of(value.type), shape)
    return p.make.emit("broadcast", [value], result, broadcast_dimensions=list(factors))


def looked_up(p: Formulas) -> SSAValue:
    places = p.make.reshape(p.argument(4, element=si32), [4, 1])
    numbers = p.make.emit("arange", [], TensorType(si32, [5]), start=0, end=5, step=1)
    one_hot = p.make.broadcasting("eq", places, p.make.reshape(numbers, [1, 5]), element=f32)
    return p.make.emit("matmul", [one_hot, p.weight(5, 6)], TensorType(f32, [4, 6]))


def linear(p: Formulas) -> SSAValue:
    operands = [p.argument(4, 6), p.argument(6, 8)]
    return p.make.emit("linear", operands, TensorType(f32, [4, 8]))


def moved_maximum(p: Formulas) -> SSAValue:
    x = p.argument(2, 3, 4)
    turned = p.make.permute(p.make.reduce("max", x, [2]), [1, 0, 2])
    shifted = p.b("subtract", p.make.permute(x, [1, 0, 2]), turned)
    return p.make.like("softmax", shifted, dimension=2)


def moves(p: Formulas) -> SSAValue:
    value = p.make.reshape(p.argument(2, 3, 4), [6, 4])
    value = p.make.reshape(p.make.permute(value, [1, 0]), [4, 2, 3])
    return p.make.permute(value, [1, 2, 0])


def joined_heads(p: Formulas) -> SSAValue:
    return p.make.reshape(p.make.permute(p.argument(2, 3, 64, 32), [0, 2, 1, 3]), [2, 64, 96])


def repeated_keys(p: Formulas) -> SSAValue:
    value = p.make.reshape(p.argument(2, 3, 5, 8), [2, 3, 1, 5, 8])
    return p.make.reshape(broadcast(p, value, 1, 1, 4, 1, 1), [2, 12, 5, 8])


def repeated_then_permuted(p: Formulas) -> SSAValue:
    result = TensorType(f32, [2, 6, 4])
    value = p.make.emit("repeat_interleave", [p.argument(2, 3, 4)], result, repeats=2, dim=1)
    return p.make.permute(value, [1, 0, 2])


def sorted_part(p: Formulas, reverse: bool) -> SSAValue:
    x = p.argument(3, 8)
    types = [x.type, TensorType(ui32, [3, 8])]
    values = p.make.emit_op("sort", [x], types, dim=1, descending=True, stable=True).results[0]
    if reverse:
        return p.make.emit("reverse", [values], x.type, dimensions=[1])
    return p.make.slice(values, [0, 0], [3, 3])


def attention(p: Formulas, **options: object) -> list[SSAValue]:
    return Attention(**options).build(p)  # pyright: ignore[reportArgumentType]


def known_causal(p: Formulas) -> SSAValue:
    q, k, v = (p.argument(1, 2, 12, 32, element=bf16) for _ in range(3))
    mask = known_mask(p, np.tril(np.ones((12, 12), bool)))
    mask = p.make.slice_dim(mask, 0, 0, 1)
    return p.make.emit("scaled_dot_product_attention", [q, k, v, mask], q.type, is_causal=False)


def nothing(p: Formulas) -> SSAValue:
    return p.make.reduce("sum", p.argument(3, 0), [1])


def sliced_queries(p: Formulas) -> list[SSAValue]:
    turned = p.make.permute(p.make.reshape(p.argument(4, 6), [4, 2, 3]), [1, 0, 2])
    return [p.make.slice_dim(turned, 0, index, index + 1) for index in range(2)]


def watched_moves(p: Formulas) -> list[SSAValue]:
    first = p.make.permute(p.argument(2, 4, 5, 3), [0, 3, 1, 2])
    flat = p.make.reshape(first, [2, 3, 20])
    return [p.make.permute(flat, [0, 2, 1]), p.u("exp", flat)]


def polynomial(p: Formulas, x: SSAValue, *coefficients: float) -> SSAValue:
    """Horner's scheme, from the highest power down."""
    first, second, *others = coefficients
    value = p.n("add", p.n("multiply", x, first), second)
    for each in others:
        value = p.n("add", p.b("multiply", value, x), each)
    return value


def spelled_complement(p: Formulas) -> SSAValue:
    """The complementary error function as XLA spells it out (its `math.cc`)."""
    x = p.argument(4, 64)
    size, square = p.u("abs", x), p.b("multiply", x, x)
    near = polynomial(
        p,
        square,
        *(7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3),
        *(-2.685381193529856e-2, 1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710),
    )
    near = p.n("subtract", p.b("multiply", x, near), 1.0, swap=True)
    factor = p.n("div", size, 1.0, swap=True)
    inverse = p.b("multiply", factor, factor)
    middle = polynomial(
        p,
        inverse,
        *(2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1),
        *(-5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1),
        *(3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1),
    )
    outer = polynomial(
        p,
        inverse,
        *(-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786),
        *(-1.015265279202700, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1),
    )
    ratio = p.make.broadcasting("where", p.n("lt", size, 2.0), middle, outer)
    scale = p.b("multiply", p.u("exp", p.u("neg", square)), factor)
    far = p.b("multiply", scale, ratio)
    other = p.n("subtract", far, 2.0, swap=True)
    far = p.make.broadcasting("where", p.n("lt", x, 0.0), other, far)
    return p.make.broadcasting("where", p.n("lt", size, 1.0), near, far)


def deviated(p: Formulas) -> SSAValue:
    deviation = p.u("sqrt", p.n("add", p.u("abs", p.weight(1, 1, 1, 4)), 0.5))
    return p.b("div", test_fusing.convolved(p), deviation)


def by_logarithm(p: Formulas) -> SSAValue:
    x = p.argument(4, 8)
    total = test_fusing_library_functions.log_sum_exp(p, x, False)
    return p.u("exp", p.b("subtract", x, total))


def pixels(p: Formulas) -> SSAValue:
    image = test_erase_inverse.image(p)
    return test_erase_inverse.pixels_averaged(p, p.u("relu", p.b("add", image, image)))


def one_number(p: Formulas) -> SSAValue:
    return p.b("add", p.argument(3), p.make.emit("ones", [], TensorType(f32, [3]), shape=[3]))


OTHERS: dict[str, Build] = {
    "one hot": looked_up,
    "spelled complement of the error function": spelled_complement,
    "linear": linear,
    "moved maximum": moved_maximum,
    "moves": moves,
    "joined heads": joined_heads,
    "repeated keys": repeated_keys,
    "repeated then permuted": repeated_then_permuted,
    "first of sorted": lambda p: sorted_part(p, False),
    "sorted and reversed": lambda p: sorted_part(p, True),
    "attention": attention,
    "attention with scale in two parts": partial(attention, split_scale=True),
    "guarded attention": partial(attention, guard="last", mask=(2, 1, 8, 16)),
    "grouped attention": lambda p: Grouped().build(p),
    "attention of repeated heads": lambda p: repeated_attention(
        p, [shared_heads(p, "broadcast", 2, 2) for _ in range(2)]
    ),
    "known causal mask": known_causal,
    "split heads": lambda p: parts_of(p, 4, 4, 32)[1],
    "sliced queries": sliced_queries,
    "rotation": lambda p: Rotation().whole_rows(p),
    "rotation in wide numbers": lambda p: Rotation(wide=True).halves(p),
    "batch norm": lambda p: by_factor(p, p.argument(2, 3, 4, 5), lambda: p.weight(1, 3, 1, 1)),
    "batch norm of a convolution": lambda p: test_fusing.batch_norm(p, test_fusing.convolved(p), 3),
    "convolution through a deviation": deviated,
    "softmax through its logarithm": by_logarithm,
    "product that sums over the rows of a softmax": lambda p: test_fusing_spellings.guarded_weights(
        p
    ),
    "converted norm": lambda p: p.b(
        "multiply",
        p.make.typecast(test_fusing.rms_norm(p, p.argument(4, 8)), bf16),
        p.weight(8, element=bf16),
    ),
    "moves that others look at": watched_moves,
    "nothing": nothing,
    "one number": one_number,
    "broadcast, reshaped": lambda p: p.u(
        "exp", p.make.reshape(broadcast(p, p.argument(1, 3, 4), 2, 1, 1), [2, 12])
    ),
    "broadcast, permuted": lambda p: p.u(
        "exp", p.make.permute(broadcast(p, p.argument(1, 3, 4), 2, 1, 1), [1, 0, 2])
    ),
    "leading ones": lambda p: p.b(
        "add", p.argument(2, 3, 4), p.make.reshape(p.argument(4), [1, 1, 4])
    ),
    "probabilities of the normal distribution": (
        lambda p: test_fusing_library_functions.normal_distribution(p, p.argument(4, 5))
    ),
    "pixels averaged": pixels,
}


@dataclass(frozen=True)
class Case:
    """A program that rules rewrite."""

    build: Build
    signs: bool = False
    """Requires that zeros keep their signs; rewrites of sums and products need not."""
    passes: tuple[type, ...] = (TTIRCanonicalizePass, TTIRFusingPass)
    permuted: bool = False

    def module(self) -> ModuleOp:
        p = Formulas()
        value = self.build(p)
        return p.returns(*(value if isinstance(value, list) else [value]))


@dataclass(frozen=True)
class WrittenCase(Case):
    """A program that is given as text."""

    text: str = ""

    def module(self) -> ModuleOp:
        return parse_module(Source("case.mlir", self.text))


def _cases() -> Iterator[tuple[str, Case]]:
    for name, (build, _) in test_canonicalize.SIMPLIFIED.items():
        yield f"simplified: {name}", Case(build, signs=name != "sum of one")
    tables = (
        (test_fusing, ("ACTIVATIONS", "NORMS", "PRODUCTS")),
        (test_fusing_spellings, ("NORMS", "PRODUCTS")),
    )
    for module, names in tables:
        for table in names:
            for name, (build, _) in getattr(module, table).items():
                yield f"{module.__name__.rpartition('.')[2]}: {name}", Case(build)
    for name, (formula, _) in test_fusing_library_functions.ACTIVATIONS.items():
        yield f"library: {name}", Case(partial(_on_argument, formula))
    for name, (between, _) in test_erase_inverse.BETWEEN.items():
        passes = (TTIRCanonicalizePass, TTIREraseInversePass)
        yield f"inverse: {name}", Case(partial(_between, between), passes=passes)
    for name, build in OTHERS.items():
        yield name, Case(build)
    step = test_fusing_decoding.step(test_fusing_decoding.SHOWN[0])
    yield "decode step", WrittenCase(nothing, text=step)
    yield "moves, erased", Case(watched_moves, passes=(TTIREraseInversePass,))


def _on_argument(formula: Callable[[Formulas, SSAValue], SSAValue], p: Formulas) -> SSAValue:
    return formula(p, p.argument(4, 8))


def _between(formula: Callable[[Formulas, SSAValue], SSAValue], p: Formulas) -> SSAValue:
    return p.make.permute(formula(p, test_erase_inverse.image(p)), test_erase_inverse.LAST)


CASES = dict(_cases())

OWN_MEANING = {
    # The vector engine compares bits: a clamp of NaN is a bound.
    "test_fusing: clamped relu6": "NaN",
}
"""Deviations of a fused op from the ops before the fusion, by case."""


@pytest.mark.parametrize("name", CASES)
def test_edges_are_kept(name: str) -> None:
    case = CASES[name]
    module = case.module()
    before = Transformed(module).function
    known = []
    for pool, inputs in edge_inputs(before):
        try:
            known.append((pool, inputs, run(before, inputs)))
        except IndexError:  # Indices from the ends of their types are of no place.
            continue
    after = apply(module, *(each() for each in case.passes)).function
    types = [numpy_name(element_of(type_)) or "" for type_ in after.function_type.outputs]
    for pool, inputs, expected in known:
        for first, second, dtype in zip(expected, run(after, inputs), types, strict=True):
            tolerance = TOLERANCES.get(dtype, 0.0)
            tolerance = max(tolerance, 5e-4) if "tanh gelu" in name else tolerance
            found = difference(first, second, tolerance, signs=case.signs)
            assert found in (None, OWN_MEANING.get(name)), f"{found} of {pool} inputs"


def all_rules() -> set[str]:
    """The names of the rules of all passes."""
    sets: tuple[PatternSet, ...] = (fusing_rules(), SPLITS, erasing_rules())
    return {name_of(rule) for each in sets for rules in each.rules.values() for rule in rules}


def name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", repr(rule))


def test_every_rule_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    applied: set[str] = set()
    worklist = rewriting._Worklist  # pyright: ignore[reportPrivateUsage]
    original = worklist._rewrite  # pyright: ignore[reportPrivateUsage]

    def observed(rule: Rule) -> Rule:
        def apply_rule(rewriter: Rewriter, op: CatalogueOp) -> Replacement | None:
            found = rule(rewriter, op)
            if found is not None:
                applied.add(name_of(rule))
            return found

        return apply_rule

    def rewrite(self: object, op: CatalogueOp, rules: list[Rule]) -> bool:
        return original(self, op, [observed(rule) for rule in rules])  # pyright: ignore

    monkeypatch.setattr(worklist, "_rewrite", rewrite)
    for case in CASES.values():
        apply(case.module(), *(each() for each in case.passes))
    assert all_rules() - applied == set()
