"""Names of the constants of `src/tuning.hpp`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, starmap

from xdsl.ir import Operation, SSAValue

from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.operations.operation import operation_name
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emitc.spelling import identifier
from ttcodegen.naming.functions import shape_text
from ttcodegen.naming.roles import ROLES
from ttcodegen.naming.sources import layer, name_or_kind, short_layer
from ttcodegen.naming.values import ValueNames, noun_of

NamedCall = tuple[Operation, ValueNames, Mapping[SSAValue, str]]
"""A call, the names of the values of its function, and those of them that are weights."""

_LAST = re.compile(r"[./]")

NAMESPACE = "tuning"
"""Of the constants."""
PRODUCT_MEMORY = "product_memory"
PRODUCT_PROGRAM = "product_program"
PRODUCT_COMPUTE = "product_compute"
PRODUCT_WEIGHTS = "product_weights_type"
"""Settings that all matmuls share: memory and program configuration, compute kernel configuration,
and the data type of their weights."""
TRACE_REGION = "trace_region_bytes"


def qualified(name: str) -> str:
    """A constant as the program names it; empty for no name."""
    return f"{NAMESPACE}::{name}" if name else ""


def compute_name(config: ComputeConfig) -> str:
    """A compute kernel configuration: `exact_compute`, `hifi2_compute`."""
    return "exact_compute" if config.is_exact else f"{config.math_fidelity.value}_compute"


def program_config_names(calls: Sequence[NamedCall]) -> Iterator[str]:
    """Names for a program configuration, best first: after what the calls with it make, with more
    of the path of their layer, with the shape of the result, numbered.

    Calls of several layers, as `bn1` and `bn2`, name it after the library function that they share.
    """
    shorts, longer = ({*names} for names in zip(*starmap(_call_names, calls), strict=True))
    op = calls[0][0]
    short = shorts.pop() if len(shorts) == 1 else operation_name(op).rpartition(".")[2]
    shaped = f"{short}_{shape_text(shape_of(op.results[0].type))}"
    only = longer if len(longer) == 1 else ()
    names = chain((short, *only, shaped), (f"{shaped}_{number}" for number in count(2)))
    return (identifier(f"{name}_program") for name in names)


def _call_names(
    op: Operation, values: ValueNames, weight_names: Mapping[SSAValue, str]
) -> tuple[str, str]:
    """Name of the result of a call: its role, the last part of its layer's path, or its kind."""
    called = values[op.results[0]]
    if called not in ROLES and (found := layer(op, weight_names)) is not None:
        called = short_layer(found)
        return _LAST.split(called)[-1], called
    if called == noun_of(op):
        called = name_or_kind(op)
    return called, called


def memory_name(kind: str, buffer: str) -> str:
    """An interleaved memory configuration: `activations_memory`, `weights_memory_l1`.

    Args:
        kind: weights or activations.
        buffer: DRAM or L1.
    """
    return f"{kind}_memory" if buffer == "DRAM" else f"{kind}_memory_{buffer.lower()}"


def sharded_memory_names(placement: TensorPlacement) -> Iterator[str]:
    """Names for a sharded memory configuration, best first: after how tensors are divided and the
    shape of a shard, with the number of cores or banks, numbered."""
    shards = placement.shards
    assert shards is not None
    height, width = shards.shape
    name = f"{placement.memory_layout}_{height}x{width}"
    if placement.buffer_type != "l1":
        name = f"{placement.buffer_type}_{name}"
    on_cores = f"{name}_on_{shards.cores}_{shard_places(placement)}"
    return chain((name, on_cores), (f"{on_cores}_{number}" for number in count(2)))


def shard_places(placement: TensorPlacement) -> str:
    """Shards in L1 are on cores, those in DRAM in its banks."""
    return "banks" if placement.buffer_type == "dram" else "cores"
