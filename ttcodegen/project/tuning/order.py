"""Dependences between statements: legal reorderings and last uses of variables."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ttcodegen.ops.core.definition import overwrites
from ttcodegen.project.tuning.statements import Statement, joined, statements, tokens

_BORROWED = re.compile(r"\b(?:last_use|std::move)\(\s*([A-Za-z_]\w*)\s*\)")
_PATH = re.compile(r"(?<![\w.:>])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\w+\])*(?![\w:(])")
_FUNCTIONS_OF_VALUES = ("ttnn::", "call::", "std::")
"""Namespaces of functions with known effects; others may modify their arguments."""


@lru_cache(maxsize=4096)
def plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Tokens of a statement without last-use marks."""
    found: list[str] = []
    index = 0
    while index < len(words):
        borrows = words[index] in ("last_use", "std::move") and words[index + 1 : index + 2] == (
            "(",
        )
        if borrows and words[index + 3 : index + 4] == (")",):
            found.append(words[index + 2])
            index += 4
        else:
            found.append(words[index])
            index += 1
    return tuple(found)


def without_borrowing(text: str) -> str:
    """Text without last-use marks."""
    return _BORROWED.sub(r"\1", text)


def borrowed(words: Sequence[str]) -> set[str]:
    """Variables that a statement uses for the last time."""
    return set(_BORROWED.findall(joined(words)))


def paths(words: Sequence[str]) -> set[str]:
    """Variables in tokens, with their members: `x`, `weights.layers[0].up`."""
    return set(_PATH.findall(joined([w for w in words if not w.startswith(('"', "R"))])))


def written(statement: Statement, pure: Container[str] = ()) -> set[str]:
    """Variables that a statement assigns, or whose tensors it overwrites.

    Args:
        statement: the statement.
        pure: functions of the file that overwrite nothing.
    """
    found = set((statement.target or "").split(",")) - {""}
    call = statement.call
    if statement.words[0] == "return" or (call is None and statement.target is None):
        return {"*"}
    if call is None:
        return found
    name = call.callee.rpartition("::")[2]
    is_known = call.callee.startswith(_FUNCTIONS_OF_VALUES) or call.callee in pure
    if statement.target is None or not is_known or name.endswith("_") or overwrites(name):
        found |= read(statement)
    return found


def read(statement: Statement) -> set[str]:
    """Variables that a statement reads."""
    words = statement.words
    if statement.target is not None and "=" in words:
        words = words[words.index("=") + 1 :]
    return paths(words)


@lru_cache(maxsize=64)
def pure_functions(text: str) -> frozenset[str]:
    """Functions of a file that call functions of values alone, or such functions of the file."""
    inside: dict[str, list[Statement]] = {}
    for each in statements(text):
        if each.function:
            inside.setdefault(each.function, []).append(each)
    pure: set[str] = set()
    while True:
        known = frozenset(pure)
        for name, calls in inside.items():
            locals_ = {v for each in calls for v in (each.target or "").split(",")}
            if all(
                each.words[0] == "return"
                or ("*" not in (w := written(each, known)) and w <= locals_)
                for each in calls
            ):
                pure.add(name)
        if len(pure) == len(known):
            return known


def depend(one: Statement, other: Statement, pure: Container[str] = ()) -> str | None:
    """Variable by which two statements depend on each other; None if they are independent.

    Args:
        one: a statement.
        other: another one.
        pure: functions of the file that overwrite nothing.
    """
    for writer, reader in ((one, other), (other, one)):
        touched = sorted(read(reader) | written(reader, pure))
        for variable in sorted(written(writer, pure)):
            for each in touched:
                if variable == "*" or each == "*":
                    return "*"
                if _overlap(variable, each):
                    return variable
    return None


def _overlap(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def blocks(text: str) -> dict[int, int]:
    """Block number of each statement of a file, by the statement's position."""
    found: dict[int, int] = {}
    stack, count, position = [0], 0, 0
    for each in statements(text):
        for token in tokens(text[position : each.start]):
            if token.text == "{":
                count += 1
                stack.append(count)
            elif token.text == "}" and len(stack) > 1:
                stack.pop()
        found[each.start] = stack[-1]
        position = each.end
    return found


def order_conflict(moved: Statement, passed: Iterable[Statement], text: str) -> str | None:
    """Reason for which a statement cannot be moved past others of a file; None if it can."""
    pure = pure_functions(text)
    for each in passed:
        variable = depend(moved, each, pure)
        if variable == "*":
            return "it would have to pass the end of the function, or a statement that is no call"
        if variable is not None:
            other = "" if each.target in (None, variable) else f", as '{each.target}' does"
            return f"its place depends on '{variable}'{other}"
    return None


def with_last_uses(text: str, functions: Iterable[str]) -> str:
    """Moves last-use marks to the actual last reads.

    Args:
        text: a file with reordered statements.
        functions: the functions in which they are.
    """
    wanted = set(functions)
    edits: list[tuple[int, int, str]] = []
    for function in sorted(wanted):
        inside = [each for each in statements(text) if each.function == function]
        for reads in _live_ranges(inside):
            edits += _last_use_edits(text, reads)
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _live_ranges(inside: Sequence[Statement]) -> Iterator[tuple[str, Sequence[Statement]]]:
    """Live ranges: each value of a variable with the statements that read it, in order."""
    open_: dict[str, list[Statement]] = {}
    for each in inside:
        for path in read(each):
            root = re.split(r"[.\[]", path, maxsplit=1)[0]
            if root in open_:
                open_[root].append(each)
        for name in (each.target or "").split(","):
            if name:
                if name in open_:
                    yield name, open_[name]
                open_[name] = []
    yield from open_.items()


def _last_use_edits(
    text: str, reads: tuple[str, Sequence[Statement]]
) -> Iterator[tuple[int, int, str]]:
    """Edits that leave a last-use mark only on the last read."""
    variable, readers = reads
    moving = [each for each in readers if variable in borrowed(each.words)]
    if not moving or (len(moving) == 1 and moving[0] is readers[-1]):
        return
    for each in moving:
        if each is not readers[-1]:
            source = text[each.start : each.end]
            pattern = rf"\b(?:last_use|std::move)\(\s*{re.escape(variable)}\s*\)"
            for match in re.finditer(pattern, source):
                yield each.start + match.start(), each.start + match.end(), variable
    last = readers[-1]
    if last in moving:
        return
    source = text[last.start : last.end]
    assigned = source.find("=") + 1 if last.target is not None else 0
    found = [
        match
        for match in re.finditer(rf"(?<![\w.:>]){re.escape(variable)}\b(?![\w.\[])", source)
        if match.start() >= assigned
    ]
    if len(found) == 1 and last.words[0] != "return":
        place = last.start + found[0].start()
        yield place, place + len(variable), f"last_use({variable})"


def substituted(text: str, names: Mapping[str, str]) -> str:
    """Renames variables simultaneously."""
    if not names:
        return text
    alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = rf"(?<![\w.:>])(?:{alternatives})(?![\w\[.])"
    return re.sub(pattern, lambda match: names[match[0]], text)
