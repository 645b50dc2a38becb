"""Functions and structs of two wheels of ttnn, side by side: what their libraries export, and the
fields that their bindings print."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_QUALIFIER = re.compile(r"\b(?:\w+::)+(?=\w)")
_VERBOSE = (
    (r"std::basic_string<char, std::char_traits<char>, std::allocator<char> ?>", "std::string"),
    (r", (?:18446744073709551615ul|std::dynamic_extent)(?=>)", ""),
)
"""Arguments that types of the standard library repeat, and what is written instead."""
_FIELDS = re.compile(rb"([A-Z]\w+)\((\w+=\{\}(?:, \w+=\{\})*)\)")


@dataclass(frozen=True)
class Signature:
    """A function as the demangled name of its symbol says."""

    name: str
    parameters: tuple[str, ...]
    suffix: str = ""
    """The text after the parameters, such as `const`."""

    @classmethod
    def parse(cls, demangled: str) -> Signature:
        """The signature in the name of a function; without parameters if it is no function."""
        for pattern, replacement in _VERBOSE:
            demangled = re.sub(pattern, replacement, demangled)
        start = _parameters_at(demangled)
        if start < 0:
            return cls(demangled, ())
        end = demangled.rindex(")")
        parameters = tuple(_separated(demangled[start + 1 : end]))
        return cls(demangled[:start], parameters, demangled[end + 1 :].strip())

    @property
    def short(self) -> Signature:
        """The same without namespaces."""
        parameters = tuple(_QUALIFIER.sub("", each) for each in self.parameters)
        return Signature(_QUALIFIER.sub("", self.name), parameters, self.suffix)


def _parameters_at(demangled: str) -> int:
    """The position of the parenthesis that opens the parameters; -1 if there is none."""
    depth = 0
    for at in range(demangled.rfind(")"), -1, -1):
        depth += (demangled[at] == ")") - (demangled[at] == "(")
        if depth == 0 and demangled[at] == "(":
            return at
    return -1


def _separated(text: str) -> Iterator[str]:
    """The parts of a list, at commas outside of brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            yield text[start:at].strip()
            start = at + 1
    if last := text[start:].strip():
        yield last


@dataclass(frozen=True)
class Change:
    """Functions whose parameters changed alike.

    Attributes:
        names: of the functions in the old release.
        old: the parameters of the first of them; of the new release those that are nearest.
        new: None if the new release has no function of that name.
    """

    names: tuple[str, ...]
    old: Signature
    new: Signature | None

    @property
    def difference(self) -> tuple[tuple[str, ...], ...]:
        """The parameters that went and came, each with its place, counted from 1."""
        return _difference(self.old, self.new) if self.new is not None else ()

    @property
    def is_appended(self) -> bool:
        """True if the new release only has more parameters at the end."""
        if self.new is None:
            return False
        before, after = self.old.short.parameters, self.new.short.parameters
        return after[: len(before)] == before


@dataclass(frozen=True)
class Comparison:
    """The functions in use, by what a new release has of them.

    Attributes:
        same: those that link as they are.
        moved: those that link once they are compiled again: only namespaces of types changed.
        types: these types, old and new, with how many functions have them.
        changed: the others, those that changed alike together.
    """

    same: tuple[str, ...]
    moved: tuple[str, ...]
    types: Mapping[tuple[str, str], int]
    changed: tuple[Change, ...]


def compare(used: Iterable[str], exported: Iterable[str]) -> Comparison:
    """The functions that are in use against those that a release exports, both demangled."""
    used = list(dict.fromkeys(used))
    wanted = {Signature.parse(name).short.name.rpartition("::")[2] for name in used}
    words = {word for name in wanted for word in re.split(r"\W+", name) if word}
    # There are ten times as many as are in use: few are taken apart.
    available = {
        name: Signature.parse(name)
        for name in exported
        if not words.isdisjoint(re.split(r"\W+", name.partition("(")[0])[-3:])
    }
    by_name: dict[str, list[Signature]] = {}
    for signature in available.values():
        by_name.setdefault(signature.short.name.rpartition("::")[2], []).append(signature)
    same: list[str] = []
    moved: list[str] = []
    types: Counter[tuple[str, str]] = Counter()
    changes: dict[tuple[object, ...], list[Change]] = {}
    for name in used:
        if name in available:
            same.append(name)
            continue
        old = Signature.parse(name)
        others = by_name.get(old.short.name, [])
        alike = [other for other in others if other.short == old.short and _is_public(other, old)]
        new = min(alike, key=lambda other: (other.name != old.name, other.name), default=None)
        if new is not None:
            moved.append(name)
            types.update(set(_moved_types(old, new)))
            continue
        change = Change((old.name,), old, _nearest(old, others))
        key = change.difference or (change.new is None, old.name)
        changes.setdefault(key, []).append(change)
    changed = tuple(
        Change(tuple(dict.fromkeys(n for each in alike for n in each.names)), first.old, first.new)
        for alike in changes.values()
        for first in alike[:1]
    )
    order = sorted(changed, key=lambda each: (each.new is None, -len(each.names), each.names))
    return Comparison(tuple(same), tuple(moved), dict(types), tuple(order))


def _is_public(new: Signature, old: Signature) -> bool:
    """False if a function of that name is one of another class or of the inner namespaces, and the
    old one was not."""
    inner = ("::experimental::", "::prim::", "::detail::")
    if any(each in new.name and each not in old.name for each in inner):
        return False
    scopes = [each.name.rpartition("::")[0].rpartition("::")[2] for each in (new, old)]
    return scopes[0] == scopes[1] or {*scopes} <= {"ttnn", "tt_metal"}


def _nearest(old: Signature, others: Sequence[Signature]) -> Signature | None:
    """The overload with the most parameters in common, of the same qualified name if there is
    one."""
    named = [other for other in others if other.name == old.name]
    named = named or [other for other in others if _is_public(other, old)]
    words = [_plain(each) for each in old.short.parameters]

    def likeness(other: Signature) -> tuple[float, str]:
        theirs = [_plain(each) for each in other.short.parameters]
        return difflib.SequenceMatcher(None, words, theirs).ratio(), other.name

    return max(named, key=likeness, default=None)


def _plain(parameter: str) -> str:
    return parameter.replace(" const", "").rstrip("&").strip()


def _moved_types(old: Signature, new: Signature) -> Iterator[tuple[str, str]]:
    pattern = re.compile(r"\b(?:\w+::)*\w+\b")
    for before, after in zip(
        (old.name, *old.parameters), (new.name, *new.parameters), strict=False
    ):
        pairs = zip(pattern.findall(before), pattern.findall(after), strict=False)
        yield from ((one, other) for one, other in pairs if one != other)


def _difference(old: Signature, new: Signature) -> tuple[tuple[str, ...], ...]:
    before, after = old.short.parameters, new.short.parameters
    lines: list[tuple[str, ...]] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for verb, first, last, start, end in matcher.get_opcodes():
        if verb == "equal":
            continue
        lines += [("-", str(place + 1), before[place]) for place in range(first, last)]
        lines += [("+", str(place + 1), after[place]) for place in range(start, end)]
    return tuple(lines)


def struct_fields(binding: Path) -> dict[str, tuple[str, ...]]:
    """The fields of structs, in their order, that a Python module of the package prints; of those
    with several forms the longest."""
    found: dict[str, tuple[str, ...]] = {}
    for text in binding.read_bytes().split(b"\0"):
        match = _FIELDS.fullmatch(text) if b"={}" in text else None
        if match is None:
            continue
        name = match[1].decode()
        fields = tuple(each.partition("=")[0] for each in match[2].decode().split(", "))
        if len(fields) > len(found.get(name, ())):
            found[name] = fields
    return found
