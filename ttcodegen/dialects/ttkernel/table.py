"""Table of `ttkernel` ops, with rows of building blocks and of unsupported functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ttcodegen.dialects.ttkernel.attributes import ThreadType
from ttcodegen.dialects.ttkernel.dataflow_table import DATAFLOW_ROWS
from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    DATA_MOVEMENT,
    CallForm,
    Engine,
    KernelFunction,
    KernelOp,
    calls,
    row,
    table,
)
from ttcodegen.dialects.ttkernel.matrix_table import MATRIX_ROWS
from ttcodegen.dialects.ttkernel.vector_table import VECTOR_ROWS

# Building blocks of kernels, which are copied into projects (kernels/blocks).

_ELEMENTS = "blocks/tile_elements.hpp"
_ACCESS = "blocks/element_access.hpp"
_CACHE = "blocks/tile_cache.hpp"
_KEPT = "blocks/kept_tiles.hpp"
_ORDER = "blocks/row_order.hpp"


def _block(
    name: str,
    operands: str,
    cpp: KernelFunction,
    *,
    attributes: str = "",
    results: str = "",
    pure: bool = False,
) -> KernelOp:
    return row(
        f"blocks.{name}",
        operands,
        cpp,
        threads=DATA_MOVEMENT,
        attributes=attributes,
        results=results,
        pure=pure,
    )


def _on_elements(name: str, operands: str = "", results: str = "") -> KernelOp:
    """Row of an op on the elements of the tile at an address."""
    return _block(
        name,
        f"address:l1_addr {operands}",
        calls(_ELEMENTS, f"blocks::{name}", template_words="element"),
        attributes="element:element",
        results=results,
    )


def _on_block(name: str, operands: str, results: str = "") -> KernelOp:
    """Row of an op on the elements of the block at an address."""
    return _block(
        name,
        f"address:l1_addr {operands}",
        calls(_ACCESS, f"blocks::{name}", template_words="element"),
        attributes="element:element",
        results=results,
    )


def _push(name: str, attributes: str = "") -> KernelOp:
    """Row of an op that pushes a page to the circular buffer of kept tiles."""
    return _block(
        f"kept_tiles.{name}",
        "kept_tiles:kept_tiles page:count",
        calls(_KEPT, name, template_words=attributes.partition(":")[0], form=CallForm.METHOD),
        attributes=attributes,
    )


def _cache(name: str) -> KernelOp:
    """Row of a cache of a tensor's elements."""
    return _block(
        name,
        "tensor:accessor memory:cb",
        calls(_CACHE, f"blocks::{name}", template_words="element height width slots"),
        attributes="element:element height:positive width:positive slots:positive",
        results="tile_cache:tile_cache",
    )


def _of_cache(name: str, operands: str, results: str = "") -> KernelOp:
    return _block(
        f"tile_cache.{name}",
        f"tile_cache:tile_cache {operands}",
        calls(_CACHE, name, form=CallForm.METHOD),
        results=results,
    )


def _of_order(name: str, operands: str, results: str = "") -> KernelOp:
    return _block(
        f"row_order.{name}",
        f"row_order:row_order {operands}",
        calls(_ORDER, name, form=CallForm.METHOD),
        results=results,
    )


def _printing(name: str, operands: str, threads: frozenset[ThreadType]) -> KernelOp:
    """Row of debug output of elements."""
    function = calls("blocks/printing.hpp", f"blocks::{name}", template_words="printed")
    return row(f"blocks.{name}", operands, function, threads=threads, attributes="printed:printed")


BLOCK_ROWS: tuple[KernelOp, ...] = (
    _on_elements("elements_at", results="elements:l1_ptr"),
    _block(
        "set_element",
        "elements:l1_ptr row:count column:count value:int",
        calls(_ELEMENTS, "blocks::set_element"),
    ),
    _on_block("element_value", "offset:count", "value:f32"),
    _on_block("element_index", "offset:count", "value:int"),
    _on_block("set_element_value", "offset:count value:f32"),
    _block(
        "block_offset",
        "tile:count row:count column:count",
        calls(_ACCESS, "blocks::block_offset"),
        results="offset:int",
        pure=True,
    ),
    _block(
        "is_greater",
        "left:f32 right:f32",
        calls(_ACCESS, "blocks::is_greater"),
        results="result:int",
        pure=True,
    ),
    _on_elements("fill_padding", "first_row:count first_column:count value:int"),
    _on_elements("fill_triangle", "value:int"),
    _block(
        "read_first_row",
        "page:count tensor:accessor address:l1_addr",
        calls("blocks/tile_rows.hpp", "blocks::read_first_row", template_words="element"),
        attributes="element:element",
    ),
    _on_elements("repeat_first_row"),
    _on_elements("repeat_first_column"),
    _on_elements("repeat_first_element"),
    _block(
        "push_reduce_scaler",
        "cb_scaler:cb",
        calls("blocks/reduce_scaler.hpp", "blocks::push_reduce_scaler"),
    ),
    _block(
        "clear_gaps",
        "address:l1_addr rows:count row_bytes:count distance:count bytes:count",
        calls("blocks/packed_rows.hpp", "blocks::clear_gaps"),
    ),
    _block(
        "keep_tiles",
        "tensor:accessor memory:cb target:cb",
        calls(_KEPT, "blocks::keep_tiles", template_words="slots"),
        attributes="slots:positive",
        results="kept_tiles:kept_tiles",
    ),
    _push("push"),
    _push("push_first_row", "element:element"),
    _push("push_first_column", "element:element"),
    _push("push_first_element", "element:element"),
    _cache("cache_tiles"),
    _cache("cache_rows"),
    _of_cache("element", "number:count", "value:int"),
    _of_cache("copy_element", "number:count target:l1_ptr row:count column:count"),
    _of_cache(
        "copy_row", "number:count stride:count count:count target:l1_ptr row:count column:count"
    ),
    _block(
        "order_rows",
        "memory:cb",
        calls(
            _ORDER,
            "blocks::order_rows",
            template_words="kept number descending nan_is_least",
        ),
        attributes="kept:positive number:number descending:bool nan_is_least:bool",
        results="row_order:row_order",
    ),
    _block(
        "scatter_row",
        "indices:tile_cache elements:tile_cache first:count count:count target:l1_ptr row:count "
        "first_column:count",
        calls(
            "blocks/scattering.hpp",
            "blocks::scatter_row",
            template_words="width columns number reduction",
        ),
        attributes="width:positive columns:positive number:number reduction:reduction",
    ),
    row(
        "blocks.address_register",
        "dst:dst",
        calls("blocks/register_address.hpp", "blocks::address_register"),
        engine=Engine.FPU,
    ),
    row(
        "blocks.unary_bcast_init_short",
        "in_cb:cb",
        calls(
            "blocks/broadcast_init.hpp",
            "blocks::unary_bcast_init_short",
            template_words="bcast_type",
        ),
        attributes="bcast_type:bcast_type",
        engine=Engine.INIT,
    ),
    _printing("print_tile", "address:l1_addr", ANY_THREAD),
    _printing("print_row", "address:l1_addr count:count", DATA_MOVEMENT),
    _of_order("sort", "elements:tile_cache first:count count:count"),
    _of_order("place", "position:count", "place:int"),
)  # fmt: skip


# Ops without a function in tt-metal.
#
# The documents of 2024 and 2025 have a first generation of ops that refer to tiles by index
# alone; the reference dialect of 2026 pastes functions of its own into kernels. These ops are
# parsed, verified and printed, so that such kernels can be inspected; emission refuses them.

FIRST_GENERATION: tuple[KernelOp, ...] = (
    *(row(name, "dst_index:dst", engine=Engine.FPU) for name in "add sub mul matmul max".split()),
    row("mul_tiles_init_f", engine=Engine.INIT),
    row("max_tile_init", engine=Engine.INIT),
    row("max_tile", "dst0_index:dst dst1_index:dst", engine=Engine.SFPU, init="max_tile_init"),
    row("pack", "dst_index:dst out_cb:cb out_index:count", engine=Engine.PACKER),
    row("pack_set_data_type", attributes="data_type:dtype", engine=Engine.INIT),
    row("unpack_a", "cb:cb src_index:count"),
    row("unpack_ab", "cb_a:cb src_a_index:count cb_b:cb src_b_index:count"),
    row(
        "unpack_set_data_type",
        attributes="data_type_a:dtype data_type_b:dtype",
        engine=Engine.INIT,
    ),
    row("builtin", "args*:any", attributes="kind:any op:any", threads=ANY_THREAD),
    row(
        "noc_transactions_table",
        attributes="entries:any",
        results="table:any",
        threads=DATA_MOVEMENT,
    ),
)

_TILE_BLOCK = "cbIn:cb cbOut:cb blockR:count blockC:count"
_FABRIC_DEVICE = "fabric_connection_manager:fabric dst_mesh_id:i16 dst_dev_id:i16"
_FABRIC_DEVICES = (
    "fabric_connection_manager:fabric dst_mesh_id:i16 dst_dev_id_start:i16 dst_dev_id_end:i16"
)

EXPERIMENTAL_COMPUTE: tuple[KernelOp, ...] = (
    row("experimental.unpack_stall_on_pack"),
    row(
        "experimental.matmul_block",
        "in0_cb_id:cb in1_cb_id:cb in0_tile_idx:count in1_tile_idx:count dst_tile_idx:dst "
        "transpose:switch ct_dim:count rt_dim:count kt_dim:count in1_k_stride:count",
        engine=Engine.FPU,
        init="mm_block_init_short",
    ),
    row("experimental.tilize_block", _TILE_BLOCK, engine=Engine.FPU, init="tilize_init"),
    row("experimental.untilize_block", _TILE_BLOCK, engine=Engine.FPU, init="untilize_init"),
    row(
        "experimental.pack_untilize_block",
        _TILE_BLOCK,
        attributes="colsPerDstPass:positive totalColTiles:positive",
        engine=Engine.PACKER,
        init="pack_untilize_init",
    ),
    row("experimental.write_row_mask_tile", "validRows:count cb:cb", threads=ANY_THREAD),
    row("experimental.write_col_mask_tile", "validCols:count cb:cb", threads=ANY_THREAD),
    row("experimental.fill_arange_tile", "cb:cb", threads=ANY_THREAD),
)


def _fabric(name: str, operands: str = "", results: str = "", attributes: str = "") -> KernelOp:
    return row(
        f"experimental.{name}",
        operands,
        results=results,
        attributes=attributes,
        threads=DATA_MOVEMENT,
    )


EXPERIMENTAL_DATAFLOW: tuple[KernelOp, ...] = (
    _fabric("convert_logical_x_to_translated", "logical_x:count", "virtual_x:int"),
    _fabric("convert_logical_y_to_translated", "logical_y:count", "virtual_y:int"),
    _fabric("get_my_device_id", results="my_device_id:i16"),
    _fabric("create_fabric_connection_manager", results="fabric_connection_manager:fabric"),
    _fabric("setup_fabric_connections", "fabric_connection_manager:fabric"),
    _fabric("close_fabric_connections", "fabric_connection_manager:fabric"),
    _fabric(
        "fabric_fast_write_any_len",
        f"{_FABRIC_DEVICE} dst_addr:noc_addr src_addr:int len_bytes:count",
    ),
    _fabric(
        "fabric_mcast_fast_write_any_len",
        f"{_FABRIC_DEVICES} dst_addr:noc_addr src_addr:int len_bytes:count",
    ),
    _fabric("fabric_sem_inc", f"{_FABRIC_DEVICE} semaphore_addr:noc_addr incr:int"),
    _fabric("fabric_mcast_sem_inc", f"{_FABRIC_DEVICES} semaphore_addr:noc_addr incr:int"),
    _fabric(
        "get_my_logical_mesh_position",
        "fabric_connection_manager:fabric",
        "result:int",
        "dim:dimension",
    ),
    _fabric(
        "get_device_id_from_logical_mesh_position",
        "fabric_connection_manager:fabric position_indices*:count",
        "device_id:i16",
    ),
)

UNSUPPORTED_ROWS: tuple[KernelOp, ...] = (
    *FIRST_GENERATION,
    *EXPERIMENTAL_COMPUTE,
    *EXPERIMENTAL_DATAFLOW,
)


# The table: every op is a row.


@cache
def kernel_ops() -> Mapping[str, KernelOp]:
    """Returns all rows by the name of the op without dialect."""
    return table(MATRIX_ROWS, VECTOR_ROWS, DATAFLOW_ROWS, BLOCK_ROWS, UNSUPPORTED_ROWS)
