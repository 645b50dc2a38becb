"""`ttcodegen-lang`: runs programs of TT-Lang."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ttcodegen.cli.arguments import (
    ArgumentParser,
    add_message_options,
    add_version_option,
    apply_message_options,
)
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program

_EPILOG = """\
examples:
  ttcodegen-lang program.py          run a program, its operations in the simulator

exit status: 0 done; 1 the program is wrong, or raised an error; 2 wrong usage; 70 a bug in
ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog="ttcodegen-lang",
        description="Runs a Python program that imports ttl (TT-Lang) and ttnn.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="PROGRAM", help="the program")
    add("arguments", nargs="*", metavar="ARGUMENT", help="what the program finds in sys.argv")
    add_message_options(parser)
    add_version_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program("ttcodegen-lang", _run, argv)


def _run(invocation: Invocation) -> int:
    options = argument_parser().parse_args(invocation.arguments)
    apply_message_options(options)
    source = invocation.read(options.file)
    from ttcodegen.lang.programs import run_program_text

    run_program_text(source, options.arguments)
    return ExitStatus.DONE
