"""The documentation says what is so."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from scripts import ops_table
from ttcodegen.cli.ttcodegen import argument_parser

ROOT = Path(__file__).resolve().parent.parent


def commands(text: str) -> list[str]:
    """The commands of the first block of code."""
    match = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert match is not None
    return match.group(1).splitlines()


def test_the_table_of_ops_is_up_to_date() -> None:
    assert (ROOT / "docs" / "ops.md").read_text() == ops_table.table()


def test_ci_runs_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    first, second = commands((ROOT / "README.md").read_text())
    assert script.index(first) < script.index(second)


def test_the_options_of_the_documentation_exist() -> None:
    known = {option for action in argument_parser()._actions for option in action.option_strings}
    usage = (ROOT / "docs" / "usage.md").read_text()
    rows = re.findall(r"^\| `(-[^`]*)`", usage, re.MULTILINE)
    assert {shlex.split(row)[0] for row in rows} == known - {"-h", "--help", "--version"}


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
