"""`flex_attention` as ordinary operations: its scores and masks are functions of single elements.

`torch.export` keeps it as an operation with two graphs, of a score and of a mask. What they compute
for all elements is traced here and takes its place: `scaled_dot_product_attention` with a mask if
scores are not changed, else a matmul, a softmax and a matmul.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

Tensor = Any

OPERATION = "flex_attention"


def without_flex_attention(torch: Any, program: Any) -> Any:
    """Replaces each `flex_attention` of an exported program by the operations that it means."""
    module = program.graph_module
    calls = [n for n in module.graph.nodes if str(n.target) == OPERATION]
    block_masks = [each for call in calls for each in call.args[4] if hasattr(each, "users")]
    for call in calls:
        _replace(torch, module, call)
    if calls:
        _erase_with_sources(module.graph, [each for each in block_masks if each.op != "get_attr"])
        module.graph.eliminate_dead_code()
        module.recompile()
    return program


def _erase_with_sources(graph: Any, masks: Sequence[Any]) -> None:
    """Erases masks by block, which only kernels use, and what they alone are computed by.

    Dead code that changes tensors in place, or asserts, would be kept otherwise.
    """
    (output,) = graph.find_nodes(op="output")
    kept, sources = _ancestors([output]), _ancestors(masks)
    erased = [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and node not in kept
        and (node in sources or not sources.isdisjoint(node.all_input_nodes))
    ]
    for node in reversed(erased):
        if not node.users:
            graph.erase_node(node)


def _ancestors(nodes: Sequence[Any]) -> set[Any]:
    """The nodes, and those that they are computed from."""
    found: set[Any] = set()
    rest = list(nodes)
    while rest:
        node = rest.pop()
        if node not in found:
            found.add(node)
            rest.extend(node.all_input_nodes)
    return found


def _replace(torch: Any, module: Any, call: Any) -> None:
    query, key, value, score, block_mask, scale, _, score_buffers, mask_buffers = call.args
    score, mask = (getattr(module, each.target) for each in (score, block_mask[-1]))
    used = {user.args[1] for user in call.users if user.target is operator.getitem and user.users}
    fused = _is_identity(score) and used <= {0}
    heads = (query, key, value)
    sizes = (*query.meta["val"].shape[:3], key.meta["val"].shape[2])

    def seen(*buffers: Tensor) -> Tensor | None:
        return _over_elements(torch, mask, buffers, sizes, None)

    def attention(q: Tensor, k: Tensor, v: Tensor, *buffers: Tensor) -> list[Tensor | None]:
        of_score, of_mask = buffers[: len(score_buffers)], buffers[len(score_buffers) :]
        scores = _scores(torch, q, k, scale)
        scores = _over_elements(torch, score, of_score, sizes, scores)
        return _weighted(torch, scores, seen(*of_mask), v, q, used)

    with module.graph.inserting_before(call):
        if fused:
            place = _traced(module, seen, mask_buffers)
            shared = query.meta["val"].shape[1] != key.meta["val"].shape[1]
            product = module.graph.create_node(
                "call_function",
                torch.ops.aten.scaled_dot_product_attention.default,
                (*heads, place),
                {"scale": scale, "enable_gqa": shared},
                "attention",
            )
            product.meta["val"] = call.meta["val"][0]
            returned = [product]
        else:
            returned = _traced(module, attention, (*heads, *score_buffers, *mask_buffers))
    _locate(module, call)
    for user in list(call.users):
        if user.users:
            user.replace_all_uses_with(returned[user.args[1]])
        module.graph.erase_node(user)
    module.graph.erase_node(call)


def _traced(module: Any, function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Adds the operations of a function of nodes to a graph; returns the nodes of its results."""
    proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")
    fakes = [each.meta["val"] for each in module.graph.nodes if "val" in each.meta]
    mode = next(each.fake_mode for each in fakes if hasattr(each, "fake_mode"))
    with mode:
        traced = proxies.make_fx(function)(*(each.meta["val"] for each in operands))
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    return module.graph.graph_copy(traced.graph, dict(zip(placeholders, operands, strict=True)))


def _locate(module: Any, call: Any) -> None:
    """Gives new nodes the place of the call in the user's text."""
    for node in module.graph.nodes:
        if node is call:
            return
        if node.op == "call_function" and "stack_trace" not in node.meta:
            for key in ("stack_trace", "nn_module_stack"):
                if key in call.meta:
                    node.meta[key] = call.meta[key]


def _scores(torch: Any, query: Tensor, key: Tensor, scale: float) -> Tensor:
    """Products of queries and keys in the type that scores are computed in."""
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    key = _of_each_query(query, key).to(wide)
    return query.to(wide) @ key.transpose(-2, -1) * scale


def _of_each_query(query: Tensor, shared: Tensor) -> Tensor:
    """Repeats keys or values that heads or batches of queries share."""
    shared = shared.repeat_interleave(query.shape[1] // shared.shape[1], dim=1)
    return shared.expand(query.shape[0], *shared.shape[1:])


def _weighted(
    torch: Any,
    scores: Tensor,
    seen: Tensor | None,
    value: Tensor,
    query: Tensor,
    used: set[int],
) -> list[Tensor | None]:
    """Output, and binary logarithms of the sums and maxima of exponentials of scores.

    Those that are not `used` are None.
    """
    if seen is not None:
        scores = torch.where(seen, scores, -math.inf)
    logarithms = torch.logsumexp(scores, -1) / math.log(2) if 1 in used else None
    maxima = torch.amax(scores, -1) / math.log(2) if 2 in used else None
    weights = torch.nn.functional.softmax(scores, -1)
    if seen is not None:
        # Rows that see nothing are zeros.
        weights = torch.where(seen.any(-1, keepdim=True), weights, 0.0)
    return [weights.to(query.dtype) @ _of_each_query(query, value), logarithms, maxima]


def _over_elements(
    torch: Any,
    function: Any,
    captured: Sequence[Tensor],
    sizes: Sequence[int],
    scores: Tensor | None,
) -> Tensor | None:
    """A graph of single elements, for all of them; None for a mask that hides nothing.

    Indices are vectors along their dimensions, and elements broadcast; where a graph also computes
    with parts of what it captures, it is mapped.
    """
    if scores is None and _is_true(function):
        return None
    lead = () if scores is None else (scores,)
    if not _is_elementwise(function):
        return _mapped(torch, function, captured, sizes, lead)
    indices = [
        torch.arange(size).reshape([-1 if axis == each else 1 for each in range(4)])
        for axis, size in enumerate(sizes)
    ]
    return _only(function(*lead, *indices, *captured))


def _mapped(
    torch: Any,
    function: Any,
    captured: Sequence[Tensor],
    sizes: Sequence[int],
    lead: Sequence[Tensor],
) -> Tensor:
    def mapped(*arguments: Tensor) -> Tensor:
        return _only(function(*arguments))

    for axis in reversed(range(4)):
        places = [0 if axis == each else None for each in range(4)]
        axes = (*(0 for _ in lead), *places, *(None for _ in captured))
        mapped = torch.vmap(mapped, in_dims=axes)
    return mapped(*lead, *(torch.arange(size) for size in sizes), *captured)


def _is_elementwise(function: Any) -> bool:
    """Returns whether a graph computes with scalars, but for tensors that it reads elements of."""
    for node in function.graph.nodes:
        if node.op != "call_function":
            continue
        reads_element = str(node.target) == "aten.index.Tensor"
        operands = node.all_input_nodes[int(reads_element) :]
        values = [each.meta.get("val") for each in (node, *operands)]
        if any(getattr(value, "ndim", 0) for value in values):
            return False
    return True


def _only(returned: Any) -> Tensor:
    """The element of a sequence of one; other values unchanged."""
    return cast("Sequence[Any]", returned)[0] if isinstance(returned, tuple | list) else returned


def _is_identity(function: Any) -> bool:
    """Returns whether a graph returns its first argument."""
    first = next(node for node in function.graph.nodes if node.op == "placeholder")
    return _only(function.graph.find_nodes(op="output")[0].args[0]) is first


def _is_true(function: Any) -> bool:
    """Returns whether a mask is a constant that hides nothing."""
    returned = _only(function.graph.find_nodes(op="output")[0].args[0])
    return str(returned.target) in ("aten.new_ones.default", "aten.ones.default")
