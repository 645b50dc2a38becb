"""Cycles and bytes on the emulated device, beside kernels that the library has for the same.

    TTNN_PACKAGE=.../site-packages/ttnn python benchmarks/lang_device.py [CASE...]

Each case is a program of TT-Lang, a module for `--target ttmetal`, and kernels of the release in
the installed package that TTNN_PACKAGE names, which a small host launches (`release_kernels/`);
without it they are left out. All compute with bfloat16 in HiFi4.

Cycles are what the slowest core needs at least for what was counted there, by processor: bytes
over the NoC, tiles unpacked, multiplied and packed (`ttcodegen.rt.device_profile`). They have no
waiting in them. Bytes are those of all cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import TTCODEGEN, manifest, run
from release_kernels.attention import attention
from release_kernels.launching import HandWritten, build_launcher
from release_kernels.products import matmul
from release_kernels.rows import chain, rms_norm, softmax

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.rt.device_profile import DeviceCounts, ProgramCounts, longest_cycles
from ttcodegen.systems.cards import performance

PROGRAMS = Path(__file__).parent / "lang_programs"
PACKAGE = "TTNN_PACKAGE"
PROCESSORS = {
    "NCRISC": "reader",
    "BRISC": "writer",
    "TRISC_0": "unpack",
    "TRISC_1": "math",
    "TRISC_2": "pack",
}
BYTES = {
    "noc_read_bytes": "NoC read",
    "noc_written_bytes": "NoC written",
    "dram_read_bytes": "DRAM read",
    "dram_written_bytes": "DRAM written",
}
Figures = Mapping[str, int]


def drawn(*shape: int) -> np.ndarray:
    """Normally distributed elements."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def _module(result: str, operands: str, body: str) -> str:
    return f"func.func @forward({operands}) -> {result} {{\n{body}\n}}\n"


def _matmul_module(rows: int, inner: int, columns: int) -> str:
    a, b, y = (
        f"tensor<{first}x{second}xbf16>"
        for first, second in ((rows, inner), (inner, columns), (rows, columns))
    )
    body = f'%y = "ttir.matmul"(%a, %b) : ({a}, {b}) -> {y}\nreturn %y : {y}'
    return _module(y, f"%a: {a}, %b: {b}", body)


def _chain_module(rows: int, columns: int) -> str:
    t = f"tensor<{rows}x{columns}xbf16>"
    lines = [f'%0 = "ttir.add"(%a, %b) : ({t}, {t}) -> {t}']
    for number, name in enumerate(("abs", "sqrt", "sigmoid")):
        lines.append(f'%{number + 1} = "ttir.{name}"(%{number}) : ({t}) -> {t}')
    return _module(t, f"%a: {t}, %b: {t}", "\n".join([*lines, f"return %3 : {t}"]))


def _softmax_module(rows: int, columns: int) -> str:
    t = f"tensor<{rows}x{columns}xbf16>"
    body = (
        f'%y = "ttir.softmax"(%x) <{{dimension = 1 : si32, numericStable = true}}> : ({t}) -> {t}'
    )
    return _module(t, f"%x: {t}", f"{body}\nreturn %y : {t}")


def _rms_norm_module(rows: int, columns: int) -> str:
    t, w = f"tensor<{rows}x{columns}xbf16>", f"tensor<{columns}xbf16>"
    body = (
        f'%y = "ttir.rms_norm"(%x, %w) <{{normalized_shape = array<i64: {columns}>, '
        f"epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}}> : ({t}, {w}) -> {t}"
    )
    return _module(t, f"%x: {t}, %w: {w}", f"{body}\nreturn %y : {t}")


def _attention_module(heads: int, length: int, _: int) -> str:
    t = f"tensor<1x{heads}x{length}x64xbf16>"
    body = (
        f'%y = "ttir.scaled_dot_product_attention"(%q, %k, %v) <{{is_causal = false, '
        f"scale = 0.125 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}}> "
        f": ({t}, {t}, {t}) -> {t}"
    )
    return _module(t, f"%q: {t}, %k: {t}, %v: {t}", f"{body}\nreturn %y : {t}")


@dataclass(frozen=True)
class Case:
    """One computation.

    Attributes:
        program: the program of TT-Lang in `lang_programs`.
        sizes: its arguments.
        module: gives the text of the module for them.
        hand_written: gives the kernels of the release for them.
    """

    program: str
    sizes: tuple[int, ...]
    module: Callable[..., str]
    hand_written: Callable[..., HandWritten]

    @property
    def name(self) -> str:
        """Name of the case."""
        return f"{self.program} {'x'.join(map(str, self.sizes))}"


def _products(rows: int, inner: int, columns: int) -> HandWritten:
    return matmul(drawn(rows, inner), drawn(inner, columns), 4)


def _attention(heads: int, length: int, block: int) -> HandWritten:
    q, k, v = (drawn(heads, length, 64) for _ in range(3))
    return attention(q, k, v, block)


CASES = (
    Case("matmul_2d", (1024, 1024, 1024), _matmul_module, _products),
    Case("matmul_2d", (2048, 512, 1024), _matmul_module, _products),
    Case("attention", (8, 1024, 128), _attention_module, _attention),
    Case("rms_norm", (32, 4096), _rms_norm_module,
         lambda rows, columns: rms_norm(drawn(rows, columns), drawn(columns), 1e-5)),
    Case("softmax", (2048, 1024), _softmax_module,
         lambda rows, columns: softmax(drawn(rows, columns))),
    Case("chain", (2048, 2048), _chain_module,
         lambda rows, columns: chain(drawn(rows, columns), drawn(rows, columns))),
)  # fmt: skip


def _figures(programs: list[ProgramCounts]) -> Figures:
    """Cycles of the processors of the slowest cores, and bytes, of programs one after the other."""
    found: dict[str, int] = {}
    for program in programs:
        cycles = longest_cycles(program, program.fidelity, performance("wormhole_b0"))
        for key, title in PROCESSORS.items():
            found[title] = found.get(title, 0) + cycles.get(key, 0)
        for key, title in BYTES.items():
            found[title] = found.get(title, 0) + program.total.get(key, 0)
    return found


def _of_project(project: Path) -> Figures:
    built = build_project(project, manifest(project)["module"], find_toolchain(), "exe")
    with DeviceCounts() as counts:
        run([str(built.executable)])
        return _figures(counts.take())


def of_program(case: Case, folder: Path) -> Figures:
    """Figures of the program of TT-Lang."""
    source = Source.read(str(PROGRAMS / f"{case.program}.py"))
    projects = Projects(source.digest, folder)
    run_program_text(source, [*map(str, case.sizes)], projects.watch)
    (project,) = projects.written
    return _of_project(project)


def of_module(case: Case, folder: Path) -> Figures:
    """Figures of the device programs of the module."""
    source, out = folder / "program.mlir", folder / "module"
    source.write_text(case.module(*case.sizes))
    run((*TTCODEGEN, str(source), "-o", str(out), "--target", "ttmetal"))
    return _of_project(out)


def of_release(case: Case, folder: Path, package: Path) -> Figures:
    """Figures of the kernels of the release."""
    launcher = build_launcher(folder)
    with DeviceCounts() as counts:
        case.hand_written(*case.sizes).run(package, launcher)
        return _figures(counts.take())


def main() -> None:
    """Prints a row for each case and each of its versions."""
    named = os.environ.get(PACKAGE)
    cases = [case for case in CASES if not sys.argv[1:] or case.program in sys.argv[1:]]
    for case in cases:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            versions = {"TT-Lang": of_program(case, folder), "ttmetal": of_module(case, folder)}
            if named:
                versions["release"] = of_release(case, folder, Path(named))
        for version, figures in versions.items():
            row = ", ".join(f"{title} {count:,}" for title, count in figures.items())
            print(f"{case.name}, {version}: {row}", flush=True)


if __name__ == "__main__":
    main()
