"""`ttcodegen`: compiles a TTIR module to a C++ project, builds it and checks it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen import __version__
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program
from ttcodegen.diagnostics import Diagnostics, Source
from ttcodegen.systems.description import ARCHITECTURES

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule
    from ttcodegen.project.toolchain import Toolchain
    from ttcodegen.transforms.pass_runner import PassRunner


_EPILOG = """\
exit status: 0 done; 1 the input is wrong or not supported, or a file cannot be written; 2 wrong
usage; 3 the C++ did not build; 4 an output of the check differs; 70 a bug in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="ttcodegen",
        description="Compiles a tensor program (TTIR) to a C++ project for Tenstorrent cards.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="the module, in MLIR's text form; - reads stdin")
    add("-o", dest="out", metavar="OUT", type=Path, help="the folder that the project goes to")
    add("--target", choices=("ttnn", "ttmetal"), default="ttnn", help="what the C++ calls (ttnn)")
    add("--arch", choices=ARCHITECTURES, help="the card (wormhole_b0)")
    add("--system-desc", metavar="F", help="the system, as a .ttsys file or by the name of a card: "
        "its grid, memories and data types")  # fmt: skip
    add("--tt-metal", choices=("0.70.1",), default="0.70.1", help="the tt-metal release to target")
    add("--build", action="store_true", help="build the project for the CPU backend")
    add("--kind", choices=("so", "exe", "both"), help="what to build: the shared object, the "
        "executable or both (both; with --check alone, exe)")  # fmt: skip
    add("--check", action="store_true", help="build it, run it on drawn inputs and compare it with "
        "the flatbuffer and with the source, both run in numpy")  # fmt: skip
    add("--seed", type=int, default=0, help="seed of drawn inputs (0)")
    add("--embed-goldens", action="store_true", help="put into the flatbuffer what the source "
        "computes of drawn inputs, op by op")  # fmt: skip
    add("--force", action="store_true", help="write into a folder of others, or overwrite edits")
    add("--no-format", action="store_true", help="leave the C++ unformatted")
    add("--dump-ir", metavar="DIR", type=Path, help="write the module after each pass")
    add("--time-passes", action="store_true", help="show how long each stage took")
    add("--cpu-backend-dir", action="store_true", help="print the folder of the CPU backend, which "
        "is built if it is not there yet, and end")  # fmt: skip
    add("--version", action="version", version=f"ttcodegen {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program("ttcodegen", _run, argv)


def _run(invocation: Invocation) -> int:
    parser = argument_parser()
    options = parser.parse_args(invocation.arguments)
    if options.cpu_backend_dir:
        return _print_cpu_backend()
    if options.file is None or options.out is None:
        parser.error("FILE and -o OUT are needed")
    return _compile(options, invocation.read(options.file))


def _print_cpu_backend() -> int:
    from ttcodegen.project.cpu_backend import ensure_cpu_backend
    from ttcodegen.project.toolchain import find_toolchain

    print(ensure_cpu_backend(find_toolchain()).folder)
    return ExitStatus.DONE


def _compile(options: argparse.Namespace, source: Source) -> int:
    from ttcodegen.compilation import CompileOptions, compile_module
    from ttcodegen.dialects import load_dialects
    from ttcodegen.project.writer import refuse_foreign_folder
    from ttcodegen.transforms.pass_runner import PassRunner

    system = None
    if options.system_desc is not None:
        from ttcodegen.flatbuffer.system import load_system

        system = load_system(options.system_desc)
    # What cannot end well is refused before the work, and before anything is written.
    refuse_foreign_folder(options.out, force=options.force)
    toolchain = None
    if options.build or options.check:
        from ttcodegen.project.toolchain import find_toolchain

        toolchain = find_toolchain()
    runner = PassRunner(load_dialects(), dump=options.dump_ir, count_ops=options.time_passes)
    diagnostics = Diagnostics()
    name = "model" if options.file == "-" else Path(options.file).name.partition(".")[0]
    try:
        compiled = compile_module(
            source,
            CompileOptions(
                name,
                options.target,
                options.arch or "",
                options.tt_metal,
                system=system,
                golden_seed=options.seed if options.embed_goldens else None,
            ),
            runner,
            diagnostics,
        )
        diagnostics.write(sys.stderr, source)
        _write(options, compiled, runner)
        return _build_and_check(options, source, compiled, toolchain, runner)
    finally:
        if options.time_passes:
            runner.write_times(sys.stderr)


def _write(options: argparse.Namespace, compiled: CompiledModule, runner: PassRunner) -> None:
    from ttcodegen.project.rendering import project_files
    from ttcodegen.project.writer import write_project

    with runner.stage("render and format"):
        files = project_files(compiled, formatted=not options.no_format)
    with runner.stage("write project"):
        write_project(compiled.description, options.out, files, force=options.force)


def _build_and_check(
    options: argparse.Namespace,
    source: Source,
    compiled: CompiledModule,
    toolchain: Toolchain | None,
    runner: PassRunner,
) -> int:
    if toolchain is None:
        return ExitStatus.DONE
    if not options.check:
        from ttcodegen.project.building import build_project

        with runner.stage("build"):
            build_project(options.out, compiled.description.name, toolchain, options.kind or "both")
        return ExitStatus.DONE
    from ttcodegen.project.checking import check_project

    kind = options.kind or ("both" if options.build else "exe")
    with runner.stage("build and check"):
        checks = check_project(
            source, compiled, options.out, toolchain, kind=kind, seed=options.seed
        )
    failed = [reason for check in checks for reason in check.reasons]
    for reason in failed:
        print(f"error: {reason}", file=sys.stderr)
    if not all(check.passed for check in checks):
        return ExitStatus.MISMATCH
    return ExitStatus.DONE


if __name__ == "__main__":
    sys.exit(main())
