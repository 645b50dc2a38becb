"""Launches kernels of a release of ttnn on the emulated device.

The kernels are those in the folder of an installed package; nothing of them is part of this
project. What a program is made of, its circular buffers, semaphores and arguments, is described
here as the host code of the library would set it up.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from measure import run

from ttcodegen.project.cpu_backend import ensure_cpu_backend
from ttcodegen.project.toolchain import find_toolchain

OPERATIONS = "ttnn/cpp/ttnn/operations"
"""The kernels, in the folder ttnn of the package."""
_INCLUDES = ("ttnn/cpp", "ttnn", "tt_metal/hw/inc", "")
"""Folders in which kernels find the headers of the library."""
_SOURCE = Path(__file__).with_name("launch.cpp")
_MOVING = """\
#include "moving.h"
#define kernel_main released_kernel
#include "{path}"
#undef kernel_main
void kernel_main() {{
#ifdef PARTLY_WRITTEN
    // The kernel writes a column of this tile and leaves what is there in the others.
    const auto tile = reinterpret_cast<volatile uint32_t*>(get_write_ptr(PARTLY_WRITTEN));
    for (uint32_t i = 0; i < get_tile_size(PARTLY_WRITTEN) / 4; ++i) {{
        tile[i] = 0;
    }}
#endif
    released_kernel();
    noc_async_full_barrier();
}}
"""
"""A kernel that moves data: at its end it waits for what it knows to have arrived."""
_COMPUTING = """\
#include "low_level.h"
#include "{path}"
"""
TILE_BYTES = {"bf16": 2048, "f32": 4096}

Core = tuple[int, int]
Argument = int | str
"""A number, the name of a tensor for its address, or `column:N` and `row:N`, the coordinates of
a core on the NoC; among arguments of the compiler `accessor:TENSOR`, too."""


@dataclass
class Kernel:
    """A kernel on a rectangle of cores.

    Attributes:
        file: its path below OPERATIONS.
        kind: read, write or compute, which says where it runs.
        first, last: the corners of its cores.
        arguments: those that each core is given when it runs.
        omitted: headers beside it that are left out, as the kernel does nothing of what is there.
    """

    file: str
    kind: str
    first: Core
    last: Core
    compile: Sequence[Argument] = ()
    named: Mapping[str, int] = field(default_factory=dict[str, int])
    defines: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    arguments: Mapping[Core, Sequence[Argument]] = field(
        default_factory=dict[Core, Sequence[Argument]]
    )
    omitted: Sequence[str] = ()

    def lines(self, operations: Path, folder: Path) -> list[str]:
        """Lines that describe it; what is compiled is written to `folder`."""
        corners = " ".join(map(str, (*self.first, *self.last)))
        text = _COMPUTING if self.kind == "compute" else _MOVING
        source = folder / self.file.replace("/", "_")
        path = operations / self.file
        if self.omitted:
            kept = folder / f"kept_{source.name}"
            kept.write_text(self._without_omitted(path))
            path = kept
        source.write_text(text.format(path=path))
        return [
            f"kernel {source} {self.kind} {corners}",
            *(f"setting {name} {value}" for name, value in self.settings.items()),
            *(f"define {name} {value}" for name, value in self.defines.items()),
            *(f"named {name} {value}" for name, value in self.named.items()),
            f"compile {' '.join(map(str, self.compile))}",
            *(
                f"arguments {x} {y} {' '.join(map(str, values))}"
                for (x, y), values in self.arguments.items()
            ),
        ]

    def _without_omitted(self, path: Path) -> str:
        def include(match: re.Match[str]) -> str:
            beside = path.parent / match[1]
            if match[1] in self.omitted or not beside.is_file():
                return "" if match[1] in self.omitted else match[0]
            return f'#include "{beside}"'

        return re.sub(r'#include "([^"]*)"', include, path.read_text())


@dataclass
class Buffer:
    """A circular buffer of all cores; several indices share its memory.

    Attributes:
        changed: whether a kernel writes to pages that it has pushed, or adds to what it has popped:
            they are in memory that others have, too, of which the emulated device forgets nothing.
    """

    indices: Sequence[int]
    pages: int
    format: str = "bf16"
    changed: bool = False

    def line(self) -> str:
        """The line that describes it."""
        places = " ".join(map(str, self.indices))
        kind = "borrowed" if self.changed else "buffer"
        return f"{kind} {self.format} {self.pages} {TILE_BYTES[self.format]} {places}"


@dataclass
class HandWritten:
    """A program of kernels of the release.

    Attributes:
        operands: tensors of two dimensions, by name.
        result: the name of the tensor that it writes, which is among the operands.
    """

    operands: Mapping[str, np.ndarray]
    result: str
    buffers: Sequence[Buffer]
    semaphores: int
    kernels: Sequence[Kernel]

    def run(self, package: Path, launcher: Path) -> np.ndarray:
        """The tensor that it writes.

        Args:
            package: the folder ttnn of the release.
            launcher: what `build_launcher` built.
        """
        with tempfile.TemporaryDirectory() as folder:
            lines: list[str] = []
            for name, values in self.operands.items():
                path = Path(folder, name)
                path.write_bytes(to_tiles(values).tobytes())
                lines.append(f"tensor {name} {values.size // 1024} 2048 {path}")
            lines += [each.line() for each in self.buffers]
            lines += ["semaphore 0"] * self.semaphores
            for kernel in self.kernels:
                lines += kernel.lines(package / OPERATIONS, Path(folder))
            result = Path(folder, "written")
            lines.append(f"result {self.result} {result}")
            text = Path(folder, "program.txt")
            text.write_text("\n".join(lines) + "\n")
            folders = [_SOURCE.with_name("include"), *(package / each for each in _INCLUDES)]
            paths = ":".join(map(str, folders))
            run([str(launcher), str(text)], {"CPLUS_INCLUDE_PATH": paths})
            written = np.frombuffer(result.read_bytes(), np.uint16)
        return from_tiles(written, self.operands[self.result].shape)


def build_launcher(folder: Path) -> Path:
    """Builds the program that launches kernels."""
    toolchain = find_toolchain()
    backend = ensure_cpu_backend(toolchain, "ttmetal", ()).folder
    launcher = folder / "launch"
    library = backend / "lib" / "libttcodegen_cpu.a"
    command = [toolchain.compiler, "-std=c++20", "-O1", f"-I{backend / 'include'}", str(_SOURCE)]
    run([*command, "-o", str(launcher), str(library), "-pthread", "-ldl"])
    return launcher


def to_tiles(values: np.ndarray) -> np.ndarray:
    """The tiles of a matrix as bfloat16, rounded to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    rows, columns = (size // 32 for size in values.shape)
    faces = rounded.reshape(rows, 2, 16, columns, 2, 16)
    return np.ascontiguousarray(faces.transpose(0, 3, 1, 4, 2, 5))


def from_tiles(tiles: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of some tiles of bfloat16."""
    rows, columns = (size // 32 for size in shape)
    faces = tiles.reshape(rows, columns, 2, 2, 16, 16).transpose(0, 2, 4, 1, 3, 5)
    return (faces.reshape(shape).astype(np.uint32) << 16).view(np.float32)


def release_package() -> Path | None:
    """The folder ttnn of a release, of which TTNN_PACKAGE gives the place; None if nothing does."""
    named = os.environ.get("TTNN_PACKAGE")
    return Path(named) if named else None
