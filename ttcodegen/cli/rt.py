"""`ttcodegen-rt`: reads, runs, measures and checks flatbuffers and built shared objects."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from ttcodegen.cli.arguments import ArgumentParser, add_version_option
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program_with_code
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.arguments import COMMANDS, DESCRIPTIONS, Argument, resolved

PROGRAM = "ttcodegen-rt"

_EXAMPLES = {
    "": ("run out", "read model.ttnn --section cpp", "perf model.ttnn"),
    "read": ("read model.ttnn", "read out/model.ttnn --section system_desc"),
    "run": (
        "run out                           build a project, run it, compare it with its flatbuffer",
        "run model.ttnn --loops 10",
        "run model.ttnn --inputs values    with values/NAME.npy for inputs and weights",
    ),
    "perf": ("perf model.ttnn", "perf out/build/libmodel.so --loops 20"),
    "compare": (
        "compare before after              two projects",
        "compare out/build/libmodel.so out/model.ttnn",
    ),
    "check": ("check model.ttnn --machine p150", "check model.ttnn --system-desc card.ttsys"),
    "validate": (
        "validate model.ttnn --python ttnn-env/bin/python",
        "validate first/ second/ third/ --python ttnn-env/bin/python",
    ),
    "query": ("query --output cpu.ttsys", "query --machine p100 --output p100.ttsys"),
}
_EPILOG = """\
exit status: 0 all passed; 1 a file or an argument is wrong; 2 wrong usage; 4 a comparison or a
check failed; 70 a bug in ttcodegen
"""


def argument_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = ArgumentParser(
        prog=PROGRAM,
        description="Reads, runs, measures and checks flatbuffers and built shared objects.",
        epilog=_epilog(""),
    )
    add_version_option(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, arguments in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=DESCRIPTIONS[name],
            description=DESCRIPTIONS[name],
            epilog=_epilog(name),
        )
        for argument in arguments:
            _add(command, argument)
    return parser


def _epilog(command: str) -> str:
    examples = "".join(f"  {PROGRAM} {example}\n" for example in _EXAMPLES.get(command, ()))
    return f"examples:\n{examples}\n{_EPILOG}" if examples else _EPILOG


def _add(parser: argparse.ArgumentParser, argument: Argument) -> None:
    help_ = argparse.SUPPRESS if argument.refusal is not None else argument.help.replace("%", "%%")
    settings: dict[str, Any] = {"help": help_}
    if argument.kind == "flag":
        settings |= {"action": "store_true", "default": None}
    else:
        settings["metavar"] = {"path": "PATH", "text": "TEXT"}.get(argument.kind, "N")
    if argument.name.startswith("--"):
        settings["dest"] = argument.key
    elif argument.default is not None:
        settings["nargs"] = "*" if argument.is_list else "?"
        settings["default"] = None
    short = ["-q"] if argument.name == "--quiet" else []
    parser.add_argument(*short, argument.name, **settings)
    if argument.name == "--log-level":
        parser.add_argument(
            *("-v", "--verbose"),
            action="store_const",
            const="debug",
            dest=argument.key,
            help="write all messages, like --log-level debug",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program_with_code(PROGRAM, _run, argv)


def _run(invocation: Invocation) -> int:
    from ttcodegen.rt import API

    options = vars(argument_parser().parse_args(invocation.arguments))
    name: str = options["command"]
    given = {a.name: value for a in COMMANDS[name] if (value := options[a.key]) is not None}
    try:
        resolved(name, given)
    except CompileError as error:
        print(error.render(), file=sys.stderr)
        return ExitStatus.USAGE
    status, _ = getattr(API, name.capitalize())(args=given)()
    return status


if __name__ == "__main__":
    sys.exit(main())
