"""Options shared by all command lines, and suggestions for misspelled ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ttcodegen.foundation.messages import Level, did_you_mean, report, set_level
from ttcodegen.systems.description import ARCHITECTURES
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES
from ttcodegen.version import __version__, commit

if TYPE_CHECKING:
    from ttcodegen.systems.description import SystemDescription

LEVELS = tuple(level.name for level in sorted(Level, reverse=True))


class ArgumentParser(argparse.ArgumentParser):
    """Parser whose messages suggest the intended option or value."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings
        )
        self.needs: dict[str, Sequence[str]] = {}
        self.alone: dict[str, Sequence[str]] = {}

    def add_argument(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *names: str,
        needs: Sequence[str] = (),
        alone: Sequence[str] | None = None,
        **settings: Any,
    ) -> argparse.Action:
        """Adds an option.

        Args:
            names: its names, as in argparse.
            needs: other options, one of which is required with it.
            alone: for an option that ends the program, the only options that may accompany it.
            settings: argparse's settings.
        """
        action = super().add_argument(*names, **settings)
        if needs:
            self.needs[action.dest] = needs
        if alone is not None:
            self.alone[action.dest] = (*names, *alone)
        return action

    def _refuse_without_effect(self, options: argparse.Namespace) -> None:
        """Ends the program for an option without effect in combination."""
        given = [
            action
            for action in self._actions
            if hasattr(options, action.dest)
            and (value := getattr(options, action.dest)) != self.get_default(action.dest)
            and action.const in (None, value)
        ]
        names = {name for action in given for name in action.option_strings}
        for action in given:
            needed = self.needs.get(action.dest, ())
            if needed and not names.intersection(needed):
                self.error(f"{action.option_strings[0]} needs {' or '.join(needed)}")
            beside = self.alone.get(action.dest)
            for other in given if beside is not None else ():
                if other.dest != "log_level" and not {*other.option_strings} & {*(beside or ())}:
                    name = other.option_strings[0] if other.option_strings else other.metavar
                    self.error(f"{name} has no effect with {action.option_strings[0]}")

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: None = None
    ) -> argparse.Namespace:
        """Parses options; ends the program with a message for an unknown one."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse_unknown(unknown, getattr(options, "command", None))
        self._refuse_without_effect(options)
        return options

    def error(self, message: str) -> NoReturn:
        """Ends the program for wrong usage, with the error before a hint to --help."""
        report(Level.ERROR, f"{self.prog}: error: {message}")
        report(Level.ERROR, f"note: {self.prog} --help lists the options")
        self.exit(2)

    def _refuse_unknown(self, unknown: Sequence[str], command: str | None) -> None:
        first = next((argument for argument in unknown if argument.startswith("-")), None)
        if first is None:
            self.error(f"'{unknown[0]}' is an unexpected argument")
        name = first.partition("=")[0]
        known = [n for action in self.all_actions(command) for n in action.option_strings]
        self.error(f"there is no option {name}{did_you_mean(name, known)}")

    def all_actions(self, command: str | None = None) -> list[argparse.Action]:
        """Visible options and arguments, including those of a sub-command."""
        parsers = self.sub_commands()
        own = [
            action
            for action in self._actions
            if action.help is not argparse.SUPPRESS and not isinstance(action.choices, dict)
        ]
        return own + (parsers[command].all_actions() if command in parsers else [])

    def sub_commands(self) -> dict[str, ArgumentParser]:
        """Parsers of the sub-commands by name."""
        found: dict[str, ArgumentParser] = {}
        for action in self._actions:
            parsers: Any = action.choices
            if isinstance(parsers, dict):
                found.update(parsers)  # pyright: ignore[reportUnknownArgumentType]
        return found

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes help or usage; unlike argparse's, a failure on standard output is an error."""
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices: Iterable[Any] | None = action.choices
        if choices is None or value in choices:
            return
        known = [str(choice) for choice in choices]
        hint = did_you_mean(str(value), known)
        raise argparse.ArgumentError(action, f"'{value}' is none of {', '.join(known)}{hint}")


def add_message_options(parser: argparse.ArgumentParser) -> None:
    """Adds -q, -v and --log-level."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "-q",
        "--quiet",
        action="store_const",
        const="WARNING",
        dest="log_level",
        default="INFO",
        help="print only warnings and errors, like --log-level WARNING",
    )
    add_level_options(chosen)


def add_level_options(parser: argparse._ActionsContainer) -> None:  # pyright: ignore[reportPrivateUsage]
    """Adds -v and --log-level."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_const",
        const="DEBUG",
        dest="log_level",
        default="INFO",
        help="print all messages, like --log-level DEBUG",
    )
    parser.add_argument(
        "--log-level",
        type=str.upper,
        choices=LEVELS,
        metavar="LEVEL",
        help=f"the lowest level of messages to print: {', '.join(LEVELS)} (INFO)",
    )


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Adds --arch, --system-desc and --machine, which select the target system."""
    parser.add_argument("--arch", choices=ARCHITECTURES, help="the architecture (wormhole_b0)")
    parser.add_argument(
        "--system-desc",
        "--machine",
        metavar="F",
        help="the system, as a .ttsys file or by name (n150, n300, t3000, galaxy, p150, p100...): "
        "its chips, their grid, memories and data types",
    )


def add_release_option(parser: argparse.ArgumentParser) -> None:
    """Adds --tt-metal, which selects the target release."""
    parser.add_argument(
        "--tt-metal",
        choices=RELEASES,
        default=DEFAULT_RELEASE,
        help=f"the tt-metal release to target ({DEFAULT_RELEASE})",
    )


def chosen_system(options: argparse.Namespace) -> SystemDescription | None:
    """System that the options select, None if they select none.

    Raises:
        CompileError: if there is no such system, or it contradicts --arch.
    """
    from ttcodegen.flatbuffer.system import chosen_system

    return chosen_system(options.arch, options.system_desc)


def mesh_shape(text: str) -> tuple[int, int]:
    """Parses mesh rows and columns, `2x4` or `2,4`; a single number is a row.

    Raises:
        argparse.ArgumentTypeError: if no such mesh is possible.
    """
    from ttcodegen.dialects.ttcore.device import (
        ONE_CHIP,
        require_possible,
        sizes_in,
        two_dimensional,
    )
    from ttcodegen.foundation.diagnostics import CompileError

    try:
        sizes = sizes_in(text.strip())
        require_possible(sizes if len(sizes) > 1 else (1, *sizes))
    except CompileError as error:
        [found] = error.diagnostics
        raise argparse.ArgumentTypeError(f"{found.message}: {found.remedy}") from None
    return two_dimensional(sizes) or ONE_CHIP


def host_shape(text: str) -> tuple[int, int]:
    """Rows and columns of hosts in `2x1` or `2,1`; a single number is a row of so many.

    Raises:
        argparse.ArgumentTypeError: if the text says no hosts.
    """
    from ttcodegen.dialects.ttcore.device import sizes_in, two_dimensional
    from ttcodegen.foundation.diagnostics import CompileError

    try:
        shape = two_dimensional(sizes_in(text.strip()))
    except CompileError:
        shape = None
    if shape is None or min(shape) < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no grid of hosts: give their rows and columns, such as 2x1"
        )
    return shape


class _ShowVersion(argparse.Action):
    """Prints the version, with the commit determined on demand, as that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_text(parser.prog))
        parser.exit()


def version_text(program: str) -> str:
    """Text of --version: the version, and the commit if known."""
    known = commit()
    return f"{program} {__version__}" + (f" (commit {known})" if known else "")


def add_version_option(parser: argparse.ArgumentParser) -> None:
    """Adds --version."""
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version")


def apply_message_options(options: argparse.Namespace) -> None:
    """Sets the minimum level of written messages."""
    set_level(Level[options.log_level])
