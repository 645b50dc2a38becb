"""Cycles and bytes that programs of TT-Lang take on the emulated device.

    python benchmarks/lang_device.py

Cycles are what the slowest core needs at least for what was counted there, by processor: bytes
over the NoC, tiles unpacked, multiplied and packed (`ttcodegen.rt.device_profile`). They have no
waiting in them. Bytes are those of all cores.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from measure import manifest, run

from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import find_toolchain
from ttcodegen.rt.device_profile import DeviceCounts, longest_cycles
from ttcodegen.systems.cards import performance

PROGRAMS = Path(__file__).parent / "lang_programs"
RUNS = (
    ("matmul_2d", ("1024", "1024", "1024")),
    ("matmul_2d", ("2048", "512", "1024")),
)
PROCESSORS = {
    "NCRISC": "reader",
    "BRISC": "writer",
    "TRISC_0": "unpack",
    "TRISC_1": "math",
    "TRISC_2": "pack",
}
BYTES = ("noc_read_bytes", "noc_written_bytes", "dram_read_bytes", "dram_written_bytes")


def measured(name: str, arguments: tuple[str, ...], folder: Path) -> str:
    """A row: cycles of each processor, and bytes."""
    source = Source.read(str(PROGRAMS / f"{name}.py"))
    projects = Projects(source.digest, folder)
    run_program_text(source, list(arguments), projects.watch)
    (project,) = projects.written
    built = build_project(project, manifest(project)["module"], find_toolchain(), "exe")
    with DeviceCounts() as counts:
        run([str(built.executable)])
        (program,) = counts.take()
    cycles = longest_cycles(program, program.fidelity, performance("wormhole_b0"))
    figures = [f"{title} {cycles.get(each, 0):,}" for each, title in PROCESSORS.items()]
    figures += [f"{each} {program.total.get(each, 0):,}" for each in BYTES]
    return f"{name} {'x'.join(arguments)}: {', '.join(figures)}"


def main() -> None:
    """Prints a row for each program."""
    for name, arguments in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(name, arguments, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
