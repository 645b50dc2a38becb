"""Options that all command lines share, and suggestions for misspelled ones."""

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
    """A parser whose messages name the option or the value that was meant."""

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
            names: its names, as argparse has them.
            needs: other options, one of which has to be given with it.
            alone: of an option that ends the program, the only options that it may be given with.
            settings: those of argparse.
        """
        action = super().add_argument(*names, **settings)
        if needs:
            self.needs[action.dest] = needs
        if alone is not None:
            self.alone[action.dest] = (*names, *alone)
        return action

    def _refuse_without_effect(self, options: argparse.Namespace) -> None:
        """Ends the program for an option that has no effect with the others."""
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
        """The options; ends the program with a message if there is an unknown one."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse_unknown(unknown, getattr(options, "command", None))
        self._refuse_without_effect(options)
        return options

    def error(self, message: str) -> NoReturn:
        """Ends the program for wrong usage: what is wrong comes first, before all options."""
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
        """The options and arguments, those of a sub-command included; without hidden ones."""
        parsers = self.sub_commands()
        own = [
            action
            for action in self._actions
            if action.help is not argparse.SUPPRESS and not isinstance(action.choices, dict)
        ]
        return own + (parsers[command].all_actions() if command in parsers else [])

    def sub_commands(self) -> dict[str, ArgumentParser]:
        """The parsers of the sub-commands by name."""
        found: dict[str, ArgumentParser] = {}
        for action in self._actions:
            parsers: Any = action.choices
            if isinstance(parsers, dict):
                found.update(parsers)  # pyright: ignore[reportUnknownArgumentType]
        return found

    def _print_message(self, message: str, file: Any = None) -> None:
        """Writes help or usage. argparse ignores that it cannot; a standard output that takes
        nothing is an error, as it is for all else that is written there."""
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
    """Adds --arch, --system-desc and --machine: what is compiled for."""
    parser.add_argument("--arch", choices=ARCHITECTURES, help="the architecture (wormhole_b0)")
    parser.add_argument(
        "--system-desc",
        "--machine",
        metavar="F",
        help="the system, as a .ttsys file or by name (n150, n300, t3000, galaxy, p150, p100...): "
        "its chips, their grid, memories and data types",
    )


def add_release_option(parser: argparse.ArgumentParser) -> None:
    """Adds --tt-metal: the release that is written for."""
    parser.add_argument(
        "--tt-metal",
        choices=RELEASES,
        default=DEFAULT_RELEASE,
        help=f"the tt-metal release to target ({DEFAULT_RELEASE})",
    )


def chosen_system(options: argparse.Namespace) -> SystemDescription | None:
    """The system that the options name, None if they name none.

    Raises:
        CompileError: if there is no such system, or it is of another architecture than --arch.
    """
    from ttcodegen.flatbuffer.system import chosen_system

    return chosen_system(options.arch, options.system_desc)


def mesh_shape(text: str) -> tuple[int, int]:
    """Rows and columns of chips in `2x4` or `2,4`; a single number is a row of so many.

    Raises:
        argparse.ArgumentTypeError: if the text says no such mesh.
    """
    from ttcodegen.dialects.ttcore.device import require_possible, sizes_in
    from ttcodegen.foundation.diagnostics import CompileError

    try:
        sizes = sizes_in(text.strip())
        shape = sizes if len(sizes) > 1 else (1, *sizes)
        require_possible(shape)
    except CompileError as error:
        [found] = error.diagnostics
        raise argparse.ArgumentTypeError(f"{found.message}: {found.remedy}") from None
    rows, columns = shape
    return rows, columns


class _ShowVersion(argparse.Action):
    """Prints the version. Finding out the commit takes time, so it is not done before."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(version_text(parser.prog))
        parser.exit()


def version_text(program: str) -> str:
    """The text of --version: the version, and the commit if it is known."""
    known = commit()
    return f"{program} {__version__}" + (f" (commit {known})" if known else "")


def add_version_option(parser: argparse.ArgumentParser) -> None:
    """Adds --version."""
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version")


def apply_message_options(options: argparse.Namespace) -> None:
    """Sets the lowest level of messages that are written."""
    set_level(Level[options.log_level])
