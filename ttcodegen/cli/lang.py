"""`ttcodegen-lang`: runs programs of TT-Lang."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import inf
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
)
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program, tell_warnings
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import Level, report
from ttcodegen.lang.projects.supervision import SECONDS, limit_seconds, supervise
from ttcodegen.lang.simulator.spelling import overview

if TYPE_CHECKING:
    from ttcodegen.lang.projects.projects import Projects

_EPILOG = """\
examples:
  ttcodegen-lang program.py               run a program, its operations in the simulator
  ttcodegen-lang program.py -- 3 4        what follows -- is for the program
  ttcodegen-lang program.py -o out        ... and write a C++ project for each operation
  ttcodegen-lang program.py --check       ... build them, run them on the emulated device, compare
  ttcodegen-lang program.py --machine p150 --check    ... on another card

exit status: 0 done; 1 the program is wrong, or raised an error; 2 wrong usage; 3 the C++ did not
build; 4 an output differs; 70 a bug in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog="ttcodegen-lang",
        description="Runs a Python program that imports ttl (TT-Lang) and ttnn.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="PROGRAM", nargs="?", help="the program")
    add("--spec", action="store_true", alone=[], help="print the versions of the "
        "specification, and what of them the simulator and the compiler take")  # fmt: skip
    add("-o", dest="out", metavar="OUT", type=Path, help="the folder to write the projects to, one "
        "for each operation that the program calls")  # fmt: skip
    add("--build", action="store_true", needs=["-o"], help="with -o: build the projects "
        "for the CPU backend, a shared object and an executable each")  # fmt: skip
    add("--mlir", action="store_true", needs=["-o"], help="with -o: write each operation "
        "as a module of TTKernel and TTMetal into its project, too, and, where all "
        "nodes do the same, as one of ttir.generic")  # fmt: skip
    add("--check", action="store_true", help="compile each operation, run it on the emulated "
        "device and compare it with the simulator")  # fmt: skip
    add("--simulator", metavar="LIB", type=Path, needs=["--check"], help="with --check: run them "
        "on the vendor's simulator (a .so), built with the tt-metal in TT_METAL_HOME")  # fmt: skip
    add("--num-devices", metavar="N", type=int, default=4, help="the number of "
        "devices that ttnn.GetNumAvailableDevices returns (4)")  # fmt: skip
    add("--seconds", metavar="N", type=float, default=SECONDS, help="end the program after "
        f"N seconds, 0 never ({SECONDS:g})")  # fmt: skip
    add(
        "--force",
        action="store_true",
        needs=["-o"],
        help="write into folders that ttcodegen did not create, or overwrite edits",
    )
    add_system_options(parser)
    add_release_option(parser)
    add_message_options(parser)
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line in a supervised process; returns the exit status."""
    if argv is not None:
        return run_program("ttcodegen-lang", _run, argv)
    report_status = supervise(remedy="--seconds N gives it another limit, 0 none")
    return report_status(run_program("ttcodegen-lang", _run, None))


def _run(invocation: Invocation) -> int:
    given = invocation.arguments
    end = given.index("--") if "--" in given else len(given)
    parser = argument_parser()
    options = parser.parse_args(given[:end])
    if options.spec:
        print(overview())
        return ExitStatus.DONE
    if options.file is None:
        parser.error("the following arguments are required: PROGRAM")
    if options.num_devices < 1:
        parser.error("--num-devices is a number of 1 or more")
    if not 0 <= options.seconds < inf:
        parser.error("--seconds is a number of 0 or more")
    limit_seconds(options.seconds)
    arguments = given[end + 1 :]
    apply_message_options(options)
    source = invocation.read(options.file, (".py",))
    system = chosen_system(options)
    from ttcodegen.lang.projects.programs import run_program_text
    from ttcodegen.lang.ttnn import set_num_devices

    set_num_devices(options.num_devices)
    if options.simulator is not None and not options.simulator.is_file():
        raise CompileError(f"there is no simulator '{options.simulator}'")
    if options.out is None and not options.check:
        run_program_text(source, arguments, system=system)
        return ExitStatus.DONE
    from ttcodegen.lang.projects.projects import Projects

    projects = Projects(
        source.digest,
        options.out,
        options.check,
        options.force,
        options.build,
        options.mlir,
        options.tt_metal,
        options.simulator,
    )
    ending: SystemExit | None = None
    try:
        run_program_text(source, arguments, projects.watch, system=system)
    except SystemExit as leave:
        ending = leave
    finally:
        tell_warnings(projects.diagnostics, source)
    status = _report(projects)
    if not projects.written:
        does = "written or checked" if options.out and options.check else "written"
        if options.check and not options.out:
            does = "checked"
        report(Level.WARNING, f"warning: nothing was {does}: the program called no operation")
    elif options.check and not projects.comparisons:
        report(Level.WARNING, "warning: nothing was checked: no operation was called that writes")
    if ending is not None and status == ExitStatus.DONE:
        raise ending
    return status


def _report(projects: Projects) -> int:
    """Reports the comparisons; returns the exit status."""
    failed = False
    for note in projects.notes:
        report(Level.INFO, f"  {note}")
    for each in projects.comparisons:
        found = each.agreement
        where = f"  {each.operation}, {each.output}: "
        failed = failed or not found.passed
        if not found.passed:
            report(Level.ERROR, f"error: {each.operation}, {each.output}: {found.reason}")
        value = "" if found.value is None else f"{found.measure} {found.value:.6g}, "
        report(Level.INFO, f"{where}{value}largest error {found.max_abs_err:.3g}")
    return ExitStatus.MISMATCH if failed else ExitStatus.DONE
