"""`ttcodegen`: compiles a TTIR module to a C++ project, builds it and checks it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.cli.arguments import (
    ArgumentParser,
    add_message_options,
    add_release_option,
    add_system_options,
    add_version_option,
    apply_message_options,
    chosen_system,
    host_shape,
    mesh_shape,
)
from ttcodegen.cli.completion import SHELLS
from ttcodegen.cli.entry import (
    ExitStatus,
    Invocation,
    run_program_with_code,
    tell_warnings,
)
from ttcodegen.foundation.diagnostics import Diagnostics, Source
from ttcodegen.foundation.messages import Level, is_reported, printable, report
from ttcodegen.lang.projects.called_operations import callable_operations

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule
    from ttcodegen.project.building import BuiltProject
    from ttcodegen.project.running import Reference
    from ttcodegen.project.settings import ProjectOptions
    from ttcodegen.project.toolchain import Toolchain
    from ttcodegen.transforms.pass_runner import PassRunner


_EPILOG = """\
examples:
  ttcodegen model.mlir -o out                       write the C++ project
  ttcodegen model.mlir -o out --check               ... build it, run it, compare what it computes
  ttcodegen model.mlir -o out --target ttmetal      a host program and device kernels
  ttcodegen model.mlir -o out --arch blackhole      for another card
  ttcodegen-rt run out                              check a project that was edited
  ttcodegen tune out --op NAME                      search around an op, write what is faster

exit status: 0 done; 1 the input is wrong or not supported, or a file cannot be written; 2 wrong
usage; 3 the C++ did not build; 4 an output of the check differs; 5 the project is written, but
edits of yours are in conflict with it; 70 a bug in ttcodegen
"""


def argument_parser() -> ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog="ttcodegen",
        description="Compiles a tensor program (TTIR) to a C++ project for Tenstorrent cards.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="the module, in MLIR's text form; - reads stdin")
    add("-o", dest="out", metavar="OUT", type=Path, help="the folder to write the project to")
    add("--name", metavar="NAME", help="the name of the project: of its C++ namespace, files and "
        "libraries (that of FILE, at most 30 characters of it)")  # fmt: skip
    add(
        "--target",
        choices=("ttnn", "ttmetal"),
        default="ttnn",
        help="the ttnn library, or device programs of tt-metal (ttnn)",
    )
    add_system_options(parser)
    add("--mesh-shape", metavar="RxC", type=mesh_shape, default=(1, 1), help="rows and columns "
        "of the mesh of chips, such as 2x4, for a module that names none")  # fmt: skip
    add("--hosts", metavar="RxC", type=host_shape, default=(1, 1), help="rows and columns of the "
        "hosts that have the mesh, such as 2x1: the program runs as a process on each, and files "
        "for tt-run are written")  # fmt: skip
    add("--fabric", choices=("linear", "ring", "torus"), help="the links of a "
        "mesh: linear, lines along its axes, ring or torus (linear)")  # fmt: skip
    add("--parallel", metavar="HOW", help="how tensors are divided among the devices of the mesh, "
        "where a module does not say it: auto, the fastest by the model of cost, or data, tensor, "
        "expert or sequence, each with an axis of the mesh, as in data=0,tensor=1")  # fmt: skip
    add("--stages", metavar="N", help="divide functions into stages of a pipeline, each for a "
        "device of its own: their number, or the names of the ops that all but the last stage end "
        "after, as in layer1,layer2")  # fmt: skip
    add("--micro-batches", metavar="N", type=int, default=1,
        help="parts of the batch that go through the stages one after the other (1)")  # fmt: skip
    add_release_option(parser)
    add("--optimize", type=int, choices=(0, 1, 2), metavar="LEVEL", help="0: all "
        "tensors in DRAM, the defaults of the library (0); 1: what is always faster; 2: search "
        "for the best placement of tensors and the best distribution over the cores")  # fmt: skip
    add("--weights", choices=("bfp8_b", "bfp4_b"), help="store the weights of matmuls "
        "as block floats; --check shows the loss of accuracy")  # fmt: skip
    add("--activations", choices=("bfp8_b",), help="keep activations as block floats between "
        "calls that take them; --check shows the loss of accuracy")  # fmt: skip
    add("--f16", choices=("bfloat16", "float32"), help="what f16 of the source is on the device: "
        "bfloat16, or float32, which has all of its values (bfloat16)")  # fmt: skip
    add("--explain", action="store_true", help="print the decision for each call and the "
        "estimated cost of the next best alternative")  # fmt: skip
    add("--overrides", metavar="F.json", type=Path, help="decisions for the optimizer, by the "
        "names of the results of calls, at the level that they were written at")  # fmt: skip
    add("--write-overrides", metavar="F.json", type=Path, help="write the decisions of the "
        "optimizer to a file for --overrides")  # fmt: skip
    add("--validate", action="store_true", help="ask the Python package ttnn about all calls, on a "
        "device that it mocks, and search again around what it refuses")  # fmt: skip
    add("--python", metavar="P", needs=["--validate"], help="the Pythons that ttnn is installed "
        "in, one for each release (TTCODEGEN_TTNN_PYTHON)")  # fmt: skip
    add("--tt-lang", metavar="PROGRAM", action="append", default=[], help="a Python program with "
        "the TT-Lang operations that the module calls (ttir.tt_lang_op)")  # fmt: skip
    add("--trace", action="store_true", help="capture what the device does in a call, and replay "
        "it in later ones")  # fmt: skip
    add("--build", action="store_true", help="build the project for the CPU backend")
    add("--kind", choices=("so", "exe", "both", "runner", "sources"), help="what the "
        "project builds: a shared object with a C API, an executable, both (both), an executable "
        "that only runs what files hold, without random inputs and comparison (runner), or "
        "sources that your own program links against, with as few files as they need")  # fmt: skip
    add("--check", action="store_true", help="build and run the project on random inputs, and "
        "compare it with the flatbuffer and the source, both run in numpy; --check=edges: on "
        "inputs from the edges of what arguments may hold, too")  # fmt: skip
    add("--check-edges", action="store_true", help=argparse.SUPPRESS)
    add("--golden", metavar="DIR", type=Path, needs=["--check"], help="with --check: take the "
        "inputs from DIR/inputs, and compare with the results of a framework in DIR/outputs "
        "(MODEL.golden beside MODEL.mlir)")  # fmt: skip
    add("--seed", type=int, help="seed of the random inputs (0)")
    add("--embed-goldens", action="store_true", help="add to the flatbuffer results of each "
        "op of the source on random inputs")  # fmt: skip
    edited = parser.add_mutually_exclusive_group()
    edited.add_argument(
        "--force",
        action="store_true",
        help="write into a folder that ttcodegen did not create, or overwrite edits",
    )
    edited.add_argument("--keep-edits", choices=("merge", "fail"), default="merge",
        help="if files in OUT were edited: merge the edits into the new files or write "
        "nothing (merge)")  # fmt: skip
    add("--edits", metavar="OUT", type=Path, alone=["--write-overrides"], help="print the edits "
        "made in OUT since it was generated, as decisions by op and as a patch, and exit; with "
        "--write-overrides, write the decisions to a file as well")  # fmt: skip
    add("--tune", metavar="OUT", type=Path, needs=["--op"], alone=["--op"], help="ttcodegen tune "
        "OUT: try the alternatives of the op that --op names under the model of cost, and write "
        "the fastest into the C++ as an edit")  # fmt: skip
    add(
        "--op",
        metavar="NAME",
        needs=["--tune"],
        help="the op for --tune, by the name in --explain and --edits",
    )
    add("--no-format", action="store_true", help="do not format the C++")
    add("--dump-ir", metavar="DIR", type=Path, help="write the module after each pass")
    add("--time-passes", action="store_true", help="print the time of each stage")
    add("--cpu-backend-dir", action="store_true", alone=[], help="print the folder of the CPU "
        "backend, which is built first if necessary, and exit")  # fmt: skip
    add_message_options(parser)
    add("--completion", choices=SHELLS, alone=[], help="print a script that completes the options "
        "of all tools in a shell, and exit")  # fmt: skip
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program_with_code("ttcodegen", _run, argv)


def _with_edges(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """Splits `--check=edges`: an option with an optional value would consume the file that
    follows."""
    found: list[str] = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name != "--check" or "=" not in argument:
            found.append(argument)
        elif value == "edges":
            found += ["--check", "--check-edges"]
        else:
            parser.error(f"argument --check: expected edges or nothing, found '{value}'")
    return found


def _run(invocation: Invocation) -> int:
    if invocation.arguments[:1] == ["tune"] and not Path("tune").is_file():
        from ttcodegen.cli.tune import run_tune

        return run_tune(invocation.arguments[1:])
    parser = argument_parser()
    options = parser.parse_args(_with_edges(parser, invocation.arguments))
    apply_message_options(options)
    if options.completion is not None:
        from ttcodegen.cli.completion import completion_script

        print(completion_script(options.completion, parser), end="")
        return ExitStatus.DONE
    if options.cpu_backend_dir:
        return _print_cpu_backend()
    if options.edits is not None:
        return _print_edits(options.edits, options.write_overrides)
    if options.tune is not None:
        from ttcodegen.cli.tune import run_tune

        return run_tune([str(options.tune), "--op", options.op])
    if options.check:
        _touch_memory_in_small_pages()
    if options.name == "":
        parser.error("--name is empty")
    project = _project_options(options)
    if (message := project.contradiction(_spelled)) is not None:
        parser.error(message)
    if options.file is None or options.out is None:
        parser.error("FILE and -o OUT are needed")
    source = invocation.read(options.file)
    system = None
    if options.system_desc is not None or (options.arch and options.tt_lang):
        system = chosen_system(options)
    with callable_operations(options.tt_lang, system, all_are_used=True):
        return _compile(options, project, source)


def _project_options(options: argparse.Namespace) -> ProjectOptions:
    """Project options, as in the Python API."""
    from ttcodegen.project.settings import ProjectOptions

    return ProjectOptions(
        options.target,
        options.arch or "",
        options.system_desc,
        build=options.build,
        check="edges" if options.check_edges else options.check,
        force=options.force,
        optimize=options.optimize,
        weights=options.weights or "",
        activations=options.activations or "",
        overrides=options.overrides,
        write_overrides=options.write_overrides,
        validate=options.validate,
        python=options.python or "",
        trace=options.trace,
        mesh=options.mesh_shape,
        hosts=options.hosts,
        fabric=options.fabric,
        parallel=options.parallel or "",
        stages=options.stages or "",
        micro_batches=options.micro_batches,
        kind=options.kind,
        tt_metal=options.tt_metal,
        f16=options.f16 or "bfloat16",
        seed=options.seed,
        keep_edits=options.keep_edits,
        embed_goldens=options.embed_goldens,
        explain=options.explain,
        format=not options.no_format,
        dump_ir=options.dump_ir,
    )


def _spelled(name: str, value: object = None) -> str:
    """Spells a project option for the command line."""
    return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")


def _touch_memory_in_small_pages() -> None:
    """Disables huge pages for numpy, which is not imported yet.

    A check touches gigabytes of fresh memory, mostly once. The first touch of a huge page is
    expensive on virtual machines: 2.8 s of kernel time per gigabyte instead of 0.5 s, a third of a
    check's time.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")


def _print_cpu_backend() -> int:
    from ttcodegen.project.cpu_backend import ensure_cpu_backend
    from ttcodegen.project.toolchain import find_toolchain

    print(ensure_cpu_backend(find_toolchain()).folder)
    return ExitStatus.DONE


def _print_edits(out: Path, overrides: Path | None) -> int:
    from ttcodegen.project.edits import edits_patch, tuned_files
    from ttcodegen.project.tuning.override_entries import overrides_text, unexpressed
    from ttcodegen.project.tuning.report import report_lines

    patch = "".join(edits_patch(out))
    tuned = tuned_files(out)
    # Tools that apply a patch skip what is above it.
    lines = (printable(line).replace("\n", " ") for line in report_lines(tuned))
    said = "".join(f"# {line}\n" for line in lines)
    # In its own encoding: a patch has to have the bytes of the files.
    sys.stdout.buffer.write((said + patch).encode())
    if overrides is not None:
        overrides.write_text(overrides_text(tuned), encoding="utf-8")
        for each in unexpressed(tuned):
            said = f"{overrides} has no field for {each}: it is in {out} alone"
            print(f"note: {printable(said)}", file=sys.stderr)
    return ExitStatus.DONE


def _compile(options: argparse.Namespace, project: ProjectOptions, source: Source) -> int:
    from ttcodegen.emission.interface_description import name_of_file
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.project.staging import locked_project
    from ttcodegen.project.writer import refuse_unrelated_folder
    from ttcodegen.transforms.pass_runner import PassRunner

    if options.stages and options.kind is None:
        options.kind = project.project_kind
    # What cannot end well is refused before the work, and before anything is written.
    refuse_unrelated_folder(options.out, force=options.force, keep_edits=options.keep_edits)
    toolchain = None
    if options.build or options.check:
        from ttcodegen.project.building import refuse_path
        from ttcodegen.project.toolchain import find_toolchain

        refuse_path(options.out)
        toolchain = find_toolchain()
    runner = PassRunner(load_dialects(), dump=options.dump_ir, count_ops=options.time_passes)
    diagnostics = Diagnostics()
    name = options.name or name_of_file(options.file)
    if not options.force and options.name is None:
        from ttcodegen.project.manifest import project_name

        # The same model under another name: edits are of files that are named after the project.
        name = project_name(options.out, source.digest) or name
    try:
        compiled = project.compile(source, name, runner, diagnostics)
        tell_warnings(diagnostics, source)
        if options.check:
            from ttcodegen.project.running import refuse_too_large

            refuse_too_large(compiled)
        if options.explain:
            print(printable(compiled.explanation), end="")
        project.save_decisions(compiled.decisions)
        with locked_project(options.out):
            if _write(options, compiled, runner):
                return ExitStatus.CONFLICTS
            return _build_and_check(options, source, compiled, toolchain, runner)
    finally:
        if options.time_passes or is_reported(Level.DEBUG):
            runner.write_times(sys.stderr)


def _write(options: argparse.Namespace, compiled: CompiledModule, runner: PassRunner) -> bool:
    """Writes the project; returns whether edits conflict with it."""
    from ttcodegen.project.edits import edited_files
    from ttcodegen.project.sources import project_files
    from ttcodegen.project.writer import write_project

    edited = [] if options.force else edited_files(options.out)
    with runner.stage("render and format"):
        files = project_files(compiled, formatted=not options.no_format)
    with runner.stage("write project"):
        conflicts = write_project(
            compiled.description,
            options.out,
            files,
            force=options.force,
            keep_edits=options.keep_edits,
        )
    for conflict in conflicts:
        report(Level.ERROR, f"error: {options.out / conflict.path} {conflict.reason}")
    if conflicts:
        report(
            Level.ERROR,
            "note: the rest is merged; resolve the text between <<<<<<< and >>>>>>>, then build",
        )
    else:
        report(Level.INFO, _summary(options, compiled, len(files), edited))
    return bool(conflicts)


def _reference(
    options: argparse.Namespace, source: Source, compiled: CompiledModule
) -> dict[str, Reference] | None:
    """Reference outputs of a framework: in the given folder, else next to the module."""
    from ttcodegen.project.running import read_reference, reference_beside

    if options.golden is not None:
        return read_reference(options.golden, compiled.description)
    found = reference_beside(Path(source.name), source, compiled.description)
    if isinstance(found, str):
        report(Level.WARNING, f"warning: {found}")
        return None
    return found


def _summary(
    options: argparse.Namespace, compiled: CompiledModule, count: int, edited: Sequence[str]
) -> str:
    """One-line summary of the written files, the kept edits and the next step."""
    name, out = compiled.description.name, shlex.quote(str(options.out))
    kept = f", with your edits of {', '.join(edited)}" if edited else ""
    line = f"ttcodegen: wrote {count} files of the project '{name}' to {options.out}{kept}"
    if options.build or options.check:
        return line
    if compiled.description.has_flatbuffer and options.kind in (None, "both", "so"):
        return f"{line}; next: ttcodegen-rt run {out}"
    return f"{line}; next: see {out}/README.md"


def _built(out: Path, built: BuiltProject) -> str:
    """One-line summary of a build and the next step; empty if nothing was linked."""
    from ttcodegen.project.building import BUILD_FOLDER

    files = [
        out / BUILD_FOLDER / each.name
        for each in (built.executable, built.library)
        if each is not None
    ]
    if not files:
        return ""
    line = f"ttcodegen: built {' and '.join(map(str, files))}"
    if built.executable is None:
        return f"{line}; next: ttcodegen.load({str(out)!r}) in Python"
    return f"{line}; next: {shlex.quote(str(files[0]))} --help"


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

        name = compiled.description.name
        with runner.stage("build"):
            built = build_project(options.out, name, toolchain, options.kind or "both")
        if line := _built(options.out, built):
            report(Level.INFO, line)
        return ExitStatus.DONE
    from ttcodegen.project.check_summary import check_summary, output_lines
    from ttcodegen.project.checking import check_project

    reference = _reference(options, source, compiled)
    kind = options.kind or ("both" if options.build else "exe")
    with runner.stage("build and check"):
        checks = check_project(
            source,
            compiled,
            options.out,
            toolchain,
            kind=kind,
            seed=options.seed or 0,
            reference=reference,
            edges=options.check_edges,
        )
    for reason in (reason for check in checks for reason in check.reasons):
        report(Level.ERROR, f"error: {reason}")
    for line in output_lines(checks):
        report(Level.INFO, line)
    report(Level.INFO, check_summary(checks, options.out))
    if not all(check.passed for check in checks):
        return ExitStatus.MISMATCH
    return ExitStatus.DONE


if __name__ == "__main__":
    sys.exit(main())
