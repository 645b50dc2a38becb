"""`ttcodegen-opt`: runs passes on a module and prints the result."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ttcodegen.cli.arguments import version_text
from ttcodegen.cli.entry import ExitStatus, Invocation, run_program_with_code
from ttcodegen.foundation.messages import Level, report, set_level
from ttcodegen.lang.projects.called_operations import callable_operations
from ttcodegen.opt.command_line import help_text, parse_command_line
from ttcodegen.transforms.registry import OptionError, entries

PROGRAM = "ttcodegen-opt"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    return run_program_with_code(PROGRAM, _command, argv)


def _command(invocation: Invocation) -> int:
    try:
        request = parse_command_line(invocation.arguments)
        set_level(Level[request.log_level])
        if request.help:
            sys.stdout.write(help_text(PROGRAM))
        elif request.version:
            print(version_text(PROGRAM))
        elif request.list_passes:
            print("\n".join(sorted(entry.name for entry in entries())))
        elif request.show_dialects:
            _show_dialects()
        else:
            from ttcodegen.opt.driver import run_request

            with callable_operations(request.tt_lang, request.system):
                succeeded = run_request(request, invocation.read(request.file))
            return ExitStatus.DONE if succeeded else ExitStatus.WRONG_INPUT
    except OptionError as error:
        report(Level.ERROR, error.render())
        return ExitStatus.USAGE
    return ExitStatus.DONE


def _show_dialects() -> None:
    from ttcodegen.ops.dialects import load_dialects

    context = load_dialects()
    names = sorted({*context.registered_dialect_names, *(d.name for d in context.loaded_dialects)})
    print(f"Available Dialects: {', '.join(names)}")


if __name__ == "__main__":
    sys.exit(main())
