"""Rows of compute kernel ops around the matrix engine.

Circular buffers, destination registers, unpacking, the matrix engine, packing. Operand names are
those of the reference dialect (2025 and 2026), C++ calls those of tt-metal
(tt_metal/hw/inc/api/compute).
"""

from __future__ import annotations

from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    Engine,
    KernelOp,
    calls,
    row,
)

_API = "api/compute/"
_REGISTERS = calls(_API + "reg_api.h")
# Until 2024 these ops had no page count, which the functions require.
_CB = calls(_API + "cb_api.h", arguments="cb numPages")
_BINARY = calls(_API + "eltwise_binary.h")
_PACK = calls(_API + "pack.h")
_COPY = calls(_API + "tile_move_copy.h")
_MATMUL = calls(_API + "matmul.h")
_TILIZE = calls(_API + "tilize.h")
_UNTILIZE = calls(_API + "untilize.h")
_TRANSPOSE = calls(_API + "transpose_wh.h")
_UNARY = calls(_API + "eltwise_unary/eltwise_unary.h")

_TWO_CBS = "in0_cb:cb in1_cb:cb"
_TWO_TILES = f"{_TWO_CBS} in0_tile_index:count in1_tile_index:count dst_index:dst"
_BLOCK = "ct_dim?:count rt_dim?:count kt_dim?:count"

REGISTERS_AND_BUFFERS: tuple[KernelOp, ...] = (
    row("tile_regs_acquire", cpp=_REGISTERS),
    row("tile_regs_commit", cpp=_REGISTERS),
    row("tile_regs_wait", cpp=_REGISTERS),
    row("tile_regs_release", cpp=_REGISTERS),
    row("cb_wait_front", "cb:cb numPages?:count", _CB, threads=ANY_THREAD),
    row("cb_pop_front", "cb:cb numPages?:count", _CB, threads=ANY_THREAD),
    row("cb_reserve_back", "cb:cb numPages?:count", _CB, threads=ANY_THREAD),
    row("cb_push_back", "cb:cb numPages?:count", _CB, threads=ANY_THREAD),
    row(
        "get_tile_address",
        "cb:cb tile_index:count",
        calls(_API + "cb_api.h"),
        results="address:int",
    ),
    row(
        "compute_kernel_hw_startup",
        "icb0:cb icb1:cb ocb:cb | icb0:cb ocb:cb",
        calls(_API + "compute_kernel_hw_startup.h"),
        engine=Engine.INIT,
    ),
    row("unary_op_init_common", "icb:cb ocb:cb", _UNARY, engine=Engine.INIT),
    row("init_sfpu", "icb:cb ocb:cb", _UNARY, engine=Engine.INIT),
    row("binary_op_init_common", f"{_TWO_CBS} out_cb:cb", _BINARY, engine=Engine.INIT),
)


def _reconfiguration(name: str, operands: str) -> KernelOp:
    return row(name, operands, calls(_API + "reconfig_data_format.h"), engine=Engine.INIT)


COPY_AND_PACK: tuple[KernelOp, ...] = (
    row("copy_tile_init", "cb0:cb", _COPY, engine=Engine.INIT),
    row("copy_tile_to_dst_init_short", "cb0:cb transpose?:switch", _COPY, engine=Engine.INIT),
    row(
        "copy_tile_to_dst_init_short_with_dt",
        "old_cb:cb new_cb:cb transpose?:switch",
        _COPY,
        engine=Engine.INIT,
    ),
    row(
        "copy_tile",
        "cb0:cb tile_index_cb:count tile_index_dst:dst",
        _COPY,
        engine=Engine.FPU,
        init="copy_tile_init",
    ),
    row(
        "copy_block_matmul_partials",
        "cb:cb start_tile_index:count start_dst_index:dst ntiles:count",
        _COPY,
        engine=Engine.FPU,
        init="copy_tile_init",
    ),
    row(
        "pack_tile",
        "dst_index:dst out_cb:cb out_index?:count",
        calls(_API + "pack.h", template_words="out_of_order=false"),
        attributes="out_of_order?:bool",
        engine=Engine.PACKER,
    ),
    row("pack_tile_block", "dst_index:dst out_cb:cb ntiles:count", _PACK, engine=Engine.PACKER),
    row("pack_reconfig_l1_acc", "l1_acc_en:switch", _PACK, engine=Engine.INIT),
    row(
        "pack_reconfig_data_format",
        "old_cb:cb out_cb:cb | out_cb:cb",
        _PACK,
        engine=Engine.INIT,
    ),
    row("pack_relu_config", "config:int", _PACK, engine=Engine.INIT),
    _reconfiguration(
        "reconfig_data_format",
        "old_srca_cb:cb new_srca_cb:cb old_srcb_cb:cb new_srcb_cb:cb | srca_cb:cb srcb_cb:cb",
    ),
    _reconfiguration("reconfig_data_format_srca", "old_cb:cb in_cb:cb | in_cb:cb"),
    _reconfiguration("reconfig_data_format_srcb", "old_cb:cb in_cb:cb | in_cb:cb"),
    row("transpose_wh_init", "cbIn:cb cbOut:cb", _TRANSPOSE, engine=Engine.INIT),
    row("transpose_wh_init_short", "cbIn:cb", _TRANSPOSE, engine=Engine.INIT),
    row(
        "transpose_wh_tile",
        "icb:cb itile:count idst:dst",
        _TRANSPOSE,
        engine=Engine.FPU,
        init="transpose_wh_init_short",
    ),
)

MATMUL: tuple[KernelOp, ...] = (
    row("mm_init", f"{_TWO_CBS} out_cb:cb transpose?:switch", _MATMUL, engine=Engine.INIT),
    row("mm_init_short", f"{_TWO_CBS} transpose?:switch", _MATMUL, engine=Engine.INIT),
    row(
        "mm_init_short_with_dt",
        f"{_TWO_CBS} old_srca_cb:cb transpose?:switch",
        _MATMUL,
        engine=Engine.INIT,
    ),
    row(
        "matmul_tiles",
        "in0_cb_id:cb in1_cb_id:cb in0_tile_idx:count in1_tile_idx:count dst_tile_idx:dst",
        _MATMUL,
        engine=Engine.FPU,
        init="mm_init_short",
    ),
    row(
        "mm_block_init",
        f"{_TWO_CBS} out_cb:cb transpose?:switch {_BLOCK}",
        _MATMUL,
        engine=Engine.INIT,
    ),
    row(
        "mm_block_init_short", f"{_TWO_CBS} transpose?:switch {_BLOCK}", _MATMUL, engine=Engine.INIT
    ),
    row(
        "mm_block_init_short_with_dt",
        f"{_TWO_CBS} old_in1_cb:cb transpose?:switch {_BLOCK}",
        _MATMUL,
        engine=Engine.INIT,
    ),
    row(
        "matmul_block",
        "in0_cb_id:cb in1_cb_id:cb in0_tile_idx:count in1_tile_idx:count dst_tile_idx:dst "
        "transpose:switch ct_dim:count rt_dim:count kt_dim:count",
        _MATMUL,
        engine=Engine.FPU,
        init="mm_block_init_short",
    ),
)


def _tile_operation(verb: str) -> tuple[KernelOp, ...]:
    """Rows of add, sub or mul of tiles in two circular buffers; one may be broadcast."""
    broadcast = calls(_API + "bcast.h", template_words="bcast_type")
    kind = f"EltwiseBinaryType::ELW{verb.upper()}"
    # A third argument of mul_tiles_init would be ambiguous between its overloads.
    accumulate = "" if verb == "mul" else " acc_to_dest?:flag"
    return (
        row(f"{verb}_tiles_init", f"{_TWO_CBS}{accumulate}", _BINARY, engine=Engine.INIT),
        row(f"{verb}_tiles", _TWO_TILES, _BINARY, engine=Engine.FPU, init=f"{verb}_tiles_init"),
        row(
            f"{verb}_bcast_init",
            f"{_TWO_CBS} out_cb:cb",
            calls(_API + "bcast.h", "init_bcast", template_words=f"={kind} bcast_type"),
            attributes="bcast_type:bcast_type",
            engine=Engine.INIT,
        ),
        row(
            f"{verb}_tiles_bcast",
            _TWO_TILES,
            broadcast,
            attributes="bcast_type:bcast_type",
            engine=Engine.FPU,
            init=f"{verb}_bcast_init",
        ),
    )


def _short_broadcast_init(name: str) -> KernelOp:
    """Row of a broadcast init that keeps the data formats."""
    return row(name, _TWO_CBS, calls(_API + "bcast.h"), engine=Engine.INIT)


_REUSE = "eltwise_binary_type reuse_type"
_REUSE_ATTRIBUTES = "eltwise_binary_type:eltwise_binary_type reuse_type:reuse_type"

ELTWISE: tuple[KernelOp, ...] = (
    *_tile_operation("add"),
    *_tile_operation("sub"),
    *_tile_operation("mul"),
    _short_broadcast_init("add_bcast_rows_init_short"),
    _short_broadcast_init("add_bcast_cols_init_short"),
    _short_broadcast_init("add_bcast_scalar_init_short"),
    _short_broadcast_init("sub_bcast_cols_init_short"),
    _short_broadcast_init("sub_tiles_bcast_scalar_init_short"),
    _short_broadcast_init("mul_bcast_rows_init_short"),
    _short_broadcast_init("mul_bcast_cols_init_short"),
    _short_broadcast_init("mul_tiles_bcast_scalar_init_short"),
    row(
        "binary_dest_reuse_tiles_init",
        "in_cb:cb",
        calls(_API + "eltwise_binary.h", template_words=_REUSE),
        attributes=_REUSE_ATTRIBUTES,
        engine=Engine.INIT,
    ),
    row(
        "binary_dest_reuse_tiles",
        "in_cb:cb in_tile_index:count dst_tile_index:dst",
        calls(_API + "eltwise_binary.h", template_words=_REUSE),
        attributes=_REUSE_ATTRIBUTES,
        engine=Engine.FPU,
        init="binary_dest_reuse_tiles_init",
    ),
    row(
        "unary_bcast_init",
        "in_cb:cb out_cb:cb",
        calls(_API + "bcast.h", template_words="bcast_type"),
        attributes="bcast_type:bcast_type",
        engine=Engine.INIT,
    ),
    row(
        "unary_bcast",
        "in_cb:cb in_tile_index:count dst_tile_index:dst",
        calls(_API + "bcast.h", template_words="bcast_type"),
        attributes="bcast_type:bcast_type",
        engine=Engine.FPU,
        init="unary_bcast_init",
    ),
    row(
        "unary_bcast_uninit",
        "in_cb:cb",
        calls(_API + "bcast.h", template_words="bcast_type"),
        attributes="bcast_type:bcast_type",
    ),
)

_REDUCE = calls(
    _API + "reduce.h", template_words="reduce_type reduce_dim enforce_fp32_accumulation=false"
)
_REDUCE_ATTRIBUTES = "reduce_type:reduce_type reduce_dim:reduce_dim enforce_fp32_accumulation?:bool"

REDUCTION: tuple[KernelOp, ...] = (
    row(
        "reduce_init",
        "in_cb:cb scaling_cb:cb out_cb:cb",
        _REDUCE,
        attributes=_REDUCE_ATTRIBUTES,
        engine=Engine.INIT,
    ),
    row(
        "reduce_tile",
        "in_cb:cb scaling_cb:cb in_tile_index:count scaling_tile_index:count dst_index:dst",
        _REDUCE,
        attributes=_REDUCE_ATTRIBUTES,
        engine=Engine.FPU,
        init="reduce_init",
    ),
    row(
        "reduce_uninit",
        "in_cb?:cb",
        calls(_API + "reduce.h", template_words="enforce_fp32_accumulation=false"),
        attributes="enforce_fp32_accumulation?:bool",
    ),
)

_PACK_COLUMNS = "colsPerDstPass=8 totalColTiles=8"
_PACK_COLUMN_ATTRIBUTES = "colsPerDstPass?:positive totalColTiles?:positive"

TILIZE: tuple[KernelOp, ...] = (
    row("tilize_init", "cbIn:cb numTiles:count cbOut:cb", _TILIZE, engine=Engine.INIT),
    row("tilize_uninit", "cbIn:cb cbOut:cb", _TILIZE),
    row(
        "tilize_block",
        "cbIn:cb numTiles:count cbOut:cb",
        _TILIZE,
        engine=Engine.FPU,
        init="tilize_init",
    ),
    row("untilize_init", "cbIn:cb | cbIn:cb cbOut:cb", _UNTILIZE, engine=Engine.INIT),
    row("untilize_uninit", "cbIn:cb", _UNTILIZE),
    row(
        "untilize_block",
        "cbIn:cb numTiles:count cbOut:cb",
        calls(_API + "untilize.h", template_words="block_ct_dim=1"),
        attributes="block_ct_dim?:positive",
        engine=Engine.FPU,
        init="untilize_init",
    ),
    row(
        "pack_untilize_init",
        "cbIn:cb cbOut:cb",
        calls(_API + "pack_untilize.h", template_words=_PACK_COLUMNS),
        attributes=_PACK_COLUMN_ATTRIBUTES,
        engine=Engine.INIT,
    ),
    row(
        "pack_untilize_block",
        "cbIn:cb block_rt_dim:count cbOut:cb block_c_index?:count",
        calls(_API + "pack_untilize.h", template_words=_PACK_COLUMNS),
        attributes=_PACK_COLUMN_ATTRIBUTES,
        engine=Engine.PACKER,
        init="pack_untilize_init",
    ),
    row(
        "pack_untilize_dest_init",
        "cbOut:cb",
        calls(_API + "pack_untilize.h", template_words=_PACK_COLUMNS),
        attributes=_PACK_COLUMN_ATTRIBUTES,
        engine=Engine.INIT,
    ),
    row(
        "pack_untilize_dest",
        "cbOut:cb block_rt_dim?:count block_c_index?:count",
        calls(_API + "pack_untilize.h", template_words=_PACK_COLUMNS),
        attributes=_PACK_COLUMN_ATTRIBUTES,
        engine=Engine.PACKER,
        init="pack_untilize_dest_init",
    ),
    row("pack_untilize_uninit", "cbOut:cb", calls(_API + "pack_untilize.h")),
)

MATRIX_ROWS: tuple[KernelOp, ...] = (
    *REGISTERS_AND_BUFFERS,
    *COPY_AND_PACK,
    *MATMUL,
    *ELTWISE,
    *REDUCTION,
    *TILIZE,
)
