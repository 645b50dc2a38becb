"""The configuration of a device kernel: what tt_metal::CreateKernel is given, and what follows.

The runtime of tt-metal compiles a kernel once for each configuration and writes headers for it.
What they have to hold is what the device headers of the release use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

ARCHITECTURES = ("wormhole_b0", "blackhole")
PROCESSORS = ("riscv_0", "riscv_1", "compute")
MATH_FIDELITIES = {"LoFi": 0, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
NUM_CIRCULAR_BUFFERS = 32
FACE_SIZE = 16
DATA_FORMATS = {
    "Float32": 0,
    "Float16": 1,
    "Bfp8": 2,
    "Bfp4": 3,
    "Tf32": 4,
    "Float16_b": 5,
    "Bfp8_b": 6,
    "Bfp4_b": 7,
    "Int32": 8,
    "UInt16": 9,
    "Lf8": 10,
    "Bfp2": 11,
    "Int8": 14,
    "Bfp2_b": 15,
    "UInt32": 24,
    "Fp8_e4m3": 26,
    "UInt8": 30,
    "RawUInt8": 240,
    "RawUInt16": 241,
    "RawUInt32": 242,
    "Invalid": 255,
}
"""tt::DataFormat of the release."""

_BITS = {
    **dict.fromkeys(("Float32", "Tf32", "Int32", "UInt32", "RawUInt32"), 32),
    **dict.fromkeys(("Float16", "Float16_b", "UInt16", "RawUInt16"), 16),
    **dict.fromkeys(("Bfp4", "Bfp4_b"), 4),
    **dict.fromkeys(("Bfp2", "Bfp2_b"), 2),
}
"""Bits of an element, where they are not 8; without the exponents of block floats."""


class ConfigurationError(Exception):
    """A configuration that makes no sense."""


@dataclass(frozen=True)
class CircularBuffer:
    """A circular buffer of the cores that a kernel runs on.

    Attributes:
        index: 0 to 31.
        data_format: a name of tt::DataFormat.
        tile: rows and columns of a tile.
        unpack_to_dest_fp32: whether f32 goes to DST unrounded (tt_metal::UnpackToDestMode).
    """

    index: int
    data_format: str
    tile: tuple[int, int] = (32, 32)
    unpack_to_dest_fp32: bool = False

    @property
    def tile_size(self) -> int:
        """Bytes of a tile."""
        elements = self.tile[0] * self.tile[1]
        size = elements * _BITS.get(self.data_format, 8) // 8
        return size + elements // FACE_SIZE if self.data_format.startswith("Bfp") else size


@dataclass(frozen=True)
class KernelConfiguration:
    """A kernel as it is compiled; the arguments of tt_metal::CreateKernel.

    Attributes:
        file: the source file.
        processor: one of PROCESSORS.
        arch: one of ARCHITECTURES.
        noc: the NoC that the kernel uses; data movement only.
    """

    file: Path
    processor: str
    arch: str = "wormhole_b0"
    compile_args: tuple[int, ...] = ()
    named_compile_args: tuple[tuple[str, int], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    circular_buffers: tuple[CircularBuffer, ...] = ()
    noc: int = 0
    math_fidelity: str = "HiFi4"
    fp32_dest_acc_en: bool = False
    dst_full_sync_en: bool = False
    math_approx_mode: bool = False
    bfp8_pack_precise: bool = False


@dataclass(frozen=True)
class _Entry:
    """An object of a manifest, whose values are taken one by one."""

    values: Mapping[str, Any]
    place: str
    taken: set[str] = field(default_factory=set[str])

    def take(self, key: str, kind: type, default: Any = None) -> Any:
        self.taken.add(key)
        value = self.values.get(key, default)
        if value is None:
            raise ConfigurationError(f"{self.place}: {key!r} is missing")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ConfigurationError(f"{self.place}: {key!r} is not of type {kind.__name__}")
        return value

    def choose(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        value: str = self.take(key, str, default)
        if value not in choices:
            raise ConfigurationError(
                f"{self.place}: {key!r} is {value!r}, not one of {', '.join(choices)}"
            )
        return value

    def integer(self, key: str, limit: int, default: int | None = None) -> int:
        return _within(self.take(key, int, default), limit, f"{self.place}: {key!r}")

    def finish(self, ignored: tuple[str, ...]) -> None:
        for key in self.values:
            if key not in self.taken and key not in ignored:
                raise ConfigurationError(f"{self.place}: {key!r} is not known")


def _within(value: object, limit: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise ConfigurationError(f"{what}: {value!r} is not an integer from 0 to {limit - 1}")
    return value


def _circular_buffer(values: object, place: str) -> CircularBuffer:
    if not isinstance(values, dict):
        raise ConfigurationError(f"{place}: not an object")
    entry = _Entry(cast(dict[str, Any], values), place)
    tile: list[object] = entry.take("tile", list, [32, 32])
    if len(tile) != 2:
        raise ConfigurationError(f"{place}: 'tile' is not rows and columns")
    rows, columns = (_within(size, 33, f"{place}: 'tile'") for size in tile)
    buffer = CircularBuffer(
        entry.integer("index", NUM_CIRCULAR_BUFFERS),
        entry.choose("data_format", tuple(DATA_FORMATS)),
        (rows, columns),
        entry.take("unpack_to_dest_fp32", bool, False),
    )
    entry.finish(ignored=("name", "num_pages", "page_size"))
    return buffer


def kernel_configuration(
    values: object, folder: Path, arch: str, place: str
) -> KernelConfiguration:
    """The configuration that an entry of a manifest's "kernels" describes (docs/kernel-check.md).

    Args:
        values: the entry.
        folder: what the path in `file` is relative to.
        arch: one of ARCHITECTURES.
        place: what error messages call the entry.

    Raises ConfigurationError if a key is missing, not known, or has a wrong value.
    """
    if not isinstance(values, dict):
        raise ConfigurationError(f"{place}: not an object")
    entry = _Entry(cast(dict[str, Any], values), place)
    file, processor = entry.take("file", str), entry.choose("processor", PROCESSORS)
    named: dict[str, object] = entry.take("named_compile_args", dict, {})
    defines: dict[str, object] = entry.take("defines", dict, {})
    common: dict[str, Any] = {
        "compile_args": tuple(
            _within(value, 1 << 32, f"{place}: 'compile_args'")
            for value in entry.take("compile_args", list, [])
        ),
        "named_compile_args": tuple(
            (name, _within(value, 1 << 32, f"{place}: {name!r}")) for name, value in named.items()
        ),
        "defines": tuple((name, str(value)) for name, value in defines.items()),
        "circular_buffers": tuple(
            _circular_buffer(buffer, f"{place}: circular buffer {number}")
            for number, buffer in enumerate(entry.take("circular_buffers", list, []))
        ),
    }
    if processor == "compute":
        common["math_fidelity"] = entry.choose("math_fidelity", tuple(MATH_FIDELITIES), "HiFi4")
        for key in ("fp32_dest_acc_en", "dst_full_sync_en", "math_approx_mode"):
            common[key] = entry.take(key, bool, False)
        common["bfp8_pack_precise"] = entry.take("bfp8_pack_precise", bool, False)
    else:
        common["noc"] = entry.integer("noc", 2, int(processor == "riscv_0"))
    entry.finish(
        ignored=("name", "kind", "program", "cores", "runtime_args", "common_runtime_args", "costs")
    )
    return KernelConfiguration(folder / file, processor, arch, **common)


def read_manifest(path: Path, arch: str | None = None) -> list[KernelConfiguration]:
    """The kernels of a project, each configuration once, in the manifest's order.

    Args:
        path: a manifest.json, or another file of the same form.
        arch: one of ARCHITECTURES, instead of the manifest's.

    Raises ConfigurationError if the file cannot be read or an entry is wrong.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: not an object")
    manifest = cast(dict[str, Any], content)
    own_arch = _Entry(manifest, str(path)).choose("arch", ARCHITECTURES, "wormhole_b0")
    entries: list[object] = _Entry(manifest, str(path)).take("kernels", list, [])
    return list(
        dict.fromkeys(
            kernel_configuration(entry, path.parent, arch or own_arch, f"{path}: kernel {number}")
            for number, entry in enumerate(entries)
        )
    )


def _unpacked_formats(configuration: KernelConfiguration) -> dict[int, str]:
    """The format in which the tiles of each circular buffer reach the source registers."""
    exponent_a = {"Float16", "Bfp8", "Bfp4", "Bfp2", "Lf8", "Fp8_e4m3"}
    formats = {buffer.data_format for buffer in configuration.circular_buffers}
    rounded = "Float16" if formats & exponent_a else "Float16_b"
    if configuration.fp32_dest_acc_en and not formats & exponent_a:
        rounded = "Tf32"
    raw = {"RawUInt32": "Float32", "RawUInt16": "Float16", "RawUInt8": "Lf8"}
    unpacked: dict[int, str] = {}
    for buffer in configuration.circular_buffers:
        name = buffer.data_format
        if name == "Float32":
            unpacked[buffer.index] = "Float32" if buffer.unpack_to_dest_fp32 else rounded
        elif name.startswith("Bfp"):
            unpacked[buffer.index] = "Bfp8_b" if name.endswith("_b") else "Bfp8"
        else:
            unpacked[buffer.index] = raw.get(name, name)
    return unpacked


def _packed_formats(configuration: KernelConfiguration) -> dict[int, str]:
    """The format in which the packer reads DST for each circular buffer."""
    unpacked = _unpacked_formats(configuration)
    packed: dict[int, str] = {}
    for buffer in configuration.circular_buffers:
        name = buffer.data_format
        wide = configuration.fp32_dest_acc_en or configuration.bfp8_pack_precise
        if name == "Float32":
            packed[buffer.index] = "Float32" if configuration.fp32_dest_acc_en else "Float16_b"
        elif name.startswith("Bfp") and wide:
            packed[buffer.index] = "Float16_b" if name.endswith("_b") else "Float16"
        else:
            packed[buffer.index] = unpacked[buffer.index]
    return packed


def _array(kind: str, name: str, values: Mapping[int, int], unused: int) -> str:
    numbers = (str(values.get(index, unused)) for index in range(NUM_CIRCULAR_BUFFERS))
    return f"constexpr {kind} {name}[{NUM_CIRCULAR_BUFFERS}] = {{{', '.join(numbers)}}};"


def _formats(kind: str, name: str, formats: Mapping[int, str]) -> str:
    numbers = {index: DATA_FORMATS[format_name] for index, format_name in formats.items()}
    return _array(kind, name, numbers, DATA_FORMATS["Invalid"])


def _tile_geometry(prefix: str, configuration: KernelConfiguration) -> list[str]:
    buffers = {buffer.index: buffer for buffer in configuration.circular_buffers}
    rows = {index: buffer.tile[0] for index, buffer in buffers.items()}
    columns = {index: buffer.tile[1] for index, buffer in buffers.items()}
    face_rows = {index: min(size, FACE_SIZE) for index, size in rows.items()}
    faces_down = {index: rows[index] // face_rows[index] for index in buffers}
    faces_across = {index: columns[index] // FACE_SIZE for index in buffers}
    faces = {index: faces_down[index] * faces_across[index] for index in buffers}
    partial = {index: int(face_rows[index] < FACE_SIZE) for index in buffers}
    narrow = {index: int(columns[index] < 32) for index in buffers}
    sizes = {index: buffer.tile_size for index, buffer in buffers.items()}
    return [
        _array("std::uint8_t", f"{prefix}_tile_num_faces", faces, 4),
        _array("std::uint8_t", f"{prefix}_partial_face", partial, 0),
        _array("std::uint8_t", f"{prefix}_tile_face_r_dim", face_rows, FACE_SIZE),
        _array("std::uint8_t", f"{prefix}_narrow_tile", narrow, 0),
        _array("std::uint8_t", f"{prefix}_tile_r_dim", rows, 32),
        _array("std::uint8_t", f"{prefix}_tile_c_dim", columns, 32),
        _array("std::uint8_t", f"{prefix}_num_faces_r_dim", faces_down, 2),
        _array("std::uint8_t", f"{prefix}_num_faces_c_dim", faces_across, 2),
        _array("std::uint16_t", f"{prefix}_tile_size", sizes, 0),
    ]


def descriptors(configuration: KernelConfiguration) -> str:
    """The text of chlkc_descriptors.h: formats and geometry of tiles, modes of the math unit."""
    stored = {buffer.index: buffer.data_format for buffer in configuration.circular_buffers}
    fidelity = MATH_FIDELITIES[configuration.math_fidelity]
    lines = [
        "#pragma once",
        "#include <cstdint>",
        "#ifdef UCK_CHLKC_MATH",
        '#include "llk_defs.h"',
        f"constexpr auto MATH_FIDELITY = static_cast<ckernel::MathFidelity>({fidelity});",
        "#endif",
        # Later releases have functions of the vector unit that the packer runs.
        '#if defined(UCK_CHLKC_MATH) || __has_include("api/compute/transpose.h")',
        f"constexpr bool APPROX = {str(configuration.math_approx_mode).lower()};",
        "#endif",
        _formats("std::int32_t", "unpack_src_format", stored),
        "#ifndef UCK_CHLKC_PACK",
        _formats("std::int32_t", "unpack_dst_format", _unpacked_formats(configuration)),
        *_tile_geometry("unpack", configuration),
        "#endif",
        "#if !defined(UCK_CHLKC_MATH) && !defined(UCK_CHLKC_UNPACK)",
        _formats("unsigned char", "pack_src_format", _packed_formats(configuration)),
        _formats("unsigned char", "pack_dst_format", stored),
        *_tile_geometry("pack", configuration),
        "#endif",
    ]
    if configuration.processor == "compute":
        sync = "Full" if configuration.dst_full_sync_en else "Half"
        lines += [
            f"constexpr bool DST_ACCUM_MODE = {str(configuration.fp32_dest_acc_en).lower()};",
            f"#define DST_SYNC_MODE DstSync::Sync{sync}",
        ]
    return "\n".join(lines) + "\n"
