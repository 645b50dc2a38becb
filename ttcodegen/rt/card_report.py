"""Cost estimates of a card in the file formats of tt-metal's profiler.

Sources: the columns of tools/tracy/process_ops_logs.py in tt-metal; `tt-perf-report` 1.4 and
`ttnn-visualizer` 0.108 on PyPI, which read them; the names of the device operations are symbols of
the library of ttnn.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from ttcodegen.dialects.operations.compute_config import MathFidelity
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import Conv2dConfig, ProgramConfig
from ttcodegen.ops.core.definition import call_kind
from ttcodegen.ops.core.traits import CallKind
from ttcodegen.optimizer.call import LibraryCall
from ttcodegen.optimizer.cost.calls import CallCost
from ttcodegen.optimizer.programs.matmul import fidelity_passes
from ttcodegen.rt.device_profile import DEVICE_LOG_COLUMNS
from ttcodegen.systems.cards import FIDELITY_PASSES, Performance
from ttcodegen.systems.description import ChipDescription

_INPUTS = 3
_DIMENSIONS = ("W", "Z", "Y", "X")


def _tensor_columns(name: str) -> list[str]:
    sizes = [f"{name}_{dimension}_PAD[LOGICAL]" for dimension in _DIMENSIONS]
    return [*sizes, *(f"{name}_{each}" for each in ("LAYOUT", "DATATYPE", "MEMORY"))]


COLUMNS: tuple[str, ...] = (
    *("OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES"),
    *("MATH FIDELITY", "CORE COUNT", "AVAILABLE WORKER CORE COUNT", "HOST START TS"),
    *("HOST END TS", "HOST DURATION [ns]", "DEVICE FW DURATION [ns]"),
    *("DEVICE KERNEL DURATION [ns]", "OP TO OP LATENCY [ns]"),
    *(column for number in range(_INPUTS) for column in _tensor_columns(f"INPUT_{number}")),
    *_tensor_columns("OUTPUT_0"),
    *("PM IDEAL [ns]", "PM COMPUTE [ns]", "PM BANDWIDTH [ns]", "LOC", "NAME", "LINE", "EDIT"),
)
"""Columns of the table of ops; the last three are additional to the profiler's."""


@dataclass(frozen=True)
class CardCall:
    """ttnn call with its cost estimate."""

    call: LibraryCall
    cost: CallCost
    location: str | None
    name: str | None
    """Name of the op in the model."""
    line: str | None = None
    edit: str | None = None


def card_report(
    calls: Sequence[CardCall], chip: ChipDescription, speed: Performance
) -> dict[str, str]:
    """Files of the report by name; calls without device time, such as views, have no row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    log = [
        f"ARCH: {chip.arch}, CHIP_FREQ[MHz]: {round(speed.clock / 1e6)}, "
        f"Max Compute Cores: {chip.cores}",
        DEVICE_LOG_COLUMNS,
    ]
    begin = 0.0
    timed = [each for each in calls if each.cost.seconds > 0]
    for number, each in enumerate(timed, 1):
        writer.writerow(_row(each, number, begin, chip, speed))
        end = begin + each.cost.seconds
        log += _log_lines(number, begin + each.cost.between_seconds, end, speed)
        begin = end
    return {
        "ops_perf_results.csv": text.getvalue(),
        "profile_log_device.csv": "\n".join(log) + "\n",
    }


def _row(
    each: CardCall, number: int, begin: float, chip: ChipDescription, speed: Performance
) -> Mapping[str, object]:
    call, cost = each.call, each.cost
    kernel = max(cost.seconds - cost.between_seconds, 0.0)
    computing = (cost.engine_cycles + cost.vector_cycles) / speed.clock
    reading = cost.dram_bytes / speed.dram_bandwidth
    row: dict[str, object] = {
        "OP CODE": _op_code(each),
        "OP TYPE": "tt_dnn_device",
        "GLOBAL CALL COUNT": number,
        "DEVICE ID": 0,
        "DEVICE ARCH": chip.arch,
        "ATTRIBUTES": _attributes(call),
        "MATH FIDELITY": _fidelity(call, chip),
        "CORE COUNT": max(cost.cores, 1),
        "AVAILABLE WORKER CORE COUNT": chip.cores,
        "HOST START TS": _nanoseconds(begin),
        "HOST END TS": _nanoseconds(begin + cost.seconds),
        "HOST DURATION [ns]": _nanoseconds(cost.seconds),
        "DEVICE FW DURATION [ns]": _nanoseconds(kernel),
        "DEVICE KERNEL DURATION [ns]": _nanoseconds(kernel),
        "OP TO OP LATENCY [ns]": _nanoseconds(cost.between_seconds),
        "PM IDEAL [ns]": _nanoseconds(max(computing, reading)),
        "PM COMPUTE [ns]": _nanoseconds(computing),
        "PM BANDWIDTH [ns]": _nanoseconds(reading),
        "LOC": each.location or "",
        "NAME": each.name or "",
        "LINE": each.line or "",
        "EDIT": each.edit or "",
    }
    for index, placement in enumerate(call.operands[:_INPUTS]):
        row.update(_tensor(f"INPUT_{index}", placement))
    row.update(_tensor("OUTPUT_0", call.result))
    return row


def _tensor(name: str, placement: TensorPlacement) -> Iterator[tuple[str, object]]:
    shape = (1, 1, 1, *placement.shape) if len(placement.shape) < 4 else placement.shape
    sizes = list(shape[-3:])
    wide = 1
    for size in shape[:-3]:
        wide *= size
    padded = [wide, *sizes]
    if placement.layout is Layout.TILE:
        padded[2:] = [tiles_along(size) * TILE_SIDE for size in padded[2:]]
    for dimension, physical, logical in zip(_DIMENSIONS, padded, [wide, *sizes], strict=True):
        yield f"{name}_{dimension}_PAD[LOGICAL]", f"{physical}[{logical}]"
    yield f"{name}_LAYOUT", "TILE" if placement.layout is Layout.TILE else "ROW_MAJOR"
    yield f"{name}_DATATYPE", placement.data_type.cpp
    kind = (placement.memory_layout or "interleaved").upper()
    is_on_host = placement.buffer_type == "system_memory"
    yield (
        f"{name}_MEMORY",
        "HOST" if is_on_host else f"DEV_0_{placement.buffer_type.upper()}_{kind}",
    )


_MEANT = re.compile("Matmul|Conv|Halo|Gather|Reduce|signpost|torch")
"""Words by which the viewers classify rows."""


def _op_code(each: CardCall) -> str:
    """Device operation and model name of an op, as the viewers show it."""
    name = "_".join((each.name or "").split())
    if _MEANT.search(name):
        name = _MEANT.sub(lambda found: found[0].lower(), name)
        name = "" if _MEANT.search(name) else name
    return f"{device_operation(each.call)} {name}".rstrip()


def device_operation(call: LibraryCall) -> str:
    """Profiler's name of a call's device program; of several programs, the one that computes."""
    known = _OPERATIONS.get(call.name)
    if known is not None:
        return known
    kind = call_kind(call.name)
    if kind is CallKind.LAYOUT:
        is_tiled = call.result.layout is Layout.TILE
        return "TilizeDeviceOperation" if is_tiled else "UntilizeDeviceOperation"
    if call.name == "to_memory_config":
        sharded = call.operands[0].shards is not None, call.result.shards is not None
        return _MOVES[sharded]
    if kind is CallKind.REDUCTION:
        return "ReduceDeviceOperation"
    if kind is CallKind.ELEMENTWISE and 1 <= len(call.operands) <= 3:
        return ("UnaryDeviceOperation", "BinaryNgDeviceOperation", "TernaryDeviceOperation")[
            len(call.operands) - 1
        ]
    return f"ttnn.{call.name}"


_MOVES = {
    (False, False): "CopyDeviceOperation",
    (False, True): "InterleavedToShardedDeviceOperation",
    (True, False): "ShardedToInterleavedDeviceOperation",
    (True, True): "ReshardDeviceOperation",
}
_OPERATIONS: Mapping[str, str] = {
    "matmul": "MatmulDeviceOperation",
    "linear": "MatmulDeviceOperation",
    "sparse_matmul": "SparseMatmulDeviceOperation",
    "conv2d": "Conv2dDeviceOperation",
    "conv_transpose2d": "Conv2dDeviceOperation",
    "max_pool2d": "Pool2D",
    "avg_pool2d": "Pool2D",
    "upsample": "UpsampleOperation",
    "softmax": "SoftmaxDeviceOperation",
    "layer_norm": "LayerNormDeviceOperation",
    "rms_norm": "LayerNormDeviceOperation",
    "argmax": "ArgMaxDeviceOperation",
    "topk": "TopKDeviceOperation",
    "sort": "SortDeviceOperation",
    "cumsum": "AccumulationDeviceOperation",
    "cumprod": "AccumulationDeviceOperation",
    "typecast": "TypecastDeviceOperation",
    "embedding": "EmbeddingsDeviceOperation",
    "gather": "GatherDeviceOperation",
    "scatter": "ScatterDeviceOperation",
    "reshape": "ReshapeViewDeviceOperation",
    "permute": "PermuteDeviceOperation",
    "permute_row_major": "PermuteDeviceOperation",
    "concat": "ConcatDeviceOperation",
    "concat_row_major": "ConcatDeviceOperation",
    "slice_static": "SliceDeviceOperation",
    "slice_dynamic": "SliceDeviceOperation",
    "pad": "PadDeviceOperation",
    "repeat": "RepeatDeviceOperation",
    "full": "FullDeviceOperation",
    "concatenate_heads": "ConcatenateHeadsDeviceOperation",
    "nlp_concat_heads_decode": "NLPConcatHeadsDecodeDeviceOperation",
    "nlp_create_qkv_heads_decode": "NLPCreateQKVHeadsDecodeDeviceOperation",
    "split_query_key_value_and_split_heads": "CreateQKVHeadsDeviceOperation",
    "rotary_embedding": "RotaryEmbeddingDeviceOperation",
    "paged_update_cache": "PagedUpdateCacheDeviceOperation",
    "paged_fill_cache": "PagedFillCacheDeviceOperation",
    "scaled_dot_product_attention": "SDPAOperation",
    "chunked_scaled_dot_product_attention": "SDPAOperation",
    "scaled_dot_product_attention_decode": "SdpaDecodeDeviceOperation",
    "paged_scaled_dot_product_attention_decode": "SdpaDecodeDeviceOperation",
    "all_gather": "AllGatherDeviceOperation",
    "reduce_scatter": "ReduceScatterDeviceOperation",
    "all_reduce": "AllReduceAsyncDeviceOperation",
    "all_to_all_dispatch": "AllToAllDispatchDeviceOperation",
    "all_to_all_combine": "AllToAllCombineDeviceOperation",
    "broadcast": "BroadcastDeviceOperation",
}
"""Device operation of each ttnn call."""


def _attributes(call: LibraryCall) -> str:
    """Arguments that the viewers read: program config and convolution window."""
    found: list[str] = []
    config = call.program_config
    if isinstance(config, ProgramConfig) and not isinstance(config, Conv2dConfig):
        name = config.cpp.rpartition("::")[2]
        given = ";".join(f"{config.spelled.get(f.name, f.name)}={_text(config, f.name)}"
                         for f in fields(config))  # fmt: skip
        found.append(f"'program_config': '{name}({given})'")
    window: Sequence[int] = call.attributes.get("kernel_size") or ()
    if window:
        found.append(f"window_hw=({';'.join(map(str, window))})")
    return f"{{{'; '.join(found)}; }}" if found else ""


def _text(config: ProgramConfig, name: str) -> str:
    return re.sub(r"[;'{}]", "", str(getattr(config, name)))


_NAMES = {FIDELITY_PASSES[each.value]: each.cpp for each in MathFidelity}
_ON_THE_MATRIX_ENGINE = frozenset((CallKind.PRODUCT, CallKind.CONVOLUTION, CallKind.ATTENTION,
                                   CallKind.ATTENTION_OF_ONE))  # fmt: skip


def _fidelity(call: LibraryCall, chip: ChipDescription) -> str:
    if call_kind(call.name) not in _ON_THE_MATRIX_ENGINE:
        return ""
    return _NAMES[fidelity_passes(call, chip.arch == "wormhole_b0")]


_PROCESSORS = ("BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2")
_CORE = "0,1,1"
"""Device, column and row of the core that represents a whole call."""


def _log_lines(number: int, begin: float, end: float, speed: Performance) -> Iterator[str]:
    cycles = round(begin * speed.clock), round(end * speed.clock)
    for processor in _PROCESSORS:
        zone = f"{processor.partition('_')[0]}-KERNEL"
        for phase, cycle in zip(("ZONE_START", "ZONE_END"), cycles, strict=True):
            yield f"{_CORE},{processor},0,{cycle},0,{number},,,{zone},{phase},0,,"


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
