"""Draws the rooms of the compiler and their imports into docs/architecture.md, and the map of each
room into its docstring.

    python scripts/architecture.py          # writes picture, table and maps anew
    python scripts/architecture.py --check  # fails if they are not those of the code

A room is a folder of `ttcodegen/`. An arrow says that a room imports from another one; what follows
from other arrows is left out. The map of a room lists its modules and inner rooms.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "ttcodegen"
BEGIN = "<!-- Written by scripts/architecture.py from the imports of ttcodegen/. -->"
END = "<!-- End of what scripts/architecture.py writes. -->"


def layers() -> list[list[str]]:
    """The rooms from top to bottom, as the contract of imports orders them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = [
        contract
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["ttcodegen"]
    ]
    return [[room.strip().strip("()") for room in layer.split(":")] for layer in contract["layers"]]


def imports(rooms: list[str]) -> dict[str, set[str]]:
    """The rooms that each room imports from."""
    used: dict[str, set[str]] = {room: set() for room in rooms}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in used:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = {name.split(".")[1] for name in names if name.startswith("ttcodegen.")}
            used[room] |= (found & used.keys()) - {room}
    return used


def reduced(used: dict[str, set[str]], order: list[str]) -> dict[str, list[str]]:
    """The imports without those that follow from others; rooms are in their order from the top."""
    reached: dict[str, set[str]] = {}
    kept: dict[str, list[str]] = {}
    for room in reversed(order):
        below = {other for used_room in used[room] for other in reached.get(used_room, ())}
        kept[room] = sorted(used[room] - below, key=order.index)
        reached[room] = used[room] | below
    return kept


def summary(room: str) -> str:
    """The first paragraph of the docstring of a room or module, on one line."""
    folder = PACKAGE / room
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def picture() -> str:
    """The picture and the table, as Markdown."""
    rows = layers()
    order = [room for row in rows for room in row]
    lines = ["```mermaid", "flowchart TD"]
    for room, others in reduced(imports(order), order).items():
        lines += [f"    {room} --> {other}" for other in others]
    lines += ["```", "", "| room | |", "|---|---|"]
    for room in order:
        name = f"{room}/" if (PACKAGE / room).is_dir() else f"{room}.py"
        lines.append(f"| `{name}` | {summary(room)} |")
        for inner in sorted(PACKAGE.joinpath(room).glob("*/__init__.py")):
            inside = f"{room}/{inner.parent.name}"
            lines.append(f"| `{inside}/` | {summary(inside)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with the picture and the table as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{picture()}\n\n{END}{after}"


LEAST_MEMBERS = 3
"""The fewest modules and inner rooms of a room that has a map."""
WIDTH = 100
_MAP = re.compile(r"(?:^- `\w+/?`: .*\n(?:^  .*\n)*)+", re.MULTILINE)


def room_map(room: Path) -> str:
    """The modules and inner rooms of a room, each with the first sentence of its docstring."""
    members = [
        f"{path.name}/" if path.is_dir() else path.stem
        for path in sorted(room.iterdir())
        if path.stem != "__init__" and (path.suffix == ".py" or (path / "__init__.py").is_file())
    ]
    if len(members) < LEAST_MEMBERS:
        return ""
    lines: list[str] = []
    for name in members:
        text = summary(str(room.relative_to(PACKAGE) / name.rstrip("/"))).split(". ")[0]
        row = f"- `{name}`: {text.rstrip('.:')}"
        lines += textwrap.wrap(row, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def with_map(room: Path) -> str:
    """The text of a room's `__init__.py`, with its map in the docstring."""
    text = (room / "__init__.py").read_text("utf-8")
    made = room_map(room)
    head, quotes, rest = text[3:].partition('"""')
    if (old := _MAP.search(head)) is not None:
        head = head[: old.start()] + made + head[old.end() :]
    elif made:
        first, gap, others = head.partition("\n\n")
        head = f"{first.rstrip()}\n\n{made}{gap[:1]}{others}"
    return text[:3] + head + quotes + rest


def main() -> None:
    """Writes page and maps, or checks them against the code."""
    parser = argparse.ArgumentParser(description="Draws the rooms of the compiler.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args().check
    old = PAGE.read_text("utf-8")
    new = page(old)
    if check and old != new:
        sys.exit("docs/architecture.md is not that of the code: run scripts/architecture.py")
    if not check:
        PAGE.write_text(new, "utf-8")
    for file in sorted(PACKAGE.glob("*/**/__init__.py")):
        text = with_map(file.parent)
        if check and text != file.read_text("utf-8"):
            sys.exit(f"the map in {file.relative_to(ROOT)} is old: run scripts/architecture.py")
        if not check:
            file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
