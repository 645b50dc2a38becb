"""Shell completion of the command lines in bash, zsh and fish."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ttcodegen.cli.arguments import ArgumentParser

SHELLS = ("bash", "zsh", "fish")


@dataclass
class Words:
    """Arguments that a program or one of its sub-commands accepts."""

    options: dict[str, str] = field(default_factory=dict[str, str])
    """Options with dashes, with their text in --help."""
    values: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Values of options that take one; empty for files."""
    commands: dict[str, Words] = field(default_factory=dict[str, "Words"])


def completion_script(shell: str, parser: argparse.ArgumentParser) -> str:
    """Shell script that completes the arguments of all programs.

    Args:
        shell: one of `SHELLS`.
        parser: the parser of `ttcodegen`.
    """
    scripts: Mapping[str, Callable[[Mapping[str, Words]], Iterable[str]]] = {
        "bash": _bash,
        "zsh": lambda programs: ("autoload -U +X bashcompinit && bashcompinit", *_bash(programs)),
        "fish": _fish,
    }
    return "\n".join(scripts[shell](_programs(parser))) + "\n"


def _programs(parser: argparse.ArgumentParser) -> Mapping[str, Words]:
    from ttcodegen.cli import explorer, lang, rt, translate

    return {
        "ttcodegen": _words(parser),
        "ttcodegen-explorer": _words(explorer.argument_parser()),
        "ttcodegen-lang": _words(lang.argument_parser()),
        "ttcodegen-opt": _opt_words(),
        "ttcodegen-rt": _words(rt.argument_parser()),
        "ttcodegen-translate": _words(translate.argument_parser()),
    }


def _words(parser: argparse.ArgumentParser) -> Words:
    assert isinstance(parser, ArgumentParser)
    found = Words()
    for action in parser.all_actions():
        for name in action.option_strings:
            found.options[name] = (action.help or "").replace("%%", "%")
            if action.nargs != 0:
                found.values[name] = tuple(str(choice) for choice in action.choices or ())
    for name, command in parser.sub_commands().items():
        found.commands[name] = _words(command)
    return found


def _opt_words() -> Words:
    from ttcodegen.opt.command_line import OPTIONS
    from ttcodegen.transforms.registry import entries

    found = Words()
    for option in OPTIONS:
        name = f"-{option.name}" if len(option.name) == 1 else f"--{option.name}"
        found.options[name] = option.description
        if option.kind != "flag":
            found.values[name] = ()
    for entry in entries():
        for name in (entry.name, *entry.aliases):
            found.options[f"--{name}"] = entry.description
    return found


def _bash(programs: Mapping[str, Words]) -> Iterable[str]:
    for program, words in programs.items():
        function = f"_{program.replace('-', '_')}"
        yield f"{function}() {{"
        yield "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
        yield "    COMPREPLY=()"
        yield '    case "${COMP_WORDS[1]}" in'
        for name, command in words.commands.items():
            yield f"    {name})"
            yield from _bash_cases(command)
            yield "        ;;"
        yield "    *)"
        yield from _bash_cases(words)
        yield "        ;;"
        yield "    esac"
        yield "}"
        yield f"complete -o default -F {function} {program}"


def _bash_cases(words: Words) -> Iterable[str]:
    yield '        case "$before" in'
    for name, choices in words.values.items():
        # With no reply the shell completes names of files.
        reply = f"{_bash_reply(choices)}; " if choices else ""
        yield f"        {name}) {reply}return ;;"
    yield "        esac"
    known = " ".join([*words.commands, *words.options])
    condition = "" if words.commands else "[[ $word == -* ]] && "
    yield f"        {condition}{_bash_reply(known.split())}"


def _bash_reply(words: Iterable[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))'


def _fish(programs: Mapping[str, Words]) -> Iterable[str]:
    for program, words in programs.items():
        yield from _fish_options(program, words, "__fish_use_subcommand" if words.commands else "")
        for name, command in words.commands.items():
            yield f"complete -c {program} -n __fish_use_subcommand -a {name}"
            yield from _fish_options(program, command, f"__fish_seen_subcommand_from {name}")


def _fish_options(program: str, words: Words, condition: str) -> Iterable[str]:
    for name, description in words.options.items():
        parts = [f"complete -c {program}"]
        if condition:
            parts.append(f"-n {_quoted(condition)}")
        if name.startswith("--"):
            parts.append(f"-l {name[2:]}")
        else:
            # Long names with one dash are what fish calls old style.
            parts.append(f"-{'s' if len(name) == 2 else 'o'} {name[1:]}")
        if name in words.values:
            choices = words.values[name]
            parts.append(f"-x -a {_quoted(' '.join(choices))}" if choices else "-r")
        parts.append(f"-d {_quoted(description)}")
        yield " ".join(parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
