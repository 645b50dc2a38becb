"""`ttcodegen-translate`: modules to C++ and flatbuffers, and back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.cli.arguments import (
    ArgumentParser,
    add_message_options,
    add_system_options,
    add_version_option,
    apply_message_options,
    chosen_system,
)
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program
from ttcodegen.translation import TRANSLATIONS

PROGRAM = "ttcodegen-translate"

_EPILOG = """\
examples:
  ttcodegen-translate --ttnn-to-flatbuffer model.mlir -o model.ttnn
  ttcodegen-translate --mlir-to-cpp emitc.mlir -o model.cpp

exit status: 0 done; 1 the input is wrong or the output cannot be written; 2 wrong usage; 70 a bug
in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog=PROGRAM,
        description="Translates a module to C++ or a flatbuffer, or a flatbuffer to a module.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the input; - reads stdin (default)"
    )
    parser.add_argument(
        "-o",
        dest="out",
        default="-",
        metavar="OUT",
        help="the output: a file, or a folder that gets one file for each that is made; - writes "
        "all of it to stdout (default)",
    )
    chosen = parser.add_mutually_exclusive_group()
    for translation in TRANSLATIONS:
        chosen.add_argument(
            f"-{translation.name}",
            f"--{translation.name}",
            dest="translation",
            action="store_const",
            const=translation,
            help=translation.description,
        )
    parser.add_argument(
        "-allow-unregistered-dialect",
        "--allow-unregistered-dialect",
        action="store_true",
        help="accepted: operations of other dialects are read in any case, and refused by name "
        "where they have no C++",
    )
    parser.add_argument(
        "--goldens",
        metavar="DIR",
        type=Path,
        needs=["--ttnn-to-flatbuffer"],
        help="with --ttnn-to-flatbuffer: golden values for the file, in DIR/KEY.npy; KEY is the "
        "name of an input or output, input_N, output_N, or the location of an op",
    )
    add_system_options(parser)
    add_message_options(parser)
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program(PROGRAM, _run, argv)


def _run(invocation: Invocation) -> int:
    from ttcodegen.foundation.diagnostics import read_input
    from ttcodegen.translation import for_system, write_output

    parser = argument_parser()
    options = parser.parse_args(invocation.arguments)
    apply_message_options(options)
    if options.translation is None:
        names = ", ".join(f"--{translation.name}" for translation in TRANSLATIONS)
        parser.error(f"one of these is needed: {names}")
    if not options.translation.reads_text and (options.arch or options.system_desc):
        parser.error(f"--{options.translation.name} reads a file that says what it is for")
    system = chosen_system(options)
    if options.translation.reads_text:
        content = invocation.read(options.file)
    else:
        content = read_input(options.file)
    with for_system(system):
        translated = options.translation.translate(content)
    if options.goldens is not None:
        from ttcodegen.translation import with_golden_map

        translated = with_golden_map(translated, options.goldens)
    write_output(translated, options.out)
    return ExitStatus.DONE


if __name__ == "__main__":
    sys.exit(main())
