"""Names of outlined functions, CPU functions, and their parameters and values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM
from ttcodegen.emitc.spelling import NameScope, identifier
from ttcodegen.naming.sources import common_layer, common_parts, is_generic
from ttcodegen.ops.core.definition import TTNN, call_has_trait
from ttcodegen.ops.core.traits import Trait

# Names of functions of layers: after their computation, or the source's names of the layers.

_PATH = re.compile(r"[./]")
_PLURALS = {"layers": "layer", "blocks": "block", "stages": "stage", "heads": "head"}
_NOUNS = {
    "project_and_rotate": "rotary_projection",
    "project": "projection",
    "normalize": "normalization",
    "rotate": "rotation",
    "embed": "embedding",
}
"""Nouns of the verbs in names of layer functions."""
_SHAPES_OR_NUMBER = re.compile(r"_\d+(?:x\d+)+(?:_to_\d+(?:x\d+)+)?(?:_\d+)?$|_\d+$")
_CALLS = {"window_product": "conv2d", "window_reduction": "max_pool2d"}
"""Names of ttnn calls for ops of device programs."""
_WRAPPERS = frozenset("model module net network l self".split())
"""Parts of a path that occur in all layers."""
_TOKENS = re.compile(r"[._/]+")
_DIGITS = re.compile(r"\d+")
_DIGITS_AT_END = re.compile(r"(?:_\d+)+$")


def layer_function_name(
    ops: Iterable[Operation], titles: Iterable[str | None], result: str, *, has_weights: bool
) -> str:
    """Returns the name of a function of several layers.

    Args:
        ops: ops of one of the layers.
        titles: names of the layers in the source.
        result: name of its result; empty if it has none.
        has_weights: whether it takes weights.
    """
    ops = list(ops)
    found = [op for op in ops if isinstance(op, CatalogueOp)]
    launched = [kind for op in ops for kind in _computed(op)]
    counts = Counter([*(op.definition.short_name for op in found), *launched])
    if not launched and all(op.definition.rearranges for op in found):
        return "reshape_row_major" if counts["reshape"] and counts["to_layout"] else "rearrange"
    if not result:
        overwriting = [op for op in found if op.definition.in_place is not None]
        return f"{overwriting[-1].definition.short_name}_rows" if overwriting else "run"
    if has_weights and not launched and _only_projects(found):
        return "project"
    named = _meaning(counts) or _step_of_layer([title for title in titles if title])
    return named or (_kind(counts) if has_weights else f"compute_{result}")


def _computed(op: Operation) -> list[str]:
    """Computation of a device program, as ttnn calls."""
    if operation_name(op) != RUN_PROGRAM:
        return []
    # Imported on demand: programs of the library do not need the dialects of device programs.
    from ttcodegen.dialects.ttmetal.device_module import launch_of

    return [_CALLS.get(kind, kind) for kind in launch_of(op).program.purpose.split(", ")]


def layer_array_name(function: str) -> str:
    """Name of the array of weights for a layer function.

    For example `bottlenecks_with_shortcut` for `bottleneck_with_shortcut`, and `normalizations_2`
    for `normalize_2`."""
    for verb, noun in _NOUNS.items():
        function = re.sub(rf"^{verb}(?=$|_)", noun, function)
    return re.sub(r"^(.*?)(_with_.*|_\d+)?$", r"\1s\2", function)


def part_title(layers: Sequence[str]) -> str | None:
    """Title of a part of a function, by the layers of its statements.

    One layer, or the first and the last; None if they have no names."""
    named = [layer for layer in layers if layer]
    if not named:
        return None
    title = common_layer(named)
    if title is not None and title not in _WRAPPERS:
        length = len(_PATH.split(title))
        if all(common_parts(title, each) == length for each in named):
            return title
    ends = _ends(named[0], named[-1])
    return " to ".join(dict.fromkeys(ends))


def _ends(first: str, last: str) -> tuple[str, str]:
    """Shortens two layers to where their paths differ; a number keeps the part before it."""
    if not _PATH.search(first + last):
        return _last_words(first), _last_words(last)
    start = common_parts(first, last)
    return _step(_PATH.split(first), start), _step(_PATH.split(last), start)


def _step(parts: Sequence[str], start: int) -> str:
    start = min(start, len(parts) - 1)
    while parts[start] in _WRAPPERS and start + 1 < len(parts):
        start += 1
    if start and parts[start][:1].isdigit():
        start -= 1
    end = start + 1
    while end < len(parts) and parts[end].isdigit():
        end += 1
    return ".".join(parts[start:end])


def _last_words(layer: str) -> str:
    return "_".join(layer.split("_")[-2:])


def part_name(function: str, title: str | None) -> str:
    """Name of a function that holds a part of another one, after its title."""
    return identifier(f"{function}_{title or 'part'}")


def common_title(titles: Iterable[str | None]) -> str | None:
    """Common path of several layers; None if all layers of the model have it."""
    title = common_layer([title for title in titles if title])
    return None if title in _WRAPPERS else title


def size_title(titles: Sequence[str | None], common: str) -> str:
    """Title of layers of one size: the path that only they share, or else the first one's.

    The path that all layers share is omitted, except for what a number follows."""
    shared = common_title(titles) or ""
    if shared == common and len(set(titles)) > 1:
        shared = titles[0] or ""
    above = common.rpartition(".")[0]
    title = shared.removeprefix(above).lstrip("./")
    return f"{above.rpartition('.')[2]}.{title}" if title[:1].isdigit() else title


def preparation_verb(ops: Iterable[Operation]) -> str:
    """Verb for a function of these ops that computes constants, if there is one."""
    ops = list(ops)
    kinds = {operation_name(op).rpartition(".")[2] for op in ops}
    kinds.update(kind for op in ops for kind in _computed(op))
    if "constant" in kinds:
        return "load_parameter"
    if {"rsqrt", "subtract"} <= kinds:
        return "fold_batch_norm"
    return "fold_scale" if "multiply" in kinds else ""


def preparation_name(verb: str, results: Iterable[SSAValue], called: str, scope: NameScope) -> str:
    """Name of a function that computes constants: after its ops, or else its results.

    If that is taken, the shape of the results is added, or, for several shapes, the last word of
    their name: `load_bias`."""
    name = identifier(verb or f"prepare_{called}")
    if not scope.is_taken(name):
        return scope.unique(name)
    shapes = {shape_text(shape_of(result.type)) for result in results}
    if len(shapes) == 1:
        return scope.unique(f"{name}_{shapes.pop()}")
    last = _DIGITS_AT_END.sub("", called).rpartition("_")[2]
    return scope.unique(identifier(f"{name.partition('_')[0]}_{last}"))


def without_shapes(name: str) -> str:
    """Strips the shapes and the number at the end of a name."""
    return _SHAPES_OR_NUMBER.sub("", name)


def settings_name(function: str, result: SSAValue) -> str:
    """Name of the settings of a function for a result with this shape."""
    return f"{function}_{shape_text(shape_of(result.type))}"


def shape_text(shape: Sequence[int]) -> str:
    """Shape as a part of a name: at least two dimensions, without leading ones of size 1."""
    sizes = [1, 1, *shape]
    while len(sizes) > 2 and sizes[0] == 1:
        sizes.pop(0)
    return "x".join(map(str, sizes))


def _meaning(counts: Counter[str]) -> str:
    """Common name for a combination of ops, if there is one."""
    if counts["conv2d"] >= 3 and counts["concat"] and _count(counts, Trait.TAKES_PART):
        # Cross-stage partial: a part of the channels bypasses the convolutions.
        return "csp_block"
    if counts["conv2d"] >= 3 and counts["add"]:
        has_shortcut = counts["conv2d"] > 3
        return "bottleneck_with_shortcut" if has_shortcut else "bottleneck"
    if counts["conv2d"] == 2 and counts["add"]:
        return "residual_block"
    if counts["embedding"] and not counts["add"]:
        return "embed"
    products = _count(counts, Trait.MATRIX_PRODUCT)
    if products and counts["sigmoid"] > 1 and counts["tanh"] and counts["multiply"] > 1:
        return "lstm_step" if counts["sigmoid"] > 2 else "gru_step"
    if _attends(counts):
        return "" if _is_whole_layer(counts, products) else "attention"
    rotates = counts["multiply"] and counts["concat"] and counts["add"]
    # The caller may add both halves; one of them is negated, or swapped by a matmul.
    swaps = counts["neg"] or counts["matmul"] > 1
    rotates = rotates or (counts["multiply"] > 1 and counts["concat"] and swaps)
    if any(_is_norm(name) for name in counts) and not products and not counts["conv2d"]:
        return "normalize_and_rotate" if rotates else "normalize"
    # Matmuls may swap the halves: they have no weight.
    layers = _count(counts, Trait.OF_LAYER) - counts["matmul"]
    if rotates and layers == 0:
        return "rotate"
    if rotates and layers == counts["linear"] == 1:
        return "project_and_rotate"
    if products >= 2 and _count(counts, Trait.ACTIVATES) and not counts["conv2d"]:
        return "feed_forward"
    return ""


def _only_projects(ops: Sequence[CatalogueOp]) -> bool:
    """Returns whether the ops are one matmul, besides changes of form."""
    matmul = Trait.MATRIX_PRODUCT
    others = [op for op in ops if not call_has_trait(op.definition.short_name, matmul)]
    return len(others) == len(ops) - 1 and all(op.definition.rearranges for op in others)


def _is_whole_layer(counts: Counter[str], products: int) -> bool:
    """Returns whether the ops are an attention with what follows it: a transformer layer."""
    return products >= 4 and _count(counts, Trait.ACTIVATES) > 0


def _count(counts: Counter[str], trait: Trait) -> int:
    return sum(count for name, count in counts.items() if call_has_trait(name, trait))


def _is_norm(name: str) -> bool:
    definition = TTNN.get(name)
    return definition is not None and "normalized" in definition.nouns


def _attends(counts: Counter[str]) -> bool:
    return bool(counts["softmax"] or _count(counts, Trait.ATTENDS))


def _step_of_layer(titles: Sequence[str]) -> str:
    """Common words of the paths of layers, with `_step` if they are calls of one layer."""
    words = _common_words(titles)
    is_one = words and len(titles) > 1 and len(set(titles)) == 1
    return f"{words}_step" if is_one else words


def _common_words(titles: Sequence[str]) -> str:
    """Last common words of the paths without numbers: `encoder_layer`."""
    paths = [
        [
            word
            for part in _PATH.split(title)
            if part not in _WRAPPERS
            for word in part.split("_")
            if word and not word.isdigit()
        ]
        for title in titles
    ]
    shared: list[str] = []
    for words in zip(*paths, strict=False):
        if len(set(words)) > 1:
            break
        shared.append(words[0])
    words = [_PLURALS.get(word, word) for word in shared]
    name = "_".join(words[-2:])
    return name if len(name) > 1 else ""


def _kind(counts: Counter[str]) -> str:
    if _attends(counts):
        return "transformer_layer"
    if counts["conv2d"]:
        return "convolution_block"
    return "layer"


def common_name(names: Iterable[str]) -> str | None:
    """Common part of several names: `layer0.weight`, `layer1.weight` -> `layer_weight`."""
    found = list(names)
    if len(set(found)) == 1:
        return found[0]
    tokens = [list(filter(None, _TOKENS.split(name))) for name in found]
    shared: list[str] = []
    while all(tokens):
        last = [words[-1] for words in tokens]
        plain = {_DIGITS.sub("", word) for word in last}
        if len(set(last)) > 1 and "" in plain:
            # A number in some of them is skipped.
            for words in tokens:
                if words[-1].isdigit():
                    words.pop()
            continue
        if len(plain) > 1:
            break
        shared.insert(0, last[0] if len(set(last)) == 1 else plain.pop())
        for words in tokens:
            words.pop()
    return "_".join(shared) or None


# Names of parameters and values in outlined functions: the common part of the names in all groups.

WEIGHTS = "weights"
"""Parameter of a layer function that is the structure of its weights."""
SIZES = "sizes"
SETTINGS = "settings"
"""Parameter that is the structure of other differences: only shapes, or others as well."""
ARGUMENTS = "arguments"
"""Parameter of a function that computes constants and takes many arguments."""

_LEARNED = ("weight", "bias")
_ROLES: Mapping[str, str] = {
    "weight_tensor": "weight",
    "weight": "weight",
    "input_tensor_b": "weight",
    "bias_tensor": "bias",
    "bias": "bias",
}
"""Roles of the parameters of the library."""


def role_of_parameter(parameter: str) -> str | None:
    """Role of a tensor, weight or bias, by its parameter in a call; None for others."""
    return _ROLES.get(parameter)


def role_in_layer(layer: str, role: str) -> str:
    """Role of a weight, after the result that it computes: `query_weight`.

    Args:
        layer: name of the result, if known.
        role: role of the weight.
    """
    return f"{layer}_{role}" if layer else role


def layer_parameter_name(names: Sequence[str], role: str | None, *, are_members: bool) -> str:
    """Parameter name of a value in a layer function.

    Args:
        names: name in each layer, without the path of the layer.
        role: role in the calls of the function, if known: `query_weight`.
        are_members: whether it is a weight, a constant or an input in each layer.
    """
    if len(set(names)) == 1:
        return names[0]
    if not are_members:
        return "input"
    common = common_name(names)
    if common is not None and is_generic(common):
        common = None
    if common is not None and common.rpartition("_")[2] in _LEARNED:
        return common
    return role or common or "operand"


def prepared_parameter_name(names: Iterable[str], verb: str) -> str:
    """Parameter name of a value in a function that computes constants.

    Args:
        names: name in each group.
        verb: verb of the function, empty if there is none.
    """
    common = common_name(names) or "operand"
    learned = common.rpartition("_")[2]
    if learned in _LEARNED:
        # The path of a layer is meaningless in a function for all layers.
        return "_".join(common.split("_")[-2:])
    return "scale" if verb == "fold_scale" else common


def names_inside(
    results: Sequence[Sequence[SSAValue]], name_of: Callable[[SSAValue], str], otherwise: str
) -> dict[SSAValue, str]:
    """Names of the first group's results: the common part of all groups' names.

    Args:
        results: results of each group, in order.
        name_of: name of a value outside of the function.
        otherwise: name of values whose names have nothing in common.
    """
    return {
        values[0]: common_name(map(name_of, values)) or otherwise
        for values in zip(*results, strict=True)
    }


def names_of_forms(
    results: Sequence[Sequence[SSAValue]],
    name_of: Callable[[SSAValue], str],
    parameters: Mapping[tuple[str, ...], str],
) -> dict[SSAValue, str]:
    """Names of the first group's results that are other forms of incoming values.

    Args:
        results: results of each group, in order.
        name_of: name of a value outside of the function.
        parameters: parameter of an incoming value, by its names in the groups.
    """
    found: dict[SSAValue, str] = {}
    for values in zip(*results, strict=True):
        name = _form_of(tuple(map(name_of, values)), parameters)
        if name is not None:
            found[values[0]] = name
    return found


def _form_of(called: tuple[str, ...], parameters: Mapping[tuple[str, ...], str]) -> str | None:
    """Parameter that values are named after, with their suffix.

    For example `input_first_half` for `queries_first_half` and `keys_first_half`."""
    if called in parameters:
        return parameters[called]
    for outside, parameter in parameters.items():
        pairs = list(zip(called, outside, strict=True))
        if all(name.startswith(f"{start}_") for name, start in pairs):
            rests = {name.removeprefix(start) for name, start in pairs}
            if len(rests) == 1 and len(set(outside)) > 1:
                return f"{parameter}{rests.pop()}"
    return None


def shape_parameter_name(result: SSAValue, source: SSAValue | None, called: str) -> str:
    """Name of the parameter with the shape of a statement's result.

    Args:
        result: the result.
        source: the first operand, if any.
        called: name of the result.
    """
    name = f"{called}_shape".removeprefix("result_")
    if source is None:
        return name
    before, after = shape_of(source.type), shape_of(result.type)
    is_flat = len(after) < len(before) or (
        len(after) == len(before) > 2 and after[:2] == (1, 1) != before[:2]
    )
    return f"flat_{name}" if is_flat else name


# Names of CPU functions.

_HOISTED = re.compile(r"cpu_hoisted_(?:ttir_)?(\w+?)_[0-9a-f]{8,64}")


def cpu_function_symbol(op: str, digest: str) -> str:
    """Symbol of a CPU function, as in tt-mlir: equal functions share it.

    Args:
        op: the short name of the op that it computes.
        digest: hexadecimal hash of its content.
    """
    return f"cpu_hoisted_ttir_{op}_{digest}"


def cpu_function_name(symbol: str) -> str:
    """Name of a CPU function by its symbol: `argmax` for `cpu_hoisted_ttir_argmax_83172da1`."""
    found = _HOISTED.fullmatch(symbol)
    return found[1] if found is not None else symbol


def cpu_function_title(function: FuncOp, scope: NameScope) -> str:
    """C++ name of a CPU function: after its op, with the shape of the result if that is taken."""
    title = identifier(f"cpu_{cpu_function_name(function.sym_name.data)}")
    results = function.function_type.outputs.data
    if scope.is_taken(title) and results:
        title = f"{title}_{shape_text(shape_of(results[0]))}"
    return scope.unique(title)


def purpose_of_cpu_function(name: str) -> str:
    """Purpose of a CPU function by its C++ name: `reshape_on_cpu`.

    The C++ name may end in a shape and a number."""
    return f"{without_shapes(name).removeprefix('cpu_')}_on_cpu"
