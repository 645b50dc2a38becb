"""What the programs of the command line have in common: how they start, fail and end."""

from __future__ import annotations

import gc
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from ttcodegen import __version__
from ttcodegen.diagnostics import CompileError, Source


class ExitStatus(IntEnum):
    """What a program ends with."""

    DONE = 0
    WRONG_INPUT = 1
    USAGE = 2
    BUILD_FAILED = 3
    MISMATCH = 4
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class Invocation:
    """One run of a program: its arguments, and the text that it reads once it has read it."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self.program = program
        self.arguments = list(arguments)
        self.source: Source | None = None
        """What messages point into, and what a report of a bug holds."""

    def read(self, path: str) -> Source:
        """Reads the input; `-` is standard input.

        Raises:
            CompileError: if it cannot be read or is no text.
        """
        self.source = Source.read(path)
        return self.source


def run_program(
    program: str, command: Callable[[Invocation], int], argv: Sequence[str] | None
) -> int:
    """Runs `command`, and makes a message and an exit status of whatever it raises.

    Args:
        program: the name of the program, for messages.
        command: does the work and returns the exit status.
        argv: the arguments; those of the process if None.
    """
    if argv is None:
        # A short run that keeps nearly everything it makes: collecting would find nothing.
        gc.disable()
    try:
        status = _run(Invocation(program, sys.argv[1:] if argv is None else argv), command)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Nobody reads on. Python would complain when it flushes at the end: give it another place.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return ExitStatus.BROKEN_PIPE
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


def _run(invocation: Invocation, command: Callable[[Invocation], int]) -> int:
    try:
        return command(invocation)
    except SystemExit as leave:
        # argparse leaves this way, having said what is wrong with the usage.
        return int(leave.code or 0)
    except CompileError as error:
        print(error.render(invocation.source), file=sys.stderr)
        return _status_of(error)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        print(_bug_report(error, invocation), file=sys.stderr)
        return ExitStatus.BUG


def _status_of(error: CompileError) -> ExitStatus:
    from ttcodegen.project.toolchain import BuildError

    return ExitStatus.BUILD_FAILED if isinstance(error, BuildError) else ExitStatus.WRONG_INPUT


def _bug_report(error: Exception, invocation: Invocation) -> str:
    """Puts what reproduces an internal error into a folder; the message for the user."""
    import platform

    program = invocation.program
    message = f"{program}: internal error: {type(error).__name__}: {error}".splitlines()[0]
    told = "".join(traceback.format_exception(error))
    try:
        folder = Path(tempfile.mkdtemp(prefix="ttcodegen-bug-"))
        if invocation.source is not None:
            folder.joinpath("input.mlir").write_text(invocation.source.text, "utf-8")
        command = shlex.join([program, *invocation.arguments])
        folder.joinpath("command.txt").write_text(command + "\n")
        folder.joinpath("traceback.txt").write_text(told, "utf-8")
        system = f"{platform.platform()}, Python {platform.python_version()}"
        folder.joinpath("version.txt").write_text(f"ttcodegen {__version__}\n{system}\n")
    except OSError as failure:
        return f"{message}\nnote: what reproduces it could not be written: {failure}\n{told}"
    return f"{message}\nnote: this is a bug in ttcodegen; what reproduces it is in {folder}"
