"""Rows of ops that tt-metal 0.70.1 has no function for.

The documents of 2024 and 2025 have a first generation of ops that name tiles by their index alone;
the reference dialect of 2026 has functions of its own, which it pastes into kernels. They are read,
verified and written, so that such kernels can be inspected; emission refuses them.
"""

from __future__ import annotations

from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    DATA_MOVEMENT,
    Engine,
    KernelOp,
    row,
)

FIRST_GENERATION: tuple[KernelOp, ...] = (
    *(row(name, "dst_index:dst", engine=Engine.FPU) for name in "add sub mul matmul max".split()),
    row("mul_tiles_init_f", engine=Engine.INIT),
    row("max_tile_init", engine=Engine.INIT),
    row("max_tile", "dst0_index:dst dst1_index:dst", engine=Engine.SFPU, init="max_tile_init"),
    row("pack", "dst_index:dst out_cb:cb out_index:int", engine=Engine.PACKER),
    row("pack_set_data_type", attributes="data_type:dtype", engine=Engine.INIT),
    row("unpack_a", "cb:cb src_index:int"),
    row("unpack_ab", "cb_a:cb src_a_index:int cb_b:cb src_b_index:int"),
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

_TILE_BLOCK = "cbIn:cb cbOut:cb blockR:int blockC:int"
_FABRIC_DEVICE = "fabric_connection_manager:fabric dst_mesh_id:i16 dst_dev_id:i16"
_FABRIC_DEVICES = (
    "fabric_connection_manager:fabric dst_mesh_id:i16 dst_dev_id_start:i16 dst_dev_id_end:i16"
)

EXPERIMENTAL_COMPUTE: tuple[KernelOp, ...] = (
    row("experimental.unpack_stall_on_pack"),
    row(
        "experimental.matmul_block",
        "in0_cb_id:cb in1_cb_id:cb in0_tile_idx:int in1_tile_idx:int dst_tile_idx:dst "
        "transpose:int ct_dim:int rt_dim:int kt_dim:int in1_k_stride:int",
        engine=Engine.FPU,
        init="mm_block_init_short",
    ),
    row("experimental.tilize_block", _TILE_BLOCK, engine=Engine.FPU, init="tilize_init"),
    row("experimental.untilize_block", _TILE_BLOCK, engine=Engine.FPU, init="untilize_init"),
    row(
        "experimental.pack_untilize_block",
        _TILE_BLOCK,
        attributes="colsPerDstPass:i32 totalColTiles:i32",
        engine=Engine.PACKER,
        init="pack_untilize_init",
    ),
    row("experimental.write_row_mask_tile", "validRows:int cb:cb", threads=ANY_THREAD),
    row("experimental.write_col_mask_tile", "validCols:int cb:cb", threads=ANY_THREAD),
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
    _fabric("convert_logical_x_to_translated", "logical_x:int", "virtual_x:int"),
    _fabric("convert_logical_y_to_translated", "logical_y:int", "virtual_y:int"),
    _fabric("get_my_device_id", results="my_device_id:i16"),
    _fabric("create_fabric_connection_manager", results="fabric_connection_manager:fabric"),
    _fabric("setup_fabric_connections", "fabric_connection_manager:fabric"),
    _fabric("close_fabric_connections", "fabric_connection_manager:fabric"),
    _fabric(
        "fabric_fast_write_any_len",
        f"{_FABRIC_DEVICE} dst_addr:noc_addr src_addr:int len_bytes:int",
    ),
    _fabric(
        "fabric_mcast_fast_write_any_len",
        f"{_FABRIC_DEVICES} dst_addr:noc_addr src_addr:int len_bytes:int",
    ),
    _fabric("fabric_sem_inc", f"{_FABRIC_DEVICE} semaphore_addr:noc_addr incr:int"),
    _fabric("fabric_mcast_sem_inc", f"{_FABRIC_DEVICES} semaphore_addr:noc_addr incr:int"),
    _fabric(
        "get_my_logical_mesh_position",
        "fabric_connection_manager:fabric",
        "result:int",
        "dim:i64",
    ),
    _fabric(
        "get_device_id_from_logical_mesh_position",
        "fabric_connection_manager:fabric position_indices*:int",
        "device_id:i16",
    ),
)

UNSUPPORTED_ROWS: tuple[KernelOp, ...] = (
    *FIRST_GENERATION,
    *EXPERIMENTAL_COMPUTE,
    *EXPERIMENTAL_DATAFLOW,
)
