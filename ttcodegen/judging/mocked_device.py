"""Mocked device for the Python package of ttnn.

Runs in the Python that the package is installed in, and uses nothing else.
"""

import ctypes
import fcntl
import os
import struct
from itertools import count
from pathlib import Path
from typing import TextIO

CLUSTER = """\
arch: {{0: {arch}}}
chips: {{0: [0, 0, 0, 0]}}
ethernet_connections: []
chips_with_mmio: [{{0: 0}}]
harvesting: {{0: {{noc_translation: true, {masks}}}}}
boards: [[{{board_id: 1649267441665}}, {{board_type: {board}}}, {{chips: [0]}}]]
"""
"""Cluster description of one card, in the driver's format."""

_SYMBOL = "_ZN2tt8tt_metal12experimental19configure_mock_modeENS_4ARCHEj"
_ARCHITECTURES = {"wormhole_b0": 2, "blackhole": 3}
"""`tt::ARCH` of the driver."""
_WORMHOLE_ROW = 64
"""Harvested worker row of the mocked n150."""
_BLACKHOLE_EDGES = "eth_harvesting_mask: 288, pcie_harvesting_mask: 2"
"""Harvesting masks of a p150's ethernet and PCIe."""


class Card:
    """Mocked card: architecture and harvesting masks."""

    def __init__(self, arch: str = "wormhole_b0", workers: int = 0, dram: int = 0) -> None:
        self.arch, self.workers, self.dram = arch, workers, dram

    def description(self) -> "tuple[str, str]":
        """Name and text of the cluster description."""
        if self.arch == "wormhole_b0":
            masks = f"harvest_mask: {self.workers or _WORMHOLE_ROW}"
            return "wormhole_N150.yaml", CLUSTER.format(arch=self.arch, masks=masks, board="n150")
        masks = f"harvest_mask: {self.workers}, dram_harvesting_mask: {self.dram}"
        masks += f", {_BLACKHOLE_EDGES}"
        return "blackhole_P150.yaml", CLUSTER.format(arch=self.arch, masks=masks, board="p150")


_COMPILER_PATH = "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"


def has_compiler(package: Path) -> bool:
    """Returns whether the package has a real device compiler."""
    compiler = package / _COMPILER_PATH
    return compiler.is_file() and compiler.read_bytes()[:2] != b"#!"


def prepare(package: Path, card: Card) -> TextIO:
    """Installs a cluster description and a dummy compiler in the package.

    Returns the held lock, to be closed once the device is open.
    """
    examples = package / "tt_metal/third_party/umd/tests/cluster_descriptor_examples"
    examples.mkdir(parents=True, exist_ok=True)
    name, text = card.description()
    cluster = examples / name
    compiler = package / _COMPILER_PATH
    lock = cluster.with_suffix(".lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    _write(cluster, text)
    (package / "runtime/sfpi/include").mkdir(parents=True, exist_ok=True)
    if not has_compiler(package):
        _write(compiler, compiler_of_nothing(), mode=0o755)
    return lock


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    """Writes a file atomically."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.chmod(mode)
    unfinished.replace(path)


def switch(package: Path, card: Card) -> None:
    """Makes the package open a mocked card; to be called after its import and before it
    opens one."""
    library = ctypes.CDLL(str(package / "build/lib/libtt_metal.so"))
    getattr(library, _SYMBOL)(_ARCHITECTURES[card.arch], 1)


def environment(simulator: "str | None" = None) -> "dict[str, str]":
    """Environment variables that silence the package and keep its cache in memory.

    Args:
        simulator: shared object of a simulated device, which has no dispatch cores and no SFPU
            macros.
    """
    simulated = {
        "TT_METAL_SIMULATOR": simulator,
        "TT_METAL_SLOW_DISPATCH_MODE": "1",
        "TT_METAL_DISABLE_SFPLOADMACRO": "1",
    }
    return {
        **os.environ,
        **({} if simulator is None else simulated),
        "TT_METAL_CACHE": _free_cache("judge" if simulator is None else "simulator"),
        "TT_METAL_LOGGER_LEVEL": "fatal",
        "TT_METAL_DISABLE_XIP_DUMP": "1",
        "LOGURU_LEVEL": "ERROR",
    }


_held: "list[TextIO]" = []
"""Lock of the cache, held while this process runs."""


def _free_cache(name: str) -> str:
    """First cache folder that no other process uses.

    The package assumes exclusive use of its cache, and fails if another process writes to it.
    """
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")
    for number in count():
        cache = folder / f"ttcodegen-{name}-{os.getuid()}-{number}"
        lock = cache.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return str(cache)
    raise AssertionError


# The compiler


_COMPILER = r"""#!/bin/sh
# An empty object with -c, an executable that does nothing without it; --version prints one.
output= object= depends= dependencies=
while [ $# -gt 0 ]; do
    case $1 in
        --version) echo 'riscv-tt-elf-g++ 15.1.0'; exit ;;
        -o) output=$2; shift ;;
        -c) object=yes ;;
        -MD | -MMD) depends=yes ;;
        -MF) dependencies=$2; shift ;;
    esac
    shift
done
[ -n "$output" ] || exit 0
[ "${output%/*}" = "$output" ] || [ -d "${output%/*}" ] || mkdir -p "${output%/*}"
if [ -n "$object" ]; then : >"$output"; else printf 'EXECUTABLE' >"$output"; fi
[ -z "$depends" ] || echo "$output:" >"${dependencies:-${output%.*}.d}"
"""
"""Dummy compiler of shell built-ins only, as the package runs it ten times per device program."""


def compiler_of_nothing() -> str:
    """Shell script that replaces the device compiler; its outputs are empty objects and
    executables."""
    escaped = "".join(f"\\{byte:03o}" for byte in executable())
    return _COMPILER.replace("EXECUTABLE", escaped)


def executable() -> bytes:
    """Minimal 32-bit RISC-V executable with symbols and an empty relocation."""
    text = struct.pack("<I", 0x00008067)
    names = b"\0.text\0.symtab\0.strtab\0.rela.text\0.shstrtab\0"
    symbols = struct.pack("<IIIBBH", 0, 0, 0, 0, 0, 0) + struct.pack(
        "<IIIBBH", 1, 0x1000, 4, 2, 0, 1
    )
    strings = b"\0_start\0"
    relocation = struct.pack("<IIi", 0x1000, 0, 0)
    header, program = 52, 32
    offset = header + program
    parts, offsets = [text, symbols, strings, relocation, names], []
    for part in parts:
        offsets.append(offset)
        offset += -(-len(part) // 4) * 4
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 6, 0x1000, offsets[0], len(text), 0, 0, 4, 0),
        (7, 2, 0, 0, offsets[1], len(symbols), 3, 1, 4, 16),
        (15, 3, 0, 0, offsets[2], len(strings), 0, 0, 1, 0),
        (23, 4, 0, 0, offsets[3], len(relocation), 2, 1, 4, 12),
        (34, 3, 0, 0, offsets[4], len(names), 0, 0, 1, 0),
    ]
    data = b"".join(part.ljust(-(-len(part) // 4) * 4, b"\0") for part in parts)
    identity = b"\x7fELF\x01\x01\x01" + bytes(9)
    head = identity + struct.pack(
        "<HHIIIIIHHHHHH", 2, 243, 1, 0x1000, header, offset, 0, 52, 32, 1, 40, 6, 5
    )
    segment = struct.pack("<IIIIIIII", 1, offsets[0], 0x1000, 0x1000, len(text), len(text), 5, 4)
    return head + segment + data + b"".join(struct.pack("<10I", *s) for s in sections)
