"""Start, failure and exit of the command line programs, and refusal of files that are no MLIR."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path, PurePath

from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Source
from ttcodegen.foundation.messages import Level, is_reported, report, set_level
from ttcodegen.version import __version__

_TORCH = "compile the module in Python: ttcodegen.torch.compile(module, example, out=...)"
_WEIGHTS = f"it holds weights and no program; load them into their module and {_TORCH}"

_RUN = (
    "run it with ttcodegen-rt run; ttcodegen-translate --flatbuffer-to-mlir makes a module of TTNN "
    "of a .ttnn file"
)

_FORMATS = {
    ".pt": ("a file of PyTorch", _WEIGHTS),
    ".pth": ("a file of PyTorch", _WEIGHTS),
    ".ckpt": ("a checkpoint", _WEIGHTS),
    ".safetensors": ("a file of weights (safetensors)", _WEIGHTS),
    ".gguf": ("a file of weights (GGUF)", _WEIGHTS),
    ".bin": ("a file of weights, by its name", _WEIGHTS),
    ".npz": ("a file of arrays of numpy", _WEIGHTS),
    ".pkl": ("a file of Python's pickle", _WEIGHTS),
    ".ttnn": ("a flatbuffer, which is compiled already", _RUN),
    ".ttm": ("a flatbuffer, which is compiled already", _RUN),
    ".so": ("a shared object, which is compiled already", _RUN),
    ".ttsys": ("the description of a system", "give it as --system-desc, and a model as FILE"),
    ".pt2": (
        "a program of torch.export",
        "compile it in Python: ttcodegen.torch.compile(torch.export.load(file), example, out=...)",
    ),
    ".onnx": (
        "a model of ONNX, which is not read",
        f"{_TORCH}, or bring it to StableHLO or linalg as MLIR, with iree-import-onnx for instance",
    ),
    ".tflite": (
        "a model of TensorFlow Lite, which is not read",
        "bring it to TOSA as MLIR: flatbuffer_translate --tflite-flatbuffer-to-mlir, then "
        "tf-opt --tfl-to-tosa-pipeline",
    ),
    ".h5": ("a model of Keras, which is not read", "export it as StableHLO with jax"),
    ".keras": ("a model of Keras, which is not read", "export it as StableHLO with jax"),
    ".pb": ("a graph of TensorFlow, which is not read", "bring it to StableHLO or TOSA as MLIR"),
    ".py": (
        "a Python program",
        "compile a TT-Lang program with ttcodegen-lang, and a model in Python itself, with "
        "ttcodegen.torch.compile or ttcodegen.jax.compile",
    ),
}


def other_format(path: str) -> tuple[str, str] | None:
    """The format that the name of a file says, and what to do with it; None for all else, which
    is read as MLIR."""
    return _FORMATS.get(PurePath(path).suffix.lower())


class ExitStatus(IntEnum):
    """Exit status of a program."""

    DONE = 0
    WRONG_INPUT = 1
    USAGE = 2
    BUILD_FAILED = 3
    MISMATCH = 4
    CONFLICTS = 5
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM, as `kill`, `timeout` and supervisors send it: handled as an interrupt is."""


class Invocation:
    """One run of a program: its arguments, and the text that it reads once it has read it."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self.program = program
        self.arguments = list(arguments)
        self.source: Source | None = None
        """The source that messages point into and that a bug report holds."""

    def read(self, path: str, accepted: tuple[str, ...] = ()) -> Source:
        """Reads the input; `-` is standard input.

        Args:
            path: the file.
            accepted: endings of files beside MLIR that the program is made for.

        Raises:
            CompileError: if it cannot be read, is no text, or by its name no MLIR.
        """
        if not path.endswith(accepted) and (other := other_format(path)) is not None:
            what, remedy = other
            raise CompileError(f"'{path}' is {what}: MLIR is compiled", remedy=remedy)
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
    set_level(Level.INFO)
    if argv is None:
        # A short run that keeps nearly everything it makes: collecting would find nothing.
        gc.disable()
        # One that the caller has set to be ignored stays ignored.
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
    _replace_closed_streams()
    try:
        status = _run(Invocation(program, sys.argv[1:] if argv is None else argv), command)
        sys.stdout.flush()
        if argv is None:
            # Nor would the collections with which the interpreter ends.
            gc.freeze()
        return status
    except BrokenPipeError:
        _give_up_stdout()
        return ExitStatus.BROKEN_PIPE
    except OSError as error:
        # What was written last did not find a place when it was flushed.
        _give_up_stdout()
        report(Level.ERROR, f"error: cannot write the standard output: {error.strerror or error}")
        return ExitStatus.WRONG_INPUT
    except KeyboardInterrupt as interrupt:
        is_terminated = isinstance(interrupt, Terminated)
        report(Level.ERROR, f"{program}: {'terminated' if is_terminated else 'interrupted'}")
        status = ExitStatus.TERMINATED if is_terminated else ExitStatus.INTERRUPTED
        if argv is None:
            _end_children()
            _end_at_once(status)
        return status


def run_program_with_code(
    program: str, command: Callable[[Invocation], int], argv: Sequence[str] | None
) -> int:
    """Runs `command` as `run_program` does; as a command that is given programs of TT-Lang, in a
    process that another one watches."""
    if argv is not None or not any(each.startswith("--tt-lang") for each in sys.argv[1:]):
        return run_program(program, command, argv)
    from ttcodegen.lang.projects.supervision import supervise

    # Only what runs the user's code has a limit of time: a build may take any.
    report_status = supervise(seconds=0)
    return report_status(run_program(program, command, None))


def _terminate(number: int, frame: object) -> None:
    # `timeout` sends it to the process and then to its group: the second one is the same request.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _end_at_once(status: int) -> None:
    """Has a further interrupt end the process: it would raise where the interpreter waits for
    threads, of which nobody catches it."""

    def end(number: int, frame: object) -> None:
        os._exit(status)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


def _end_children() -> None:
    """Ends what was started and runs on, such as a build that another thread waits for: an
    interrupt reaches all of a terminal's programs, one that is sent to a process that one alone."""
    found = "".join(_text(file) for file in Path("/proc/self/task").glob("*/children"))
    for child in map(int, found.split()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGTERM)


def _text(file: Path) -> str:
    try:
        return file.read_text() + " "
    except OSError:
        return ""


class _ClosedOutput(io.TextIOBase):
    """Replaces a standard output that the caller closed: an error only if something is to be
    written there."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _replace_closed_streams() -> None:
    """Python has no objects for streams that are closed when it starts."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = Path(os.devnull).open("w")


def _give_up_stdout() -> None:
    """Nobody takes what is left. Python would complain when it flushes at the end: give it another
    place."""
    if not isinstance(sys.stdout, _ClosedOutput):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failure(error: OSError) -> str:
    """The failure that the system reported; one without a file is of standard output."""
    if error.filename is not None:
        return f"cannot write '{error.filename}': {error.strerror}"
    if error.errno in _FAILURES_OF_MEMORY:
        return str(error.strerror)
    _give_up_stdout()
    return f"cannot write the standard output: {error.strerror}"


_FAILURES_OF_MEMORY = frozenset([errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
_FAILURES_OF_THE_SYSTEM = _FAILURES_OF_MEMORY | frozenset(
    [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF]
)
"""Failures that may happen to any file at any time and are no fault of the program."""


def _run(invocation: Invocation, command: Callable[[Invocation], int]) -> int:
    try:
        return command(invocation)
    except SystemExit as leave:
        # argparse leaves this way, having said what is wrong with the usage, and programs that are
        # run here may: Python prints what is no number.
        if leave.code is None or isinstance(leave.code, int):
            return int(leave.code or 0)
        report(Level.ERROR, str(leave.code))
        return ExitStatus.WRONG_INPUT
    except CompileError as error:
        report(Level.ERROR, error.render(invocation.source))
        return _status_of(error)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except MemoryError:
        report(Level.ERROR, "error: it needs more memory than there is")
        return ExitStatus.WRONG_INPUT
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FAILURES_OF_THE_SYSTEM:
            report(Level.ERROR, f"error: {_failure(error)}")
            return ExitStatus.WRONG_INPUT
        report(Level.CRITICAL, _bug_report(error, invocation))
        return ExitStatus.BUG


def tell_warnings(diagnostics: Diagnostics, source: Source) -> None:
    """Writes what a stage had to say and did not fail for."""
    if is_reported(Level.WARNING):
        diagnostics.write(sys.stderr, source)


def _status_of(error: CompileError) -> ExitStatus:
    from ttcodegen.project.toolchain import BuildError

    return ExitStatus.BUILD_FAILED if isinstance(error, BuildError) else ExitStatus.WRONG_INPUT


def _bug_report(error: Exception, invocation: Invocation) -> str:
    """Puts what reproduces an internal error into a folder; the message for the user."""
    import platform
    import shlex
    import tempfile
    import traceback

    program = invocation.program
    message = f"{program}: internal error: {type(error).__name__}: {error}".splitlines()[0]
    trace = "".join(traceback.format_exception(error))
    try:
        folder = Path(tempfile.mkdtemp(prefix="ttcodegen-bug-"))
        if invocation.source is not None:
            source = invocation.source
            suffix = "mlirbc" if source.data else "mlir"
            folder.joinpath(f"input.{suffix}").write_bytes(source.data or source.text.encode())
        command = shlex.join([program, *invocation.arguments])
        folder.joinpath("command.txt").write_text(command + "\n")
        folder.joinpath("traceback.txt").write_text(trace, "utf-8")
        system = f"{platform.platform()}, Python {platform.python_version()}"
        folder.joinpath("version.txt").write_text(f"ttcodegen {__version__}\n{system}\n")
    except OSError as failure:
        return f"{message}\nnote: what reproduces it could not be written: {failure}\n{trace}"
    return f"{message}\nnote: this is a bug in ttcodegen; what reproduces it is in {folder}"
