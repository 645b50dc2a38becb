"""Runs the examples of a document: what it says is written and run, and prints what it shows.

A block of `mlir title="NAME"` is a file, one of `sh` are commands, and one of `text` after them is
what the last of them prints, on either stream; with the title "refused" the last of them fails.
There `...` matches anything in a line, a line `...` for any number of lines. A block of `python` is
run; a block with the title "slow" builds C++, so it is run only on request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.cli.lit import run_command_line

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def run_document(path: Path, *, slow: bool = False) -> int:
    """Runs the examples in the current folder; how many commands and scripts there were. With
    `slow`, those that build C++ too.

    Raises:
        AssertionError, LitError: if one fails, or does not print what the document shows.
    """
    commands = 0
    printed: str | None = ""
    for language, title, text in _BLOCK.findall(path.read_text("utf-8")):
        if title and title not in ("slow", "refused"):
            Path(title).write_text(text, "utf-8")
        elif language == "sh" and title == "slow" and not slow:
            printed = None
        elif language == "sh":
            lines = text.replace("\\\n", " ").splitlines()
            if title == "refused":
                lines[-1] = f"not {lines[-1]}"
            for command in lines:
                printed = run_command_line(command)
                commands += 1
        elif language == "python" and (slow or not title):
            exec(compile(text, str(path), "exec"), {"__name__": "__main__"})
            commands += 1
        elif language == "text" and printed is not None:
            shown = text.splitlines()
            assert _agrees(shown, printed.splitlines()), f"{text}\nis not\n{printed}"
    return commands


def _agrees(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Returns whether printed lines match a document's, where `...` elides any."""
    position = 0
    anywhere = False
    for line in shown:
        if line.strip() == "...":
            anywhere = True
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        while True:
            if position == len(printed):
                return False
            position += 1
            if pattern.fullmatch(printed[position - 1]):
                break
            if not anywhere:
                return False
        anywhere = False
    return True
