"""Draws the rooms of the compiler and their imports into docs/architecture.md.

    python scripts/architecture.py          # writes the picture and the table anew
    python scripts/architecture.py --check  # fails if they are not those of the code

A room is a folder of `ttcodegen/`. An arrow says that a room imports from another one; what follows
from other arrows is left out.
"""

from __future__ import annotations

import argparse
import ast
import sys
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
    """The first paragraph of a room's docstring, on one line."""
    folder = PACKAGE / room
    file = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{room}.py"
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


def main() -> None:
    """Writes the page, or checks it against the code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args().check
    old = PAGE.read_text("utf-8")
    new = page(old)
    if check and old != new:
        sys.exit("docs/architecture.md is not that of the code: run scripts/architecture.py")
    if not check:
        PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
