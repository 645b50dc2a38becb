"""Configurations and compiler messages that the check of kernels reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts.kernel_check import Fault, faults, main, merged
from scripts.kernel_check_configuration import (
    CircularBuffer,
    ConfigurationError,
    KernelConfiguration,
    descriptors,
    read_manifest,
)
from scripts.kernel_check_toolchain import (
    COMPUTE,
    ToolchainError,
    find_clang,
    generated_files,
    libstdcxx_folders,
)

COMPUTE_KERNEL = {"file": "kernels/matmul.cpp", "processor": "compute"}
READER = {"file": "kernels/reader.cpp", "processor": "riscv_1"}


def written(folder: Path, *kernels: object, **rest: object) -> Path:
    path = folder / "manifest.json"
    path.write_text(json.dumps({"kernels": kernels, **rest}))
    return path


def test_what_an_entry_leaves_out(tmp_path: Path) -> None:
    compute, reader, writer = read_manifest(
        written(tmp_path, COMPUTE_KERNEL, READER, {**READER, "processor": "riscv_0"})
    )
    assert compute == KernelConfiguration(tmp_path / "kernels/matmul.cpp", "compute")
    assert (reader.noc, writer.noc) == (0, 1)


def test_an_entry_with_everything(tmp_path: Path) -> None:
    entry: dict[str, Any] = {
        **COMPUTE_KERNEL,
        "compile_args": [1, 4294967295],
        "named_compile_args": {"tiles": 8},
        "defines": {"OP": "relu_tile", "COUNT": 3},
        "circular_buffers": [{"index": 2, "data_format": "Bfp4_b", "tile": [16, 32]}],
        "math_fidelity": "LoFi",
        "fp32_dest_acc_en": True,
        "dst_full_sync_en": True,
        "math_approx_mode": True,
        "bfp8_pack_precise": True,
        "runtime_args": ["address"],
    }
    (kernel,) = read_manifest(written(tmp_path, entry, entry, arch="blackhole"))
    assert kernel == KernelConfiguration(
        tmp_path / "kernels/matmul.cpp",
        "compute",
        "blackhole",
        (1, 4294967295),
        (("tiles", 8),),
        (("OP", "relu_tile"), ("COUNT", "3")),
        (CircularBuffer(2, "Bfp4_b", (16, 32)),),
        math_fidelity="LoFi",
        fp32_dest_acc_en=True,
        dst_full_sync_en=True,
        math_approx_mode=True,
        bfp8_pack_precise=True,
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"processor": "compute"}, "'file' is missing"),
        ({"file": "a.cpp", "processor": "brisc"}, "'processor' is 'brisc', not one of riscv_0"),
        ({**READER, "compile_args": [-1]}, "-1 is not an integer from 0 to 4294967295"),
        ({**READER, "compile_args": [True]}, "True is not an integer"),
        ({**READER, "named_compile_args": {"n": 1.5}}, "'n': 1.5 is not an integer"),
        ({**READER, "defines": []}, "'defines' is not of type dict"),
        ({**READER, "fp32_dest_acc_en": True}, "'fp32_dest_acc_en' is not known"),
        ({**READER, "noc": 2}, "'noc': 2 is not an integer from 0 to 1"),
        ({**COMPUTE_KERNEL, "noc": 0}, "'noc' is not known"),
        ({**COMPUTE_KERNEL, "math_fidelity": "HiFi"}, "'HiFi', not one of LoFi, HiFi2"),
        ({**COMPUTE_KERNEL, "circular_buffers": [3]}, "circular buffer 0: not an object"),
        (
            {**COMPUTE_KERNEL, "circular_buffers": [{"index": 32, "data_format": "Int32"}]},
            "'index': 32 is not an integer from 0 to 31",
        ),
        (
            {**COMPUTE_KERNEL, "circular_buffers": [{"index": 0, "data_format": "bf16"}]},
            "'data_format' is 'bf16', not one of",
        ),
        ("a.cpp", "kernel 0: not an object"),
    ],
)
def test_entries_that_make_no_sense(tmp_path: Path, entry: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        read_manifest(written(tmp_path, entry))


def test_files_that_are_no_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "manifest.json"
    for text in (None, "{", "[]", '{"arch": "grayskull"}'):
        if text is not None:
            path.write_text(text)
        assert main([str(tmp_path)]) == 2
        assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data_format", "tile", "size"),
    [
        ("Float32", (32, 32), 4096),
        ("Float16_b", (32, 32), 2048),
        ("Float16_b", (16, 32), 1024),
        ("Bfp8_b", (32, 32), 1088),
        ("Bfp4_b", (32, 32), 576),
        ("UInt8", (32, 32), 1024),
    ],
)
def test_bytes_of_a_tile(data_format: str, tile: tuple[int, int], size: int) -> None:
    assert CircularBuffer(0, data_format, tile).tile_size == size


def array(text: str, name: str) -> list[int]:
    match = re.search(rf" {name}\[32\] = {{(.*)}};", text)
    assert match is not None
    return [int(number) for number in match.group(1).split(", ")]


def test_formats_that_the_processors_see() -> None:
    buffers = (
        CircularBuffer(0, "Float32"),
        CircularBuffer(1, "Float32", unpack_to_dest_fp32=True),
        CircularBuffer(2, "Bfp4_b"),
        CircularBuffer(3, "Int32"),
    )
    narrow = KernelConfiguration(Path("k.cpp"), "compute", circular_buffers=buffers)
    wide = KernelConfiguration(
        Path("k.cpp"), "compute", circular_buffers=buffers, fp32_dest_acc_en=True
    )
    assert array(descriptors(narrow), "unpack_src_format")[:5] == [0, 0, 7, 8, 255]
    assert array(descriptors(narrow), "unpack_dst_format")[:5] == [5, 0, 6, 8, 255]
    assert array(descriptors(wide), "unpack_dst_format")[:5] == [4, 0, 6, 8, 255]
    assert array(descriptors(narrow), "pack_src_format")[:5] == [5, 5, 6, 8, 255]
    assert array(descriptors(wide), "pack_src_format")[:5] == [0, 0, 5, 8, 255]
    assert array(descriptors(wide), "pack_dst_format")[:5] == [0, 0, 7, 8, 255]


def test_defines_reach_a_compute_kernel_by_a_header() -> None:
    kernel = KernelConfiguration(Path("/k.cpp"), "compute", defines=(("OP", "relu_tile"),))
    files = generated_files(kernel, COMPUTE[1])
    assert files["defines_generated.h"].startswith("#define OP relu_tile\n")
    assert files["chlkc_math.cpp"].endswith('#include "/k.cpp"\n')


MESSAGES = """\
In file included from /device/firmware/trisck.cc:13:
In file included from /project/kernel.cpp:2:
/device/api/compute.h:27:19: error: static assertion failed: Index out of range
/project/kernel.cpp:6:14: note: in instantiation of function template 'get<9>' requested here
/device/api/compute.h:64:43: note: expanded from macro 'get'
/project/kernel.cpp:7:5: error: use of undeclared identifier 'tile'
/project/kernel.cpp:7:1: error: what follows from it
/device/api/compute.h:28:3: error: what else is wrong there
/project/kernel.cpp:8:9: warning: unused label 'x' [-Wunused-label]
/device/api/compute.h:30:1: warning: unknown attribute [-Wunknown-attributes]
/project/kernel.cpp:9:1: note: in instantiation of it
In file included from /device/firmware/trisck.cc:13:
In file included from /project/kernel.cpp:3:
/device/api/other.h:1:10: fatal error: 'missing.h' file not found
9 errors generated.
"""


def test_messages_of_the_compiler() -> None:
    found = faults(MESSAGES, [Path("/project/kernel.cpp")], Path("/device"), "math")
    assert [(fault.place, fault.message) for fault in found] == [
        ("/project/kernel.cpp:6:14", "static assertion failed: Index out of range"),
        ("/project/kernel.cpp:7:5", "use of undeclared identifier 'tile'"),
        ("/project/kernel.cpp:8:9", "unused label 'x' [-Wunused-label]"),
        ("/project/kernel.cpp:3", "'missing.h' file not found"),
    ]
    assert found[0].notes[0] == "in api/compute.h:27:19"
    assert str(found[1]) == "/project/kernel.cpp:7:5: use of undeclared identifier 'tile' [math]"


def test_a_fault_of_several_processors_is_one() -> None:
    def fault(line: int, processor: str) -> Fault:
        return Fault(f"k.cpp:{line}:1", "wrong", (), (processor,))

    found = [fault(1, "unpack"), fault(1, "math"), fault(2, "math"), fault(1, "math")]
    assert merged(found) == [
        Fault("k.cpp:1:1", "wrong", (), ("unpack", "math")),
        fault(2, "math"),
    ]


def test_a_compiler_that_is_not_there() -> None:
    with pytest.raises(ToolchainError, match=r"clang-0 .* is not installed \(apt: "):
        find_clang("clang-0")


def test_the_nearest_libstdcxx_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="no C\\+\\+ headers of GCC 11 or newer"):
        libstdcxx_folders(tmp_path)
    for version in (10, 14, 13):
        target = tmp_path / f"aarch64-linux-gnu/c++/{version}"
        for header in (target / "bits/c++config.h", tmp_path / f"c++/{version}/array"):
            header.parent.mkdir(parents=True)
            header.touch()
    assert libstdcxx_folders(tmp_path) == (
        tmp_path / "c++/13",
        tmp_path / "aarch64-linux-gnu/c++/13",
        tmp_path / "c++/13/backward",
    )
