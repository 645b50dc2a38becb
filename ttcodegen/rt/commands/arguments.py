"""Table of the sub-commands' arguments, for the command line and for Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest, did_you_mean
from ttcodegen.systems.description import ARCHITECTURES

Kind = Literal["flag", "integer", "number", "text", "path"]

# Names of kinds of values and of sections, here and not where they are defined: --help must not
# import what computes them. Tests compare both.
INIT_KINDS = ("arange", "ones", "rand", "randn", "scaled", "zeros")
SECTIONS = ("all", "version", "system_desc", "mlir", "cpp", "inputs", "outputs")
LOG_LEVELS = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")


@dataclass(frozen=True)
class Argument:
    """Argument; positional on the command line unless its name begins with `--`."""

    name: str
    kind: Kind
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    refusal: str | None = None
    """Reason to refuse an argument that other tools accept."""
    is_list: bool = False
    """True if it takes several values; from Python a list, or one value."""

    @property
    def key(self) -> str:
        """Name without leading dashes, with underscores."""
        return self.name.lstrip("-").replace("-", "_")

    def checked(self, value: Any) -> Any:
        """Converts a value to the argument's type.

        Raises:
            CompileError: if it is not valid.
        """
        if self.refusal is not None and value not in (None, False):
            raise CompileError(f"{self.name} is not possible here: {self.refusal}")
        if value is None or self.refusal is not None:
            return self.default
        if self.is_list:
            values = cast(Sequence[Any], value) if isinstance(value, list | tuple) else [value]
            return [self._converted(each) for each in values] or self.default
        converted = self._converted(value)
        if self.choices:
            spellings = {choice.lower(): choice for choice in self.choices}
            if (spelled := spellings.get(str(converted).lower())) is not None:
                return spelled
            known = ", ".join(self.choices)
            raise CompileError(
                f"{self.name} is '{value}', which is none of {known}"
                f"{did_you_mean(str(value), self.choices)}"
            )
        if self.minimum is not None and not converted >= self.minimum:
            raise CompileError(f"{self.name} is {value}, the minimum is {self.minimum:g}")
        if self.maximum is not None and converted > self.maximum:
            raise CompileError(f"{self.name} is {value}, the maximum is {self.maximum:g}")
        return converted

    def _converted(self, value: Any) -> Any:
        try:
            match self.kind:
                case "flag" if isinstance(value, bool):
                    return value
                case "integer" if not isinstance(value, bool | float):
                    return int(value)
                case "number" if not isinstance(value, bool):
                    return float(value)
                case "text" if isinstance(value, str | int) and not isinstance(value, bool):
                    return str(value)
                case "path" if isinstance(value, str | Path):
                    return Path(value)
                case _:
                    pass
        except ValueError:
            pass
        expected = {"flag": "True or False", "integer": "an integer", "number": "a number"}
        raise CompileError(
            f"{self.name} should be {expected.get(self.kind, 'text')}, found {value!r}"
        )


def _flag(name: str, help_: str) -> Argument:
    return Argument(name, "flag", help_, default=False)


def _refused(name: str, kind: Kind, reason: str) -> Argument:
    return Argument(name, kind, "not possible here", refusal=reason)


_COMMON = (
    Argument("--log-file", "path", "write messages to this file instead of the terminal"),
    Argument("--result-file", "path", "write the results to this file, as JSON"),
    _flag("--save-artifacts", "keep what is made in the folder of artifacts"),
    Argument(
        "--artifact-dir",
        "path",
        "the folder of artifacts (ttcodegen-artifacts)",
        default=Path("ttcodegen-artifacts"),
    ),
    _flag("--clean-artifacts", "empty the folder of artifacts first"),
    Argument(
        "--log-level",
        "text",
        f"which messages to write, from this level on (INFO): {', '.join(LOG_LEVELS)}",
        choices=LOG_LEVELS,
    ),
    _flag("--quiet", "write warnings and errors only, like --log-level warning"),
)
_HERE = Path(".")
_BINARY = Argument(
    "binary", "path", "a file, or a folder that is searched for such files (this one)", _HERE
)
_RUN_BINARY = Argument(
    "binary",
    "path",
    "a file, a project's folder, which is built, or a folder that is searched for such files "
    "(this one)",
    _HERE,
)
_CARDLESS = "programs run on the CPU, where there is no such thing"
_NO_KERNELS = "flatbuffers run in numpy, and a project has its kernels as files of its own"

_RUNNING = (
    Argument("--program-index", "text", "the program to run, from 0, or all (all)", default="all"),
    Argument("--loops", "integer", "how often each program runs (1)", default=1, minimum=1),
    Argument(
        "--init",
        "text",
        "the values of inputs and weights (scaled): " + ", ".join(INIT_KINDS),
        choices=INIT_KINDS,
    ),
    Argument("--seed", "integer", "the seed of random values (0)", minimum=0),
    Argument(
        "--tt-lang",
        "text",
        "Python programs, with commas between them, that have operations of TT-Lang which the file "
        "calls",
    ),
    Argument("--inputs", "path", "a folder with NAME.npy for inputs and weights"),
    _flag("--enable-async-ttnn", "accepted: on the CPU a call is done when it returns"),
    _refused("--enable-program-cache", "flag", _CARDLESS),
    _refused("--disable-program-cache", "flag", _CARDLESS),
    _flag("--load-kernels-from-disk", "accepted: a project has its kernels as files in any case"),
    _refused("--dump-kernels-to-disk", "flag", _NO_KERNELS),
    _refused("--trace-region-size", "integer", _CARDLESS),
    _refused("--num-command-queues", "integer", _CARDLESS),
    _refused("--dispatch-core-type", "text", _CARDLESS),
    _refused("--disable-eth-dispatch", "flag", _CARDLESS),
    _refused("--fabric-config", "text", _CARDLESS),
    _refused("--mesh-shape", "text", "programs run on a single device"),
    _refused(
        "--ignore-version",
        "flag",
        "what a file of another version says cannot be understood: compile the model again",
    ),
)


def _system(files: str, default: str) -> tuple[Argument, ...]:
    """Arguments that name a system; at most one may be given."""
    return (
        Argument("--system-desc", "path", f"{files}, or a machine by name; {default}"),
        Argument("--machine", "text", "a machine by name (n150, n300, t3000, p150, p100...)"),
        Argument("--arch", "text", "an architecture instead", choices=ARCHITECTURES),
    )


_SYSTEM = _system(
    "a .ttsys file, a folder of them", "the device of the CPU backend if none is given"
)
"""System that files should have been compiled for."""

COMMANDS: Mapping[str, tuple[Argument, ...]] = {
    "read": (
        _BINARY,
        Argument(
            "--section",
            "text",
            f"what to show (all): {', '.join(SECTIONS)}",
            default="all",
            choices=SECTIONS,
        ),
        *_COMMON,
    ),
    "run": (
        _RUN_BINARY,
        *_RUNNING,
        *_SYSTEM,
        _flag("--identity", "check that the outputs are the inputs"),
        _flag("--non-zero", "check that no output is zero throughout"),
        Argument("--rtol", "number", "the relative error that elements may have", minimum=0),
        Argument("--atol", "number", "the absolute error that elements may have", minimum=0),
        Argument(
            "--pcc",
            "number",
            "the lowest accepted correlation of outputs that vary",
            minimum=-1,
            maximum=1,
        ),
        _flag("--disable-golden", "do not compare with golden values"),
        _flag("--save-golden-tensors", "keep the golden values, as artifacts"),
        _flag("--emitc", "run flatbuffers and the shared objects that belong to them; compare"),
        _flag("--print-input-output-tensors", "show the elements of inputs and outputs"),
        _flag("--memory", "show the memory that programs take, op by op as an artifact"),
        _flag("--check-memory-leak", "check that programs leave nothing on the device"),
        _flag("--debugger", "stop in Python's debugger after each op; needs a terminal"),
        *_COMMON,
    ),
    "perf": (
        _BINARY,
        *_RUNNING,
        *_system("the system of the roofline: a .ttsys file", "that of the file if none is given"),
        _flag("--host-only", "no counts of the emulated device"),
        *_COMMON,
    ),
    "compare": (
        Argument("binary", "path", "a project's folder, a shared object or a flatbuffer"),
        Argument("other", "path", "another one, whose programs have the same names"),
        *_RUNNING,
        *_COMMON,
    ),
    "check": (
        _BINARY,
        *_SYSTEM,
        *_COMMON,
    ),
    "validate": (
        replace(
            _BINARY,
            help="files, projects, or folders that are searched for such files (this one)",
            default=[_HERE],
            is_list=True,
        ),
        Argument(
            "--python",
            "text",
            "the Python that the package ttnn is installed in, or several with ':' between them, "
            "of which the one of the program's release is taken",
        ),
        *_system("the system to judge on: a .ttsys file", "that of the file if none is given"),
        _flag("--card", "make the calls on a card, not on a mocked device"),
        Argument(
            "--simulator",
            "path",
            "compute the calls on the vendor's simulator (a .so) and compare their values",
        ),
        Argument(
            "--memory",
            "integer",
            "GB that a mocked device may take (half of the machine's)",
            minimum=1,
        ),
        *_COMMON,
    ),
    "query": (
        *_system(
            "what to describe: a .ttsys file", "the device of the CPU backend if none is given"
        ),
        Argument("--output", "path", "write the description to this .ttsys file"),
        *_COMMON,
    ),
}
"""Arguments of each sub-command."""

DESCRIPTIONS: Mapping[str, str] = {
    "read": "Shows what a flatbuffer or a built shared object holds.",
    "run": "Runs programs and compares what they compute with golden values.",
    "perf": "Measures programs op by op.",
    "compare": "Runs two programs on the same values and compares them, op by op.",
    "check": "Reports whether a flatbuffer fits a system description, and why not.",
    "validate": "Makes the calls of a program on the real library, on a mocked device.",
    "query": "Describes the device that programs run on.",
}


def resolved(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of a sub-command by key, with defaults for missing ones.

    Raises:
        CompileError: if an argument is unknown, or a value is invalid.
    """
    arguments = {argument.name: argument for argument in COMMANDS[command]}
    for name in given:
        if name not in arguments:
            close = closest(name, arguments)
            raise CompileError(
                f"'{command}' has no argument '{name}'",
                remedy=f"did you mean '{close}'?" if close is not None else None,
            )
    values = {a.key: a.checked(given.get(a.name)) for a in arguments.values()}
    for name, others in _EXCLUDED.items():
        if values.get(name) and (other := next((o for o in others if values.get(o)), None)):
            raise CompileError(f"{_dashed(name)} and {_dashed(other)} exclude each other")
    return values


_EXCLUDED = {
    "quiet": ("log_level",),
    "disable_golden": ("rtol", "atol", "pcc", "save_golden_tensors"),
}
"""Arguments that others make ineffective."""


def _dashed(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def shown(command: str) -> Iterator[Argument]:
    """Arguments that --help lists."""
    return (argument for argument in COMMANDS[command] if argument.refusal is None)
