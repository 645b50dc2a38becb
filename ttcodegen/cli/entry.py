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
_PICKLED = f"load it with torch.load or torch.jit.load, and {_TORCH}"
_WEIGHTS = f"it holds weights and no program; load them into their module and {_TORCH}"

_RUN = (
    "run it with ttcodegen-rt run; ttcodegen-translate --flatbuffer-to-mlir makes a module of TTNN "
    "of a .ttnn file"
)

_FORMATS = {
    ".pt": ("a file of PyTorch", _PICKLED),
    ".pth": ("a file of PyTorch", _PICKLED),
    ".ckpt": ("a checkpoint", _WEIGHTS),
    ".safetensors": ("a file of weights (safetensors)", _WEIGHTS),
    ".gguf": ("a file of weights (GGUF)", _WEIGHTS),
    ".bin": ("a file of weights, by its name", _WEIGHTS),
    ".npy": ("an array of numpy", "give it with --golden DIR, as DIR/inputs/NAME.npy"),
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
    ".zip": ("an archive", "unpack it, and give a module of it"),
    ".json": ("a file of JSON", "give decisions for the optimizer with --overrides"),
    ".ipynb": ("a notebook", f"compile the model in a cell of it: {_TORCH}"),
    ".py": (
        "a Python program",
        "compile a TT-Lang program with ttcodegen-lang, and a model in Python itself, with "
        "ttcodegen.torch.compile or ttcodegen.jax.compile",
    ),
}


def other_format(path: str) -> tuple[str, str] | None:
    """File format by the name's ending, with a remedy; None for files that are read as MLIR."""
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
    """SIGTERM, as sent by `kill`, `timeout` and supervisors; handled like an interrupt."""


class Invocation:
    """Run of a program: its arguments, and its source once read."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self.program = program
        self.arguments = list(arguments)
        self.source: Source | None = None
        """Source for messages and bug reports."""

    def read(self, path: str, accepted: tuple[str, ...] = ()) -> Source:
        """Reads the input; `-` is standard input.

        Args:
            path: the file.
            accepted: additional file endings that the program reads.

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
    """Runs `command`; converts exceptions to a message and an exit status.

    Args:
        program: the name of the program, for messages.
        command: does the work and returns the exit status.
        argv: the arguments; by default the process's.
    """
    set_level(Level.INFO)
    if argv is None:
        # Short runs keep nearly all objects, so that garbage collection only costs time.
        gc.disable()
        # Keep a SIGTERM that the caller ignores ignored.
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
    _replace_closed_streams()
    try:
        status = _run(Invocation(program, sys.argv[1:] if argv is None else argv), command)
        sys.stdout.flush()
        if argv is None:
            # Likewise the collections at the interpreter's exit.
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
    """Runs `command` as `run_program`; with TT-Lang programs, in a supervised process."""
    if argv is not None or not any(each.startswith("--tt-lang") for each in sys.argv[1:]):
        return run_program(program, command, argv)
    from ttcodegen.lang.projects.supervision import supervise

    # No time limit here, as builds may take any time; user code has its own.
    report_status = supervise(seconds=0)
    return report_status(run_program(program, command, None))


def _terminate(number: int, frame: object) -> None:
    # `timeout` sends it to the process and then to its group: the second one is the same request.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _end_at_once(status: int) -> None:
    """Makes further interrupts end the process, which would otherwise raise at the interpreter's
    exit."""

    def end(number: int, frame: object) -> None:
        os._exit(status)

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)


def _end_children() -> None:
    """Terminates child processes, such as a build of another thread.

    A terminal's interrupt reaches all processes, a signal to this process does not.
    """
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
    """Replacement of a closed standard output, which fails only if written to."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _replace_closed_streams() -> None:
    """Replaces streams that were closed at start, for which Python has no objects."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = Path(os.devnull).open("w")


def _give_up_stdout() -> None:
    """Redirects standard output to /dev/null, so that Python's final flush succeeds."""
    if not isinstance(sys.stdout, _ClosedOutput):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failure(error: OSError) -> str:
    """Message for a system error; without a file, it is of standard output."""
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
"""Errors of the system that may affect any file and are no fault of the program."""


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
    """Writes the warnings of a stage."""
    if is_reported(Level.WARNING):
        diagnostics.write(sys.stderr, source)


def _status_of(error: CompileError) -> ExitStatus:
    from ttcodegen.project.toolchain import BuildError

    return ExitStatus.BUILD_FAILED if isinstance(error, BuildError) else ExitStatus.WRONG_INPUT


def _bug_report(error: Exception, invocation: Invocation) -> str:
    """Writes a reproducer of an internal error to a folder; returns the message for the user."""
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
