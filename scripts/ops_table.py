"""Writes the table of ops, docs/ops.md, from the op catalogue.

python scripts/ops_table.py            # writes it
python scripts/ops_table.py --check    # exit status 1 if the file in the tree is another one
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import ttcodegen.ops
from ttcodegen.conversions.ttir_to_ttmetal.grouping.grouping import INDEXED, WINDOWS
from ttcodegen.conversions.ttir_to_ttmetal.grouping.index_maps import MOVEMENTS
from ttcodegen.conversions.ttir_to_ttmetal.grouping.tile_operations import REDUCTIONS
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.ops.core.definition import (
    REQUIRED,
    TTIR,
    TTNN,
    AttributeSpec,
    Definition,
    OperandSpec,
    TTIRDefinition,
    TTNNDefinition,
    with_trait,
)
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.tt_lang import CALLED_OPERATION

if __package__:
    from scripts.ops_calls import made_by
else:
    from ops_calls import made_by

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "ops.md"

_HEAD = """\
# Ops

<!-- Written by scripts/ops_table.py from ttcodegen/ops; a test compares the two. -->

{supported} ops of the TTIR dialect compile with `--target ttnn`, to {calls} ops of ttnn.
An op that is not in the first table is refused, as are those that it says are refused; all of them
are reported at once, with their counts.

`?` marks what may be absent, `...` what may occur any number of times. An attribute shows its
default after `=`; without one it has to be there.

## Where TTIR leaves it open

- `remainder` has the sign of the divisor, as the reference's folder has it.
- `sampling` multiplies the values by `temp`; it does not divide by it.
- `mean` of integers cuts the fraction off, towards zero, if the result is an integer.
- `logical_left_shift` and `logical_right_shift` by a negative amount, or by as many bits as there
  are or more, give 0. `right_shift` gives 0 or -1 then: copies of the sign. A card shifts numbers
  to the left if it is to shift them to the right by a negative amount.
- `sum`, `prod`, `cumsum` and `cumprod` of integers and booleans have the room of their result:
  booleans are counted, bytes do not wrap.
- `pow` of integers is exact in the golden run; a negative exponent leaves 0 of all but 1 and -1.
- Integers of 32 bits are exact in `add`, `subtract`, `multiply`, comparisons, `maximum`, `minimum`,
  shifts, bitwise ops, `sum`, `prod`, `max`, `min`, `cumsum` and `cumprod`: the vector engine
  computes these as integers. The matrix engine has floats of 11 bits only, so that sums of integers
  become the last of their running sums, and extremes are found pair by pair; up to 8 bits are
  reduced by it.
- `div` of integers cuts the fraction off, towards zero, to the last bit: those of ui32 are divided
  in several steps, as integers with a sign. By zero it gives 0 here, anything on a card.
  `remainder` of booleans is refused.
- Signed integers of 8 and 16 bits have 32 on the device. What `add`, `subtract`, `multiply`, `div`,
  `pow`, `neg`, `abs`, `square` and shifts make of them is cut off to their bits if the result is of
  their type, and has the room of 32 bits if that is what it has. So are `sum`, `prod`, `cumsum`,
  `cumprod` and matmuls. `typecast` takes the lowest bits of integers, and of floats
  the nearest number that the type has.
- Matmuls of integers are exact to the last of 32 bits, and wrap: they are divided into
  parts of a few bits, whose products are added up in float32 without loss (one product for bytes
  and up to 1024 summands, ten for integers of 32 bits).
- All integers go through float32 in ops for which ttnn takes none: above 2^24 their last bits are
  lost. In convolutions and pools they go through the matrix engine: those above 1024 lose theirs.
  Integers of 64 bits have 32 on the device.
- `scatter` leaves out slices of which a part is outside of the tensor, as XLA does.
- Arithmetic treats booleans as 0 and 1; as a boolean, everything but 0 is true.
- `sdpa_bw` takes the weights of attention from the intermediates and the sums of their slopes from
  `attn_output`, as they are given: it computes neither anew.
- What is no number: `sign` gives 1 or -1 by its sign bit, `clamp_tensor` the upper or lower bound
  by that bit; `argmax` of float32 passes over it, of bfloat16 it is the greatest; it is the
  greatest for `max_pool2d` and `max_pool2d_with_indices`.
- Integers have 1, 8, 16, 32 or 64 bits; others, and `index`, are refused. A constant of 64 bits
  beyond the device's 32 is refused, unless it is the limit of its type, which becomes that of the
  device's.

## TTIR

- limits: what the verifier asks of operands, attributes and results;
- computes in: the data types that the library takes for the first operand, the preferred one first.
  Tensors of other types are converted before and after it, so that an op takes all of them unless
  its limits say otherwise;
- ttnn: the calls that `--target ttnn` makes of the op, those included that depend on operands and
  attributes; in brackets the ops of this table that it is rewritten with first;
- ttmetal: what `--target ttmetal` makes of the op. tiles: an operation on tiles in
  registers, so that chains share a program. program: kernels of its own, with such chains
  before or after. movement: a program that moves elements, or nothing at all.
  number: kernels know it. rewritten: other ops of this table. cpu: a function in plain C++
  ([ttmetal.md](ttmetal.md#on-the-cpu)), as of any op here whose data types kernels do not take.

| op | operands | attributes | limits | computes in | ttnn | ttmetal |
|---|---|---|---|---|---|---|
"""

_LIBRARY_HEAD = """
## ttnn

What the compiler makes of them: the ops in the flatbuffer and the calls in the C++. An operand is
a tile tensor on the device unless it says otherwise: `any` for either page layout, `row-major`,
`host` for a tensor that is not on the device, and the data types if the library does not take all
of them. The compiler converts where a tensor is not so already.

| op | operands | attributes |
|---|---|---|
"""


def _operand_name(spec: OperandSpec) -> str:
    return spec.name + {"one": "", "optional": "?", "variadic": "..."}[spec.count]


def _demands(spec: OperandSpec) -> str:
    """Unusual operand constraints of the library, in brackets."""
    demands: list[str] = []
    if spec.layout is None:
        demands.append("any")
    elif spec.layout.value != "tile":
        demands.append("row-major")
    if spec.memory is not None and spec.memory.value == "host":
        demands.append("host")
    if spec.data_types is not None:
        demands.extend(data_type.name.lower() for data_type in spec.data_types)
    return f" ({', '.join(demands)})" if demands else ""


def _value(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case DataType():
            return value.name.lower()
        case list() | tuple():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return str(value)


def _attribute(spec: AttributeSpec) -> str:
    if spec.default is REQUIRED:
        return spec.name
    return f"{spec.name}?" if spec.default is None else f"{spec.name} = {_value(spec.default)}"


def _attributes(definition: Definition) -> str:
    return ", ".join(f"`{_attribute(spec)}`" for spec in definition.attributes)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _limits(definition: TTIRDefinition) -> str:
    verifier = definition.verify
    if verifier is None or verifier.__name__ == "<lambda>":
        return ""
    return " ".join((verifier.__doc__ or "").split())


def _types(definition: TTIRDefinition) -> str:
    """The data types of the call that the op is named after, or of the only one."""
    if definition.lower is None:
        return ""
    made = made_by(definition.lower, definition.short_name) & TTNN.keys()
    name = next(iter(made)) if len(made) == 1 else definition.short_name
    call = TTNN.get(name.removesuffix("_unrolled"))
    if call is None or not call.operands:
        return ""
    types = call.operands[0].data_types
    return "any" if types is None else ", ".join(each.name.lower() for each in types)


def _refusal(definition: TTIRDefinition) -> str | None:
    """Reason why no form of an op compiles; such ops have no numpy semantics."""
    return definition.refusal


def _to_ttnn(definition: TTIRDefinition) -> str:
    lowering = definition.lower or definition.decompose
    refusal = _refusal(definition)
    if refusal is not None or lowering is None:
        return f"refused: {refusal}"
    table = TTNN if definition.lower is not None else TTIR
    made = sorted(made_by(lowering, definition.short_name) & table.keys())
    # An op of its own name comes first.
    made.sort(key=lambda name: name != definition.short_name)
    names = ", ".join(f"`{name}`" for name in made) or "nothing"
    return names if definition.lower is not None else f"({names})"


def _to_ttmetal(definition: TTIRDefinition) -> str:
    """TTMetal lowering of an op, its own or that of the ops it is rewritten with."""
    if definition.tile is not None:
        return "tiles"
    if definition.fills:
        return "number"
    if definition.in_place is not None:
        return "program"
    for kind, names in _KERNELS.items():
        if definition.name in names:
            return kind
    rewriting = definition.primitives or definition.program
    if definition.lower is None:
        rewriting = rewriting or definition.decompose
    if rewriting is None:
        return "no" if definition.cpu is None else "cpu"
    made = made_by(rewriting, definition.short_name) & TTIR.keys() - {definition.short_name}
    return "no" if any(_to_ttmetal(TTIR[name]) == "no" for name in made) else "rewritten"


_KERNELS = {
    "program": (
        "ttir.matmul",
        CALLED_OPERATION,
        *INDEXED,
        *REDUCTIONS,
        *WINDOWS,
        *with_trait(Trait.ORDERS),
    ),
    "movement": MOVEMENTS,
}
"""Ops with programs of their own."""


def _ttir_row(definition: TTIRDefinition) -> str:
    operands = ", ".join(f"`{_operand_name(spec)}`" for spec in definition.operands)
    return _row(
        (
            f"`{definition.name}`",
            operands,
            _attributes(definition),
            _limits(definition),
            _types(definition),
            _to_ttnn(definition),
            _to_ttmetal(definition),
        )
    )


def _ttnn_row(definition: TTNNDefinition) -> str:
    operands = ", ".join(f"`{_operand_name(spec)}`{_demands(spec)}" for spec in definition.operands)
    return _row((f"`{definition.name}`", operands, _attributes(definition)))


_UNREACHED_HEAD = """
## Functions of ttnn that no op calls

{declared} functions of tensors are declared in `standalone/include/ttnn/operations`; {count} of
them are called by no op. Kernels are those of tt-metal 0.70.1 (`llk_sfpu` and `tt-llk`).

| functions | why |
|---|---|
"""

_UNREACHED = (
    ("add_ divide_ eq_ ge_ gt_ ldexp_ le_ logaddexp2_ logaddexp_ logical_and_ logical_or_ "
     "logical_xor_ lt_ multiply_ ne_ rsub_ squared_difference_ subtract_ bias_gelu_",
     "write into their first operand: variables that are moved from free it as early"),
    ("clamp_tss clip eq_unary ge_unary gt_unary le_unary lt_unary ne_unary power power_iterative "
     "rdiv relu_max relu_min rpow rsub unary_fmod unary_remainder",
     "second forms of `clamp`, comparisons, `pow`, `div`, `subtract`, `remainder`, which take "
     "numbers themselves"),
    ("eqz gez gtz lez ltz nez isneginf isposinf deg2rad rad2deg swish identity "
     "bitwise_left_shift sigmoid_accurate prelu_sfpu hardtanh",
     "one call of another function computes the same"),
    ("recv_async send_async",
     "send tensors between the stages of a pipeline, which the support library of projects does"),
    ("erfinv",
     "Winitzki's approximation: its roots cancel near 0, by 10 % at 0.001. Two polynomials take "
     "its place"),
    ("cosh sinh",
     "an exponential that is made for bfloat16, also for float32; the difference of two cancels "
     "near 0"),
    ("softplus log_sigmoid",
     "polynomials that are off at 0 by 7e-4 (`log_sigmoid`) and 4e-5 (`softplus`), also for "
     "float32"),
    ("digamma", "fitted to 0.01 to 102 alone"),
    ("acosh", "through the square: 88.7 of 1e20, which is 46.7, and of infinity"),
    ("atanh", "off by 1e-3 near 0, also for float32: 0.0011 of 1e-6"),
    ("i0 i1",
     "polynomials for small operands: 1e21 of 88, which is 7e36; `i1` is off by 44 % on average"),
    ("lgamma", "off by 9 % at 0.51, also for float32"),
    ("hypot logaddexp logaddexp2",
     "through the square or the exponential: infinity from 1e20 on, 0 of two numbers of 1e-30; "
     "`logaddexp` of NaN is infinite"),
    ("fmod", "by the quotient: 2e31 of 3e38 by -1e4, NaN of 0 by infinity"),
    ("xlogy", "NaN of 0 and 0, which is 0; the logarithm of infinity is 88.7"),
    ("ldexp", "0 or infinite where the exponent is NaN; bfloat16 is off by 1 %"),
    ("logit", "16 % off in bfloat16 at 0.494, where the logarithm of a quotient is near 0"),
    ("hardmish", "another function than papers have: 0 of -2, which is -0.32"),
    ("heaviside", "its value at 0 is not that of -0, and it is 1 for NaN"),
    ("tanhshrink", "the difference of two: 0 of 0.001 in bfloat16, 1e-13 of 1e-6 in float32"),
    ("lerp", "the difference of two: 77 % off in bfloat16 where the ends cancel, NaN where one of "
     "them is infinite"),
    ("gcd lcm", "`lcm` is wrong beyond 24 bits, `gcd` of -2^31 has the wrong sign"),
    ("addalpha addcdiv addcmul celu hardshrink hardswish mac prelu softshrink "
     "squared_difference subalpha threshold",
     "as good as the calls of front ends (float32 to 2e-5), which other ops merge with: the "
     "epilogue of a matmul takes a sum or a product, and not these"),
    ("squeeze unsqueeze expand view stack chunk roll tril triu copy assign move reallocate "
     "transpose ",
     "other ops that move elements (`reshape`, `permute`, `slice`, `concat`, `repeat`, `where`) do "
     "it, and simplify each other"),
    ("tilize untilize untilize_with_unpadding to_dtype reshard sharded_to_interleaved",
     "`to_layout`, `typecast` and `to_memory_config` call them"),
    ("empty_like full_like ones_like zeros_like ",
     "constants have shapes of their own"),
    ("addmm group_norm nlp_concat_heads scatter_add",
     "`linear`, `layer_norm` of the groups, `concatenate_heads` and `scatter` take their place"),
    ("global_avg_pool2d",
     "divides by the width of the tiles, not by that of the image; `mean` takes its place"),
    ("fill_cache_for_user_ prepare_conv3d_weights unary_chain",
     "no op needs them; a person's program may"),
)  # fmt: skip
"""Functions that no op calls, with the reason."""

_PROTOTYPE = re.compile(
    r"TTCODEGEN_[A-Z]+\((\w+)\)"
    r"|^(?:\w[\w:<>,&\* ]*?[&\* >])?(\w+)\(const (?:ttnn::)?(?:Tensor|std::vector<Tensor>)&",
    re.MULTILINE,
)
_CALLED = re.compile(r"ttnn::(?:\w+::)*(\w+)")
_PARAMETER_OF_MACRO = "name"


def declared_functions() -> set[str]:
    """Functions of tensors that the CPU backend declares, by their names without namespaces."""
    found: set[str] = set()
    for path in (ROOT / "standalone/include/ttnn/operations").rglob("*.hpp"):
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        found.update(one or other for one, other in _PROTOTYPE.findall(text))
    return {name for name in found if name.islower()} - {_PARAMETER_OF_MACRO}


def called_functions() -> set[str]:
    """Functions that ops of ttnn are named after, or that the catalogue writes calls of."""
    found = {name.rpartition(".")[2] for name in TTNN}
    for path in (ROOT / "ttcodegen/ops").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found.update(_CALLED.findall(text))
        found.update(re.findall(r'"(prepare_conv_\w+)"', text))
    return found


def _unreached_rows() -> Iterator[str]:
    declared = declared_functions()
    missing = declared - called_functions()
    listed = {name for names, _ in _UNREACHED for name in names.split()}
    if unknown := missing - listed:
        raise SystemExit(f"no op calls {sorted(unknown)}: say why in scripts/ops_table.py")
    yield _UNREACHED_HEAD.format(declared=len(declared), count=len(missing))
    for names, reason in _UNREACHED:
        shown = [f"`{name}`" for name in sorted(names.split()) if name in missing]
        if shown:
            yield _row((", ".join(shown), reason))


def table() -> str:
    """The text of docs/ops.md."""
    ttcodegen.ops.load()
    ttir = [TTIR[name] for name in sorted(TTIR)]
    calls = [TTNN[name] for name in sorted(TTNN)]
    supported = sum(_refusal(definition) is None for definition in ttir)
    return "".join(
        [
            _HEAD.format(supported=supported, calls=len(calls)),
            *map(_ttir_row, ttir),
            _LIBRARY_HEAD,
            *map(_ttnn_row, calls),
            *_unreached_rows(),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 written or up to date, 1 not up to date."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    options = parser.parse_args(arguments)
    text = table()
    if not options.check:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.is_file() and TABLE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/ops.md is out of date: run python scripts/ops_table.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
