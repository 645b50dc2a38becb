"""Edits of the text of a module of any dialect that keep most of it consistent, so that what is
wrong, if anything is, is met long after the parser."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TENSOR = re.compile(r"(?:tensor|memref|vector)<((?:[\d?]+x)*)([^<>,]*?)((?:,[^<>]*)?)>")
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_OP = re.compile(r"^([ \t]*)(%[\w$.-]+(?::\d+)?(?:, *%[\w$.-]+(?::\d+)?)*) = \"?([a-z]\w*\.\w+)",
                 re.MULTILINE)  # fmt: skip
_ATTRIBUTES = re.compile(r"<?\{[^{}\n]*=[^{}\n]*\}>?")
_NUMBER = re.compile(r"(?<![\w.%#@!^])-?\d+(?![\w.])")

_ATTEMPTS = 8
_SIZES = (0, 1, 2, 3, 5, 31, 32, 33, 64, 100, 1000)
_ELEMENTS = ("f32", "bf16", "f16", "f64", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32",
            "si8", "si32", "index", "complex<f32>", "f8E4M3FN", "i4",
            "!quant.uniform<i8:f32, 0.1>")  # fmt: skip
_NUMBERS = (-(2**63), -(2**31), -100, -2, -1, 0, 1, 2, 3, 4, 5, 7, 31, 32, 33, 64, 65536, 2**31 - 1,
           2**31, 2**32, 2**63 - 1, 2**63, 2**64)  # fmt: skip


def edited(text: str, numbers: random.Random) -> str:
    """A module with one to three edits."""
    for _ in range(numbers.choice((1, 1, 1, 2, 3))):
        before = text
        for _ in range(_ATTEMPTS):
            # Not every edit has a place in every module.
            text = numbers.choice(_EDITS)(before, numbers)
            if text != before:
                break
    return text


def _chosen(pattern: re.Pattern[str], text: str, numbers: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return numbers.choice(found) if found else None


def _with(text: str, place: re.Match[str], new: str, everywhere: bool) -> str:
    if everywhere:
        return text.replace(place[0], new)
    return f"{text[: place.start()]}{new}{text[place.end() :]}"


def _change_shape(text: str, numbers: random.Random) -> str:
    """Another size, rank or order of dimensions of a type, everywhere or in one place."""
    place = _chosen(_TENSOR, text, numbers)
    if place is None:
        return text
    sizes = place[1].split("x")[:-1]
    match numbers.randrange(6):
        case 0 if sizes:
            del sizes[numbers.randrange(len(sizes))]
        case 1:
            sizes.insert(numbers.randrange(len(sizes) + 1), str(numbers.choice(_SIZES)))
        case 2:
            numbers.shuffle(sizes)
        case _ if sizes:
            old = sizes[numbers.randrange(len(sizes))]
            new = numbers.choice((*map(str, _SIZES), "?"))
            if numbers.random() < 0.5:
                # All dimensions that are as long change with it, in attributes as well.
                return re.sub(rf"(?<![\w.%#@!^-]){old}(?=[x,\]>: ])|(?<=x){old}(?=x)", new, text)
            sizes[sizes.index(old)] = new
        case _:
            sizes = []
    kind = place[0].partition("<")[0]
    new = f"{kind}<{''.join(f'{size}x' for size in sizes)}{place[2]}{place[3]}>"
    return _with(text, place, new, numbers.random() < 0.7)


def _change_elements(text: str, numbers: random.Random) -> str:
    """Another element type: of all types with it, of one type everywhere, or in one place."""
    place = _chosen(_TENSOR, text, numbers)
    if place is None:
        return text
    element = numbers.choice(_ELEMENTS)
    if place[2] and numbers.random() < 0.5:
        return re.sub(rf"(?<=[x<: ]){re.escape(place[2])}(?=[>,\s)])", element, text)
    kind = place[0].partition("<")[0]
    new = f"{kind}<{place[1]}{element}{place[3]}>"
    return _with(text, place, new, numbers.random() < 0.5)


def _swap_operands(text: str, numbers: random.Random) -> str:
    """Two values of one line in each other's place."""
    lines = text.split("\n")
    at = [
        (row, found)
        for row, line in enumerate(lines)
        if len(found := list(_VALUE.finditer(line, max(line.find("="), 0)))) > 1
    ]
    if not at:
        return text
    row, found = numbers.choice(at)
    first, second = sorted(numbers.sample(found, 2), key=lambda each: each.start())
    line = lines[row]
    lines[row] = (
        line[: first.start()] + second[0] + line[first.end() : second.start()] + first[0]
        + line[second.end() :]
    )  # fmt: skip
    return "\n".join(lines)


def _replace_value(text: str, numbers: random.Random) -> str:
    """A value where another was used."""
    place, other = _chosen(_VALUE, text, numbers), _chosen(_VALUE, text, numbers)
    if place is None or other is None:
        return text
    return _with(text, place, other[0], False)


def _spans(text: str) -> list[tuple[int, int]]:
    """Ops that give values, each with its regions, as places in a text."""
    spans = list[tuple[int, int]]()
    for match in _OP.finditer(text):
        depth, end = 0, match.start()
        # An op ends with a line at which all of its brackets are closed.
        for line in text[match.start() :].splitlines(keepends=True):
            code = re.sub(r'"(?:[^"\\]|\\.)*"', "", line).replace("->", "")
            depth += sum(code.count(each) for each in "({[<") - sum(map(code.count, ")}]>"))
            end += len(line)
            if depth <= 0 and not text[end:].lstrip(" \t").startswith((":", "->", "<{", "{", ",")):
                break
        spans.append((match.start(), end))
    return spans


def _move(text: str, numbers: random.Random) -> str:
    """An op at another place, in the same region or in another."""
    spans = _spans(text)
    if not spans:
        return text
    start, end = numbers.choice(spans)
    op, rest = text[start:end], text[:start] + text[end:]
    places = [match.end() for match in re.finditer("\n", rest)]
    place = numbers.choice(places) if places else 0
    return rest[:place] + op + rest[place:]


def _erase(text: str, numbers: random.Random) -> str:
    """An op less; its results are those of another value."""
    spans = _spans(text)
    if not spans:
        return text
    start, end = numbers.choice(spans)
    name = _VALUE.search(text, start)
    before = list(_VALUE.finditer(text, 0, start))
    assert name is not None
    rest = text[:start] + text[end:]
    if not before:
        return rest
    other = numbers.choice(before[-8:])[0]
    return re.sub(rf"{re.escape(name[0])}(?![\w$.-])", lambda _: other, rest)


def _duplicate(text: str, numbers: random.Random) -> str:
    """An op twice: the second on the results of the first, or used in its place."""
    spans = _spans(text)
    if not spans:
        return text
    start, end = numbers.choice(spans)
    name = _VALUE.search(text, start)
    assert name is not None
    again = f"%again{len(text)}"
    result = rf"{re.escape(name[0])}(?![\w$.-])"
    op = re.sub(result, again, text[start:end])
    if numbers.random() < 0.5:
        operand = _VALUE.search(op, op.find("=") + 1)
        if operand is not None:
            op = op[: operand.start()] + name[0] + op[operand.end() :]
    return text[:end] + op + re.sub(result, again, text[end:])


def _rename_op(text: str, numbers: random.Random) -> str:
    """An op under the name of another of its module, or of its dialect."""
    place, other = _chosen(_OP, text, numbers), _chosen(_OP, text, numbers)
    if place is None or other is None:
        return text
    return f"{text[: place.start(3)]}{other[3]}{text[place.end(3) :]}"


def _exchange_attributes(text: str, numbers: random.Random) -> str:
    """The attributes of one op where those of another were, or none."""
    place, other = _chosen(_ATTRIBUTES, text, numbers), _chosen(_ATTRIBUTES, text, numbers)
    if place is None or other is None:
        return text
    if numbers.random() < 0.3:
        entries = re.split(r", (?=[\w.]+ =)", place[0].strip("<{}>"))
        del entries[numbers.randrange(len(entries))]
        pair = ("<{", "}>") if place[0].startswith("<") else ("{", "}")
        return _with(text, place, pair[0] + ", ".join(entries) + pair[1], False)
    return _with(text, place, other[0], False)


def _change_number(text: str, numbers: random.Random) -> str:
    place = _chosen(_NUMBER, text, numbers)
    if place is None:
        return text
    near = int(place[0]) + numbers.choice((-1, 1))
    return _with(text, place, str(numbers.choice((near, near, *_NUMBERS))), False)


def _change_results(text: str, numbers: random.Random) -> str:
    """A function that returns a value twice, or in another order, with the types that it says."""
    place = _chosen(re.compile(r"(return )(%[^:\n]*) : ([^\n]*)"), text, numbers)
    if place is None:
        return text
    values, types = place[2].split(", "), place[3].split(", ")
    if len(values) != len(types):
        return text
    pairs = list(zip(values, types, strict=True))
    match numbers.randrange(3):
        case 0:
            pairs.append(numbers.choice(pairs))
        case 1:
            numbers.shuffle(pairs)
        case _:
            del pairs[numbers.randrange(len(pairs))]
    listed = ", ".join(type_ for _, type_ in pairs)
    returned = f"return {', '.join(value for value, _ in pairs)} : {listed}" if pairs else "return"
    text = _with(text, place, returned, False)
    start = text.rfind("func.func", 0, place.start())
    signature = re.compile(r"-> (?:\([^()]*\)|[^\s{]+)(?= (?:attributes )?\{)")
    return text[: max(start, 0)] + signature.sub(
        lambda _: f"-> ({listed})", text[max(start, 0) :], count=1
    )


_EDITS: tuple[Callable[[str, random.Random], str], ...] = (
    *(_change_shape, _change_shape, _change_shape, _change_elements, _change_elements),
    *(_swap_operands, _replace_value, _move, _erase, _duplicate, _rename_op),
    *(_exchange_attributes, _change_number, _change_number, _change_results),
)
