"""Toolchain for device kernels: clang, the release's device headers, and ours.

The vendor's compiler is GCC for RISC-V with newlib and two headers of its own. Here a stock clang
checks the types: C headers from newlib, C++ headers from the host's libstdc++, and declarations of
what only the vendor's compiler has from scripts/kernel_check_include.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.kernel_check_configuration import KernelConfiguration, descriptors
from scripts.link_check import wheel_file
from ttcodegen.systems.releases import DEFAULT_RELEASE

INCLUDE = Path(__file__).resolve().parent / "kernel_check_include"
NEWEST_CLANG, OLDEST_CLANG = 30, 14
OLDEST_LIBSTDCXX = 11
NEWLIB = Path("/usr/include/newlib")
PACKAGES = "clang, libnewlib-dev and g++"

DEVICE_FOLDERS = (
    "tt_metal/api/",
    "tt_metal/fabric/",
    "tt_metal/hostdevcommon/",
    "tt_metal/hw/",
    "tt_metal/impl/",
    "tt_metal/kernels/",
    "tt_metal/tools/",
    "tt_metal/tt-llk/common/",
    "tt_metal/tt-llk/tools/include/",
    "tt_metal/tt-llk/tt_llk_blackhole/",
    "tt_metal/tt-llk/tt_llk_wormhole_b0/",
    "ttnn/cpp/",
)
"""Folders of device sources in the wheel, below ttnn."""

MENDS = {
    # GCC takes an unroll count of 0; clang does since version 19.
    r"#pragma GCC unroll 0\b": "#pragma GCC unroll 1",
    # GCC deduces a function template whose parameters all have defaults from its name alone.
    r"(_params_\(\s*sfpu::calculate_sfpu_(gcd|lcm)),": r"\1<>,",
    r"(NO_TEMPLATE_ARGS\(\s*DST_SYNC_MODE, DST_ACCUM_MODE, calculate_sfpu_(gcd|lcm)),": r"\1<>,",
    # GCC takes the keyword before a member function that is no template.
    r"\.template (get_noc_addr_from_bank_id\()": r".\1",
    # GCC, and clang since version 17, look at it where the template is instantiated.
    r"(?m)^(\s+)static_assert\(false\b": r"\1static_assert([] { return false; }()",
}
"""Replacements of header text that clang and GCC read differently."""


FIRST_SFPI = "tt_metal/hw/inc/api/compute/transpose_wh.h"
"""A header that releases have whose vector code is written for the older form of sfpi.h."""


class ToolchainError(Exception):
    """Something that the check needs cannot be had."""


@dataclass(frozen=True)
class Architecture:
    """Architecture name and card figures that the headers require."""

    folder: str
    macro: str
    defines_folder: str
    dram_banks: int
    l1_banks: int


ARCHITECTURES = {
    "wormhole_b0": Architecture("wormhole", "ARCH_WORMHOLE", "wormhole_b0_defines", 12, 72),
    "blackhole": Architecture("blackhole", "ARCH_BLACKHOLE", "blackhole_defines", 7, 110),
}


@dataclass(frozen=True)
class Processor:
    """A processor of a core: its firmware's source and the macros that select it."""

    name: str
    source: str
    macros: tuple[str, ...]


DATA_MOVEMENT = {
    "riscv_0": Processor("BRISC", "brisck.cc", ("COMPILE_FOR_BRISC", "PROCESSOR_INDEX=0")),
    "riscv_1": Processor("NCRISC", "ncrisck.cc", ("COMPILE_FOR_NCRISC", "PROCESSOR_INDEX=1")),
}
COMPUTE = tuple(
    Processor(
        name,
        "trisck.cc",
        (
            f"UCK_CHLKC_{name.upper()}",
            f"COMPILE_FOR_TRISC={number}",
            f"PROCESSOR_INDEX={number + 2}",
        ),
    )
    for number, name in enumerate(("unpack", "math", "pack"))
)


def processors(configuration: KernelConfiguration) -> tuple[Processor, ...]:
    """The processors that a kernel is compiled for."""
    if configuration.processor == "compute":
        return COMPUTE
    return (DATA_MOVEMENT[configuration.processor],)


def _device_sources(
    unpacked: Path | None, cache: Path, release: str
) -> Iterator[tuple[str, bytes]]:
    """Paths below ttnn and contents of the device's sources, from the wheel or its folder."""
    if unpacked is not None:
        for folder in DEVICE_FOLDERS:
            for path in sorted(unpacked.joinpath(folder).rglob("*.*")):
                if path.is_file():
                    yield path.relative_to(unpacked).as_posix(), path.read_bytes()
        return
    with zipfile.ZipFile(wheel_file(cache, release)) as wheel:
        for name in wheel.namelist():
            path = name.removeprefix("ttnn/")
            if path.startswith(DEVICE_FOLDERS):
                yield path, wheel.read(name)


def release_of(unpacked: Path | None, release: str = DEFAULT_RELEASE) -> str:
    """The release of an unpacked wheel, by the metadata beside its folder `ttnn`; the one that is
    named without one."""
    if unpacked is None:
        return release
    beside = sorted(unpacked.resolve().parent.glob("ttnn-*.dist-info"))
    return beside[0].name.removeprefix("ttnn-").removesuffix(".dist-info") if beside else "unknown"


def device_headers(
    cache: Path, unpacked: Path | None = None, release: str = DEFAULT_RELEASE
) -> Path:
    """The folder with the device headers of a release, made in `cache` if it is not there yet.

    Args:
        cache: where the wheel is downloaded to and the headers are kept.
        unpacked: the folder `ttnn` of an unpacked wheel, which is taken instead of a download.
        release: the release that is downloaded otherwise.

    Raises:
        LinkCheckError: the wheel cannot be had.
        ToolchainError: `unpacked` has no device headers.
    """
    if unpacked is not None and not unpacked.joinpath("tt_metal/hw/inc").is_dir():
        raise ToolchainError(f"{unpacked} has no device headers")
    place = "" if unpacked is None else str(unpacked.resolve())
    made_from = repr((MENDS, DEVICE_FOLDERS, place)).encode()
    mends = hashlib.sha256(made_from).hexdigest()[:12]
    folder = cache / f"ttnn-{release_of(unpacked, release)}-device-{mends}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        made = Path(temporary) / "device"
        for path, content in _device_sources(unpacked, cache, release):
            if not path.endswith((".h", ".hpp", ".inl", ".inc", ".def", ".cc", ".cpp")):
                continue
            text = content.decode("utf-8", errors="replace")
            for pattern, replacement in MENDS.items():
                text = re.sub(pattern, replacement, text)
            target = made / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        try:
            made.rename(folder)
        except OSError:
            # Another process was first.
            if not folder.is_dir():
                raise
    return folder


@dataclass(frozen=True)
class Clang:
    """A compiler that can check device kernels.

    Attributes:
        executable: its path.
        version: its major version.
        system_headers: include folders of C++ and C, in their order.
    """

    executable: str
    version: int
    system_headers: tuple[Path, ...]


def _clang_version(executable: str) -> int | None:
    """The major version of a clang that knows RISC-V; None of anything else."""
    command = [executable, "--target=riscv32-unknown-elf", "-dM", "-E", "-x", "c++", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    macros = dict(re.findall(r"^#define (\w+) (.*)$", done.stdout, re.MULTILINE))
    if done.returncode != 0 or "__riscv" not in macros:
        return None
    return int(macros.get("__clang_major__", "0"))


def libstdcxx_folders(root: Path = Path("/usr/include")) -> tuple[Path, ...]:
    """The include folders of the host's C++ headers: of GCC 12, or of the nearest version.

    Raises ToolchainError if there are none.
    """
    targets = {
        int(path.name): path
        for path in root.glob("*-linux-gnu/c++/*")
        if path.name.isdigit() and path.joinpath("bits/c++config.h").is_file()
    }
    found = [
        version
        for version in targets
        if version >= OLDEST_LIBSTDCXX and root.joinpath(f"c++/{version}/array").is_file()
    ]
    if not found:
        raise ToolchainError(
            f"there are no C++ headers of GCC {OLDEST_LIBSTDCXX} or newer in {root}"
        )
    version = min(found, key=lambda version: (abs(version - 12), version))
    return (root / f"c++/{version}", targets[version], root / f"c++/{version}/backward")


def find_clang(named: str | None = None) -> Clang:
    """The compiler: `named`, or the newest clang that is installed, with the headers it needs.

    Raises ToolchainError, which names the missing packages.
    """
    numbered = (f"clang++-{version}" for version in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1))
    for candidate in [named] if named else [*numbered, "clang++"]:
        executable = shutil.which(candidate)
        version = _clang_version(executable) if executable else None
        if executable and version and version >= OLDEST_CLANG:
            break
    else:
        wanted = named or f"clang {OLDEST_CLANG} or newer"
        raise ToolchainError(f"{wanted} with a RISC-V target is not installed (apt: {PACKAGES})")
    if not NEWLIB.joinpath("string.h").is_file():
        raise ToolchainError(f"the C headers of newlib are not installed (apt: {PACKAGES})")
    return Clang(executable, version, (*libstdcxx_folders(), NEWLIB))


_OPTIONS = (
    "--target=riscv32-unknown-elf",
    "-march=rv32im",
    "-mabi=ilp32",
    "-ffast-math",
    "-fno-exceptions",
    "-nostdinc++",
    "-ferror-limit=50",
    "-fno-color-diagnostics",
    "-fno-caret-diagnostics",
    "-fdiagnostics-absolute-paths",
    # The vendor's compiler has C++17 and these keywords of C++20.
    "-std=c++17",
    "-Dconsteval=constexpr",
    "-Dconstinit=__constinit",
    # Its 32-bit integers are long.
    "-U__INT32_TYPE__",
    "-D__INT32_TYPE__=long int",
    "-U__UINT32_TYPE__",
    "-D__UINT32_TYPE__=long unsigned int",
    # The warnings it is run with, all of them errors.
    "-Wall",
    "-Wno-unknown-pragmas",
    "-Wno-unknown-attributes",
    "-Wno-deprecated-declarations",
    "-Wno-parentheses",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-variable",
    "-Wno-unused-const-variable",
    "-Wno-unused-function",
    # GCC takes the keyword before a member function that is no template.
    "-Wno-missing-template-arg-list-after-template-kw",
)


def _system_folders(clang: Clang, device: Path | None = None) -> list[str]:
    """Include folders of ours and of the compiler; what device headers include comes first."""
    later = device is not None and not device.joinpath(FIRST_SFPI).is_file()
    folders = (*(INCLUDE / "sfpi_2026",) * later, INCLUDE, *clang.system_headers)
    return [argument for folder in folders for argument in ("-isystem", str(folder))]


def precompiled_headers(clang: Clang, cache: Path) -> Path:
    """The standard headers as clang reads them fastest, made in `cache` if they are not there yet.

    Raises ToolchainError if they do not compile.
    """
    source = INCLUDE / "standard_headers.h"
    arguments = [clang.executable, *_OPTIONS, *_system_folders(clang), "-x", "c++-header"]
    digest = hashlib.sha256(repr(arguments).encode())
    for path in sorted(path for path in INCLUDE.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())
    for path in (Path(clang.executable), clang.system_headers[0] / "array"):
        digest.update(str(path.stat().st_mtime_ns).encode())
    headers = cache / f"standard_headers-{digest.hexdigest()[:16]}.pch"
    if headers.is_file():
        return headers
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        made = Path(temporary) / "headers.pch"
        # Without times: a header that was only touched is the same.
        arguments += ["-Xclang", "-fno-pch-timestamp", str(source), "-o", str(made)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ToolchainError(f"{' '.join(arguments)}\n{done.stderr.strip()}")
        made.replace(headers)
    return headers


def include_folders(arch: str, compute: bool) -> list[str]:
    """Include folders below the device headers, in the order of the runtime."""
    card = ARCHITECTURES[arch]
    kernels, internal = f"tt_metal/hw/ckernels/{arch}/metal", "tt_metal/hw/inc/internal/tt-1xx"
    folders = [
        ".",
        "ttnn",
        "ttnn/cpp",
        "tt_metal",
        "tt_metal/hw/inc",
        "tt_metal/hostdevcommon/api",
        "tt_metal/api",
        f"{kernels}/common",
        f"{kernels}/llk_io",
        internal,
        f"{internal}/{card.folder}",
        f"{internal}/{card.folder}/{card.defines_folder}",
        f"{internal}/{card.folder}/noc",
        f"tt_metal/tt-llk/tt_llk_{arch}/common/inc",
        f"tt_metal/tt-llk/tt_llk_{arch}/llk_lib",
        "tt_metal/tt-llk/common",
        "tt_metal/tt-llk/tools/include",
        "tt_metal/hw/firmware/src/tt-1xx",
    ]
    return folders + [f"{kernels}/llk_api", f"{kernels}/llk_api/llk_sfpu"] * compute


def macros(configuration: KernelConfiguration, processor: Processor) -> list[str]:
    """The macros that the runtime defines for a kernel on a processor."""
    card = ARCHITECTURES[configuration.arch]
    macros = [
        card.macro,
        *processor.macros,
        "TENSIX_FIRMWARE",
        "KERNEL_BUILD",
        "LOCAL_MEM_EN=0",
        "ROUTING_FW_ENABLED",
        "PROGRAMMABLE_CORE_TYPE=0",
        f"NUM_DRAM_BANKS={card.dram_banks}",
        "IS_NOT_POW2_NUM_DRAM_BANKS=1",
        f"NUM_L1_BANKS={card.l1_banks}",
        "IS_NOT_POW2_NUM_L1_BANKS=1",
        "PCIE_NOC_X=0",
        "PCIE_NOC_Y=3",
        "DISPATCH_MESSAGE_ADDR=0",
        "DISABLE_SFPLOADMACRO",
    ]
    if configuration.compile_args:
        macros.append(f"KERNEL_COMPILE_TIME_ARGS={','.join(map(str, configuration.compile_args))}")
    if configuration.named_compile_args:
        pairs = (f'{{"{name}",{value}}}' for name, value in configuration.named_compile_args)
        macros.append(f"KERNEL_COMPILE_TIME_ARG_MAP={','.join(pairs)}")
    if configuration.processor != "compute":
        macros += [f"{name}={text}" for name, text in configuration.defines]
        macros += [f"NOC_INDEX={configuration.noc}", "NOC_MODE=0"]
    return macros


def generated_files(
    configuration: KernelConfiguration, processor: Processor, *, checks_names: bool = True
) -> dict[str, str]:
    """The headers that the runtime would write for a kernel, by name; with a check of the names of
    its compile-time arguments, unless it is not wanted."""
    kernel = f'#include "{configuration.file.resolve()}"\n'
    if configuration.named_compile_args and checks_names:
        kernel = f'#include "named_arguments.h"\n{kernel}'
    files = {"chlkc_descriptors.h": descriptors(configuration)}
    if configuration.processor != "compute":
        return files | {"kernel_includes.hpp": kernel}
    defines = [f"#define {name} {text}\n" for name, text in configuration.defines]
    role = processor.name
    return files | {
        "defines_generated.h": "".join([*defines, "#define NOC_MODE 0\n"]),
        f"chlkc_{role}.cpp": (
            f'#define TRISC_{role.upper()}\n#include "defines_generated.h"\n{kernel}'
        ),
    }


def command(
    configuration: KernelConfiguration,
    processor: Processor,
    clang: Clang,
    device: Path,
    precompiled: Path,
    generated: Path,
) -> list[str]:
    """The command that checks a kernel for one processor.

    Args:
        precompiled: precompiled_headers().
        device: the folder of device_headers().
        generated: the folder of generated_files().
    """
    folders = include_folders(configuration.arch, configuration.processor == "compute")
    return [
        clang.executable,
        *_OPTIONS,
        "-fsyntax-only",
        *("-include-pch", str(precompiled)),
        *(f"-D{macro}" for macro in macros(configuration, processor)),
        f"-I{generated}",
        f"-I{configuration.file.parent}",
        *_system_folders(clang, device),
        *(argument for name in folders for argument in ("-isystem", str(device / name))),
        str(device / "tt_metal/hw/firmware/src/tt-1xx" / processor.source),
    ]
