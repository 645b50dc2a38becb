"""Rows of kernel arguments, the network on chip (NoC), semaphores and addresses.

Operands are those of the C++ functions of tt-metal (api/dataflow, api/tensor), as the reference
dialect had them until 2026.
"""

from __future__ import annotations

from ttcodegen.dialects.ttkernel.definition import (
    ANY_THREAD,
    DATA_MOVEMENT,
    CallForm,
    KernelFunction,
    KernelOp,
    calls,
    row,
)

DATAFLOW_HEADER = "api/dataflow/dataflow_api.h"
COMPILE_TIME_HEADER = "api/compile_time_args.h"
COMMON_HEADER = "api/compute/common.h"
_ACCESSOR_HEADER = "api/tensor/tensor_accessor.h"
_DATAFLOW = calls(DATAFLOW_HEADER)
_TYPED = calls(COMMON_HEADER, template_words="<result>")


def _noc(name: str, operands: str = "", cpp: KernelFunction = _DATAFLOW, **words: str) -> KernelOp:
    return row(
        name,
        operands,
        cpp,
        threads=DATA_MOVEMENT,
        results=words.get("results", ""),
        attributes=words.get("attributes", ""),
    )


def _of_firmware(name: str, index: str = "") -> KernelFunction:
    """C++ of a constant of the firmware, or of an element of one of its arrays."""
    form = CallForm.NAMED_ELEMENT if index else CallForm.CONSTANT
    return calls(DATAFLOW_HEADER, name, arguments=index, form=form)


ARGUMENTS: tuple[KernelOp, ...] = (
    row(
        "get_arg_val",
        "arg_index:count",
        _TYPED,
        results="arg_val:argument",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "get_common_arg_val",
        "arg_index:count",
        _TYPED,
        results="arg_val:argument",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "get_compile_time_arg_val",
        "arg_index:count | ",
        calls(COMPILE_TIME_HEADER, arguments="arg_index"),
        attributes="arg_index?:count",
        results="arg_val:argument",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "get_named_compile_time_arg_val",
        "",
        calls(COMPILE_TIME_HEADER, arguments="arg_name"),
        attributes="arg_name:text",
        results="arg_val:argument",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "get_arg_addr", "arg_index:count", calls(COMMON_HEADER), results="address:int",
        threads=ANY_THREAD,
    ),
    row(
        "bitcast",
        "input:any",
        calls(COMMON_HEADER, "__builtin_bit_cast", arguments="<result> input"),
        results="result:any",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "unreachable",
        "",
        calls(COMMON_HEADER, "__builtin_unreachable"),
        threads=ANY_THREAD,
        is_terminator=True,
    ),
    row("return", threads=ANY_THREAD, is_terminator=True),
    row("dprint", "argv*:any", attributes="fmt:text", threads=ANY_THREAD),
    row("begin_zone", attributes="zone:text", threads=ANY_THREAD),
    row("end_zone", threads=ANY_THREAD),
)  # fmt: skip

MEMORY: tuple[KernelOp, ...] = (
    _noc("get_write_ptr", "cb:cb", results="writePtr:int"),
    _noc("get_read_ptr", "cb:cb", results="readPtr:int"),
    _noc("get_tile_size", "cb:cb", results="tileSizeBytes:int"),
    _noc("get_dataformat", "cb:cb", results="dataFormat:data_format"),
    _noc(
        "reinterpret_cast",
        "addr:l1_addr",
        calls(DATAFLOW_HEADER, template_words="<result>"),
        results="l1_ptr:l1_ptr",
    ),
    _noc(
        "store_to_l1",
        "value:word l1_ptr:l1_ptr offset:count",
        calls(DATAFLOW_HEADER, arguments="l1_ptr offset value", form=CallForm.ELEMENT),
    ),
    _noc(
        "load_from_l1",
        "l1_ptr:l1_ptr offset:count",
        calls(DATAFLOW_HEADER, arguments="l1_ptr offset", form=CallForm.ELEMENT),
        results="value:word",
    ),
    _noc("mem_zeros_base", "", _of_firmware("MEM_ZEROS_BASE"), results="result:int"),
    _noc("mem_zeros_size", "", _of_firmware("MEM_ZEROS_SIZE"), results="result:int"),
    _noc(
        "bfloat16_greater",
        "bf16_a:i16 bf16_b:i16",
        calls("api/numeric/bfloat16.h"),
        results="result:flag",
    ),
    _noc(
        "float32_greater",
        "f32_a:int f32_b:int",
        calls("api/numeric/float32.h"),
        results="result:flag",
    ),
)

CORES: tuple[KernelOp, ...] = (
    _noc(
        "my_x",
        "noc:noc | ",
        _of_firmware("my_x", "noc=noc_index"),
        results="x:int",
    ),
    _noc(
        "my_y",
        "noc:noc | ",
        _of_firmware("my_y", "noc=noc_index"),
        results="y:int",
    ),
    row(
        "my_logical_x_",
        "",
        calls(COMMON_HEADER, "get_absolute_logical_x"),
        results="x:int",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "my_logical_y_",
        "",
        calls(COMMON_HEADER, "get_absolute_logical_y"),
        results="y:int",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "my_relative_logical_x",
        "",
        calls(COMMON_HEADER, "get_relative_logical_x"),
        results="x:int",
        threads=ANY_THREAD,
        pure=True,
    ),
    row(
        "my_relative_logical_y",
        "",
        calls(COMMON_HEADER, "get_relative_logical_y"),
        results="y:int",
        threads=ANY_THREAD,
        pure=True,
    ),
)

_RECTANGLE = "noc_x_start:count noc_y_start:count noc_x_end:count noc_y_end:count"

ADDRESSES: tuple[KernelOp, ...] = (
    _noc(
        "get_noc_addr",
        "x:count y:count l1Address:l1_addr noc?:noc | l1Address:l1_addr noc?:noc",
        results="nocAddr:noc_addr",
    ),
    _noc(
        "get_noc_addr_xy",
        "x:count y:count l1Address:l1_addr",
        calls(DATAFLOW_HEADER, "get_noc_addr"),
        results="nocAddr:noc_addr",
    ),
    _noc(
        "get_noc_addr_from_bank_id",
        "bank_id:count bankAddressOffset:int noc?:noc",
        calls(DATAFLOW_HEADER, template_words="dram!=true"),
        attributes="dram?:bool",
        results="nocAddr:noc_addr",
    ),
    _noc(
        "get_noc_multicast_addr",
        f"{_RECTANGLE} addr:l1_addr noc?:noc",
        results="mcastNocAddr:noc_addr",
    ),
)

_MULTICAST = "srcLocalL1Addr:l1_addr dstNocAddrMulticast:noc_addr size:count num_dests:count"

# `linked` and `multicast_path_reserve` were attributes of the reference dialect in 2025; the
# function of this release takes `linked` before the NoC.
_MULTICAST_WORDS = "linked?:bool multicast_path_reserve?:bool"


def _multicast(name: str, operands: str, arguments: str, attributes: str) -> KernelOp:
    return _noc(
        name,
        f"{operands} noc?:noc",
        calls(DATAFLOW_HEADER, arguments=f"{arguments} linked=false noc=noc_index"),
        attributes=attributes,
    )


def _data_multicast(name: str) -> KernelOp:
    arguments = "srcLocalL1Addr dstNocAddrMulticast size num_dests"
    return _multicast(name, _MULTICAST, arguments, _MULTICAST_WORDS)


def _semaphore_multicast(name: str) -> KernelOp:
    arguments = "src_local_l1_addr dst_noc_addr_multicast num_dests"
    operands = "src_local_l1_addr:l1_addr dst_noc_addr_multicast:noc_addr num_dests:count"
    return _multicast(name, operands, arguments, _MULTICAST_WORDS)


TRANSFERS: tuple[KernelOp, ...] = (
    _noc("noc_async_read", "srcNocAddr:noc_addr dstLocalL1Addr:l1_addr size:count noc?:noc"),
    _noc(
        "noc_async_read_one_packet",
        "srcNocAddr:noc_addr dstLocalL1Addr:l1_addr size:count noc?:noc",
    ),
    _noc("noc_async_read_one_packet_set_state", "srcNocAddr:noc_addr size:count"),
    _noc(
        "noc_async_read_one_packet_with_state",
        "srcNocAddr:noc_addr dstLocalL1Addr:l1_addr",
        # Only uses the low half of the address; core and size come from the state set before.
    ),
    _noc("noc_async_read_tile", "id:count addrGenStruct:accessor dstLocalL1Addr:l1_addr"),
    _noc(
        "noc_async_read_page",
        "id:count addrGenStruct:accessor dstLocalL1Addr:l1_addr offset?:count noc?:noc",
    ),
    _noc("noc_async_read_barrier", "noc?:noc"),
    _noc("noc_async_read_barrier_with_trid", "trid:trid noc?:noc"),
    _noc("noc_async_read_set_trid", "trid:trid noc?:noc"),
    _noc("noc_async_write", "srcLocalL1Addr:l1_addr dstNocAddr:noc_addr size:count noc?:noc"),
    _noc(
        "noc_async_write_one_packet",
        "srcLocalL1Addr:l1_addr dstNocAddr:noc_addr size:count noc?:noc",
    ),
    _noc(
        "noc_async_write_one_packet_with_trid",
        "srcLocalL1Addr:l1_addr dstNocAddr:noc_addr size:count trid:trid",
    ),
    _noc("noc_async_write_tile", "id:count addrGenStruct:accessor srcLocalL1Addr:l1_addr noc?:noc"),
    _noc(
        "noc_async_write_page",
        "id:count addrGenStruct:accessor srcLocalL1Addr:l1_addr size?:count offset?:count noc?:noc",
    ),
    _noc("noc_async_write_barrier", "noc?:noc"),
    _noc("noc_async_writes_flushed", "noc?:noc"),
    _noc("noc_async_write_barrier_with_trid", "trid:trid noc?:noc"),
    _noc("noc_async_atomic_barrier", "noc?:noc"),
    _noc("noc_async_full_barrier", "noc?:noc"),
    _data_multicast("noc_async_write_multicast"),
    _data_multicast("noc_async_write_multicast_one_packet"),
    _data_multicast("noc_async_write_multicast_loopback_src"),
    _noc("noc_inline_dw_write", "addr:noc_addr val:int byte_enable?:i8 noc?:noc"),
)

_POSTED = calls(DATAFLOW_HEADER, template_words="posted=false")

SEMAPHORES: tuple[KernelOp, ...] = (
    _noc("get_semaphore", "semaphore:semaphore", results="sem_addr:l1_addr"),
    _noc(
        "noc_semaphore_inc",
        # The documentation of 2025 has the NoC as an i32.
        "addr:noc_addr incr:int noc?:noc",
        _POSTED,
        attributes="posted?:bool",
    ),
    _noc(
        "noc_semaphore_inc_multicast",
        "addr:noc_addr incr:int num_dests:count noc?:noc",
        _POSTED,
        attributes="posted?:bool",
    ),
    _noc("noc_semaphore_set", "sem_addr:l1_ptr val:int"),
    _noc("noc_semaphore_wait", "sem_addr:l1_ptr val:int"),
    _noc("noc_semaphore_wait_min", "sem_addr:l1_ptr val:int"),
    _noc(
        "experimental.semaphore_wait",
        "sem_addr:l1_ptr val:int",
        calls(DATAFLOW_HEADER, "noc_semaphore_wait"),
    ),
    _noc(
        "experimental.semaphore_wait_min",
        "sem_addr:l1_ptr val:int",
        calls(DATAFLOW_HEADER, "noc_semaphore_wait_min"),
    ),
    _semaphore_multicast("noc_semaphore_set_multicast"),
    _semaphore_multicast("noc_semaphore_set_multicast_loopback_src"),
    _noc("noc_semaphore_set_remote", "src_sram_addr:l1_addr dst_remote_addr:noc_addr noc?:noc"),
    _noc(
        "remote_sram_write_u32",
        "src_sram_addr:l1_addr dst_remote_addr:noc_addr noc?:noc",
        calls(DATAFLOW_HEADER, "noc_semaphore_set_remote"),
    ),
)


def _of_accessor(name: str, operands: str, results: str) -> KernelOp:
    return _noc(
        f"tensor_accessor.{name}",
        f"tensor_accessor:accessor {operands}",
        calls(_ACCESSOR_HEADER, name, form=CallForm.METHOD),
        results=results,
    )


ACCESSORS: tuple[KernelOp, ...] = (
    _noc(
        "TensorAccessorArgs",
        " | cta_base:count crta_base:count | prev_args:accessor_args",
        calls(
            "api/tensor/tensor_accessor_args.h",
            template_words="cta_base crta_base=tensor_accessor::UNKNOWN",
            arguments="",
        ),
        attributes="cta_base?:count crta_base?:count cta_expr?:text crta_expr?:text",
        results="result:accessor_args",
    ),
    _noc(
        "TensorAccessor",
        "args:accessor_args bank_base_address_in:int page_size_in?:count",
        calls(_ACCESSOR_HEADER),
        results="result:accessor",
    ),
    _of_accessor("get_noc_addr", "id:count offset?:count noc?:noc", "nocAddr:noc_addr"),
    _of_accessor("get_shard_noc_addr", "shard_id:count offset?:count noc?:noc", "shardNocAddr:any"),
    _of_accessor("get_bank_and_offset", "page_id:count", "bank_id_and_offset:page_mapping"),
    _of_accessor("is_local_bank", "virtual_x:count virtual_y:count noc?:noc", "result:flag"),
    _of_accessor("is_local_addr", "noc_addr:any noc?:noc", "result:flag"),
    _of_accessor("is_local_page", "page_id:count noc?:noc", "result:flag"),
    _of_accessor("is_local_shard", "shard_id:count noc?:noc", "result:flag"),
)

DATAFLOW_ROWS: tuple[KernelOp, ...] = (
    *ARGUMENTS,
    *MEMORY,
    *CORES,
    *ADDRESSES,
    *TRANSFERS,
    *SEMAPHORES,
    *ACCESSORS,
)
