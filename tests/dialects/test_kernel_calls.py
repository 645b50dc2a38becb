"""All calls that the table of `ttkernel` can say compile against the headers of the release, and
against those of the emulated device."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import CircularBuffer, KernelConfiguration
from tests.dialects.test_ttkernel import kernel_with
from ttcodegen.dialects.ttkernel.attributes import (
    CBType,
    KeptTilesType,
    L1PointerType,
    NocAddressType,
    RowOrderType,
    TensorAccessorArgsType,
    TensorAccessorType,
    ThreadType,
    TileCacheType,
)
from ttcodegen.dialects.ttkernel.definition import CallForm, KernelOp
from ttcodegen.dialects.ttkernel.operation import KernelCall, functions_in, kernel_calls
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.releases import RELEASES, release_named
from ttcodegen.systems.releases.release import Release

pytestmark = pytest.mark.slow

ONLY_ELSEWHERE = {
    # What tensors in shards have, which take compile-time arguments that describe them.
    *("tensor_accessor.get_bank_and_offset", "tensor_accessor.get_shard_noc_addr"),
    *("tensor_accessor.is_local_bank", "tensor_accessor.is_local_addr"),
    *("tensor_accessor.is_local_page", "tensor_accessor.is_local_shard"),
    # Accumulates only numbers in rows.
    "max_reduce_with_indices",
}
NOT_EMULATED = {
    *("bfloat16_greater", "float32_greater", "max_reduce_with_indices"),
    *("max_reduce_with_indices_init", "tiled_prod_tile", "tiled_prod_tile_init"),
    *("topk_local_sort", "topk_merge", "topk_rebuild", "topk_tile_init"),
}
"""Functions that no generated kernel calls and that the CPU backend lacks."""

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "standalone" / "include"
BLOCKS = ROOT / "kernels"

# What the build of a program defines for its kernels (standalone/src/device/kernel_compiler.cpp).
PROLOGUE = """
#define ARCH_WORMHOLE 1
#define KERNEL_BUILD 1
#define NUM_DRAM_BANKS 12
#define NUM_L1_BANKS 64
#define NOC_INDEX 0
#define NOC_MODE 0
#define TTCODEGEN_FP32_DEST_ACC_EN true
#define TTCODEGEN_DST_FULL_SYNC_EN false
#define TTCODEGEN_MATH_APPROX_MODE false
#define TTCODEGEN_MATH_FIDELITY 4
#define KERNEL_COMPILE_TIME_ARGS 0, 0, 0, 0, 0, 0, 0, 0
#define KERNEL_COMPILE_TIME_ARG_MAP {"name", 1u}
#include "ttcodegen/device/kernel_prologue.hpp"
constexpr unsigned char unpack_src_format[32]{};
constexpr unsigned short unpack_tile_size[32]{};
constexpr unsigned char unpack_tile_r_dim[32]{};
constexpr unsigned char unpack_tile_c_dim[32]{};
constexpr unsigned char unpack_tile_num_faces[32]{};
"""
PROCESSORS = {
    ThreadType.COMPUTE: (
        *("COMPILE_FOR_TRISC", "UCK_CHLKC_UNPACK", "UCK_CHLKC_MATH", "UCK_CHLKC_PACK"),
        *("TRISC_UNPACK", "TRISC_MATH", "TRISC_PACK"),
    ),
    ThreadType.NOC: ("COMPILE_FOR_BRISC",),
}
NAMES = {
    CBType: "cb",
    L1PointerType: "pointer",
    NocAddressType: "noc_address",
    TensorAccessorType: "accessor",
    TensorAccessorArgsType: "accessor_args",
    Float32Type: "0.5f",
    KeptTilesType: "kept_tiles",
    RowOrderType: "row_order",
    TileCacheType: "tile_cache",
}


def spelled(value: SSAValue | str) -> str:
    return value if isinstance(value, str) else NAMES.get(type(value.type), "number")


def statement(call: KernelCall) -> tuple[str, str]:
    """The header of a call, and the call."""
    arguments = [spelled(argument) for argument in call.arguments]
    if call.conversion:
        arguments = [f"{call.conversion}({argument})" for argument in arguments]
    callee = call.callee
    match call.form:
        case CallForm.CONSTANT:
            text = callee
        case CallForm.NAMED_ELEMENT:
            text = f"{callee}[{arguments[0]}]"
        case CallForm.ELEMENT:
            text = f"{arguments[0]}[{arguments[1]}]" + "".join(f" = {a}" for a in arguments[2:])
        case CallForm.FUNCTION | CallForm.METHOD:
            if call.form is CallForm.METHOD:
                callee = f"{arguments.pop(0)}.{callee}"
            if call.template_arguments:
                callee += f"<{', '.join(call.template_arguments)}>"
            text = f"{callee}({', '.join(arguments)})"
    return call.header, f"(void)({text});"


def statements(definition: KernelOp, thread: ThreadType, release: Release) -> set[tuple[str, str]]:
    """With all that may be left out, and without what the function can do without."""
    found: set[tuple[str, str]] = set()
    for op in kernel_with(definition)[1]:
        try:
            found |= {statement(call) for call in kernel_calls(op, thread, release)}
        except CompileError:
            continue  # an older form, which does not say all that the function has to know
    assert found, definition.name
    return found


def kernel_of_all_calls(thread: ThreadType, without: Collection[str], release: Release) -> str:
    found: set[tuple[str, str]] = set()
    for definition in kernel_ops().values():
        callable_here = functions_in(definition, release) and thread in definition.threads
        if callable_here and definition.name not in without:
            found |= statements(definition, thread, release)
    lines = [f'#include "{header}"' for header in sorted({header for header, _ in found})]
    lines += [
        "void kernel_main() {",
        "    constexpr uint32_t number = 0;",
        "    constexpr uint32_t cb = 0;",
    ]
    if thread is ThreadType.NOC:
        lines += [
            "    uint64_t noc_address = 0;",
            "    volatile tt_l1_ptr uint32_t* pointer = nullptr;",
            "    constexpr auto accessor_args = TensorAccessorArgs<0>();",
            "    auto accessor = TensorAccessor(accessor_args, number);",
            "    auto kept_tiles = blocks::keep_tiles<1>(accessor, cb, cb);",
            "    auto tile_cache = blocks::cache_tiles<uint32_t, 32, 32, 1>(accessor, cb);",
            "    constexpr auto floats = blocks::Number::floating;",
            "    auto row_order = blocks::order_rows<1, floats, false, false>(cb);",
        ]
    return "\n".join([*lines, *sorted(f"    {text}" for _, text in found), "}", ""])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("thread", [ThreadType.COMPUTE, ThreadType.NOC])
def test_every_call_compiles(
    kernel_checks: Callable[[str], KernelCheck], tmp_path: Path, thread: ThreadType, release: str
) -> None:
    shutil.copytree(BLOCKS, tmp_path, dirs_exist_ok=True)
    kernel = tmp_path / "kernel.cpp"
    kernel.write_text(kernel_of_all_calls(thread, ONLY_ELSEWHERE, release_named(release)))
    configuration = KernelConfiguration(
        kernel,
        "compute" if thread is ThreadType.COMPUTE else "riscv_0",
        compile_args=(0,) * 8,
        named_compile_args=(("name", 1),),
        circular_buffers=(CircularBuffer(0, "Float16_b"),),
        fp32_dest_acc_en=True,
    )
    # The calls are in the order of their names, which is no order of initialisations.
    faults = kernel_checks(release).compile([configuration])
    assert [str(fault) for fault in faults] == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("thread", [ThreadType.COMPUTE, ThreadType.NOC])
def test_every_call_is_emulated(tmp_path: Path, thread: ThreadType, release: str) -> None:
    compiler = shutil.which("c++")
    assert compiler is not None
    defines = [f"#define {name} 1" for name in PROCESSORS[thread]]
    defines += [] if thread is ThreadType.COMPUTE else ["#define PROCESSOR_INDEX 0"]
    without = ONLY_ELSEWHERE | NOT_EMULATED
    kernel = kernel_of_all_calls(thread, without, release_named(release))
    ending = '#include "ttcodegen/device/kernel_entry.hpp"\n'
    unit = tmp_path / "kernel.cpp"
    unit.write_text("\n".join([*defines, PROLOGUE, kernel, ending]))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-w"]
    command += ["-I", str(INCLUDE), "-I", str(BLOCKS), str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_circular_buffers_that_a_kernel_takes_have_numbers() -> None:
    from ttcodegen.foundation.diagnostics import Source
    from ttcodegen.translation import ttkernel_to_cpp

    cb = "!ttkernel.cb<4, !ttcore.tile<32x32, bf16>>"
    text = (
        f"func.func @double(%in: {cb}, %out: {cb}) "
        "attributes {ttkernel.thread = #ttkernel.thread<compute>} {\n"
        "  %n = arith.constant 1 : i32\n"
        f"  ttkernel.cb_wait_front(%in, %n) : ({cb}, i32) -> ()\n"
        f"  ttkernel.cb_push_back(%out, %n) : ({cb}, i32) -> ()\n"
        "  return\n}\n"
    )
    made = str(ttkernel_to_cpp(Source("in.mlir", text)).whole)
    assert "constexpr uint32_t in = 0;" in made
    assert "constexpr uint32_t out = 1;" in made
    assert "cb_push_back(out, n);" in made
