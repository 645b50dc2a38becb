"""Structures of tensors: members nested by the modules of the source, numbered ones as arrays.

`layers.0.mlp.up_proj.weight` of a source is `layers[0].mlp.up_proj.weight` in C++."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ttcodegen.emitc.spelling import NameScope, identifier, type_name
from ttcodegen.naming.sources import is_generic

_PARTS = re.compile(r"[./]")
_NUMBERED = re.compile(r"(.*\D)_(\d+)$")
_ROOT = "layers"
"""Name of an array of layers that have only numbers in the source."""


@dataclass(frozen=True)
class Tensor:
    """A member that is a tensor."""

    is_optional: bool = False
    """True if it is a member of array elements, some of which leave it empty."""


@dataclass(frozen=True)
class Struct:
    """A structure: its members by name, in order."""

    members: tuple[tuple[str, Shape], ...]


@dataclass(frozen=True)
class Array:
    """An array of members of one shape."""

    element: Tensor | Struct
    count: int


Shape = Tensor | Struct | Array


@dataclass(frozen=True)
class Layout:
    """Members of a structure for tensors of the source."""

    root: Struct
    paths: tuple[str, ...]
    """Access path of each tensor: `layers[0].mlp.up_proj.weight`."""
    elements: Mapping[str, Struct]
    """Structures in arrays, by access path: `layers[0]`."""

    @property
    def is_nested(self) -> bool:
        """Returns whether some tensor is not a direct member."""
        return any(not isinstance(shape, Tensor) for _, shape in self.root.members)


def layout_of(titles: Sequence[str], reserved: Iterable[str] = ()) -> Layout:
    """Nests the members of a structure.

    Args:
        titles: dotted names of the tensors in the source.
        reserved: members of the structure besides tensors.
    """
    root = _Node()
    keys: list[tuple[str, ...]] = []
    for title in titles:
        parts = _parts(title)
        key = parts if root.fits(parts) else (identifier(title),)
        number = 2
        while not root.fits(key):
            key = (f"{identifier(title)}_{number}",)
            number += 1
        root.add(key)
        keys.append(key)
    if root.is_numbered:
        root = _Node({_ROOT: root})
        keys = [(_ROOT, *key) for key in keys]
    built = _built(root, reserved) if keys else _Built(Struct(()))
    assert isinstance(built.shape, Struct)
    elements: dict[str, Struct] = {}
    paths = tuple(_path(built, key, elements) for key in keys)
    return Layout(built.shape, paths, elements)


def _parts(title: str) -> tuple[str, ...]:
    """Parts of a name; a C++ keyword is joined with the part after it: `new_keys`."""
    parts = list(filter(None, _PARTS.split(title))) or [title]
    for index in range(len(parts) - 2, -1, -1):
        if identifier(parts[index]) == f"{parts[index]}_":
            parts[index : index + 2] = [f"{parts[index]}_{parts[index + 1]}"]
    return tuple(parts)


@dataclass
class _Node:
    """Node of the tree of names; a leaf is a tensor."""

    children: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    is_optional: bool = False

    def fits(self, parts: Sequence[str]) -> bool:
        """Returns whether a path is neither a module nor inside another tensor."""
        node = self
        for index, part in enumerate(parts):
            if part not in node.children:
                return index == 0 or bool(node.children)
            node = node.children[part]
        return False

    def add(self, parts: Iterable[str]) -> None:
        """Adds a tensor."""
        node = self
        for part in parts:
            node = node.children.setdefault(part, _Node())

    @property
    def is_numbered(self) -> bool:
        """Returns whether all of its parts are numbers."""
        return bool(self.children) and all(part.isdigit() for part in self.children)

    def leaves(self) -> Iterator[tuple[str, ...]]:
        """Yields the paths of the tensors below."""
        if not self.children:
            yield ()
        for part, child in self.children.items():
            for rest in child.leaves():
                yield (part, *rest)

    def numbered(self) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        """Yields the modules below that have numbered members, with these."""
        numbers = {part for part in self.children if part.isdigit() or _NUMBERED.match(part)}
        if numbers:
            yield (), numbers
        for part, child in self.children.items():
            for place, found in child.numbered():
                yield (part, *place), found


@dataclass(frozen=True)
class _Built:
    """Shape, and the steps from parts of names to its members."""

    shape: Shape
    steps: Mapping[tuple[str, ...], tuple[str, _Built]] = field(
        default_factory=dict[tuple[str, ...], tuple[str, "_Built"]]
    )
    """By one or two parts: text of the access, and the member."""


def _built(node: _Node, reserved: Iterable[str] = ()) -> _Built:
    if not node.children:
        return _Built(Tensor(node.is_optional))
    scope = NameScope(reserved)
    members: list[tuple[str, Shape]] = []
    steps: dict[tuple[str, ...], tuple[str, _Built]] = {}
    found = list(_members(node))
    shared = _shared_elements(found)
    for position, (name, keys, nodes, is_array) in enumerate(found):
        spelled = scope.unique(identifier(name))
        if not is_array:
            inner = _built(nodes[0])
            members.append((spelled, inner.shape))
            steps[keys[0]] = spelled, inner
            continue
        inner = _built(shared[position])
        assert not isinstance(inner.shape, Array)
        members.append((spelled, Array(inner.shape, len(nodes))))
        for index, key in enumerate(keys):
            steps[key] = f"{spelled}[{index}]", inner
    return _Built(Struct(tuple(members)), steps)


def _shared_elements(members: Sequence[_Member]) -> dict[int, _Node]:
    """Element of each array, by its position among the members.

    Arrays of similar blocks share one, such as the stages of a convolutional network."""
    groups: list[list[int]] = []
    for index, member in enumerate(members):
        if not member.is_array:
            continue
        has_modules = any(len(leaf) > 1 for node in member.nodes for leaf in node.leaves())
        for group in groups if has_modules else ():
            if _are_alike([node for i in (*group, index) for node in members[i].nodes]):
                group.append(index)
                break
        else:
            groups.append([index])
    united = [_merged([node for i in group for node in members[i].nodes]) for group in groups]
    return {i: node for group, node in zip(groups, united, strict=True) for i in group}


class _Member(NamedTuple):
    """Member of a structure."""

    name: str
    keys: list[tuple[str, ...]]
    """Parts of names that lead to it, or to each element ..."""
    nodes: list[_Node]
    """... and their nodes."""
    is_array: bool = False


def _members(node: _Node) -> Iterator[_Member]:
    """Yields the members of a structure."""
    stems: dict[str, list[str]] = {}
    for part in node.children:
        if (numbered := _NUMBERED.match(part)) is not None:
            stems.setdefault(numbered[1], []).append(part)
    arrays = {
        stem: parts
        for stem, found in stems.items()
        for parts in [sorted(found, key=lambda part: int(part.removeprefix(f"{stem}_")))]
        if stem not in node.children
        and len(parts) > 1
        and not is_generic(stem)
        and _are_in_order(part.removeprefix(f"{stem}_") for part in parts)
        and _are_alike([node.children[part] for part in parts])
    }
    of_array = {part: stem for stem, parts in arrays.items() for part in parts}
    for part, child in node.children.items():
        stem = of_array.get(part)
        if stem is None:
            yield from _numbered_members(part, (part,), child)
        elif part == stems[stem][0]:
            parts = arrays[stem]
            elements = [node.children[each] for each in parts]
            yield _Member(stem, [(each,) for each in parts], elements, is_array=True)


def _numbered_members(name: str, key: tuple[str, ...], node: _Node) -> Iterator[_Member]:
    """Yields the members for a part of names: an array if its elements are similar."""
    if not node.is_numbered:
        yield _Member(name, [key], [node])
        return
    inner = dict(sorted(node.children.items(), key=lambda item: int(item[0])))
    elements = [*inner.values()]
    is_array = _are_in_order(inner) and not any(each.is_numbered for each in elements)
    if is_array and _are_alike(elements):
        yield _Member(name, [(*key, number) for number in inner], elements, is_array=True)
        return
    for number, below in inner.items():
        yield from _numbered_members(f"{name}_{number}", (*key, number), below)


def _are_in_order(numbers: Iterable[str]) -> bool:
    return all(number == str(index) for index, number in enumerate(numbers))


def _are_alike(nodes: Sequence[_Node]) -> bool:
    """Returns whether one structure fits several modules.

    At least half of all tensors must be in each of them, or all if there are no inner modules, and
    arrays must have equal lengths."""
    found = [set(node.leaves()) for node in nodes]
    common = set[tuple[str, ...]].intersection(*found)
    every = set[tuple[str, ...]].union(*found)
    modules = {leaf[:length] for leaf in every for length in range(len(leaf))}
    least = 2 if len(modules) > 1 else 1
    if least * len(common) < len(every) or not every.isdisjoint(modules):
        return False
    lengths: dict[tuple[str, ...], set[str]] = {}
    return all(
        lengths.setdefault(place, numbers) == numbers
        for node in nodes
        for place, numbers in node.numbered()
    )


def _merged(nodes: Sequence[_Node]) -> _Node:
    """Merges several modules, with the order of the largest."""
    most = max(nodes, key=lambda node: len(list(node.leaves())))
    result = _Node()
    counts: dict[tuple[str, ...], int] = {}
    for node in (most, *nodes):
        for leaf in node.leaves():
            counts[leaf] = counts.get(leaf, 0) + 1
            result.add(leaf)
    for leaf, count in counts.items():
        if count <= len(nodes):
            inner = result
            for part in leaf:
                inner = inner.children[part]
            inner.is_optional = True
    return result


def _path(built: _Built, key: Sequence[str], elements: dict[str, Struct]) -> str:
    """Access path of a tensor; adds the structures in arrays on it to `elements`."""
    path = ""
    while key:
        count = next(n for n in range(1, len(key) + 1) if tuple(key[:n]) in built.steps)
        text, built = built.steps[tuple(key[:count])]
        path = f"{path}.{text}" if path else text
        if text.endswith("]") and isinstance(built.shape, Struct):
            elements[path] = built.shape
        key = key[count:]
    return path


class StructTypes:
    """Types of structures in arrays; equal ones in a module share one type."""

    def __init__(self) -> None:
        self._names: dict[tuple[Struct, str], str] = {}
        self._scope = NameScope()

    def name(self, struct: Struct, kind: str, array: str) -> str:
        """Type of a structure: `LayerWeights` for elements of an array `layers` of weights."""
        key = struct, kind
        if key not in self._names:
            one = re.sub(r"_?\d+$|(?<=[^s])s$", "", array) or array
            self._names[key] = self._scope.unique(type_name(one) + kind)
        return self._names[key]

    def is_taken(self, name: str) -> bool:
        """Returns whether a type of that name exists."""
        return self._scope.is_taken(name)


_INDEX = re.compile(r"\[(\d+)\]")


def array_counts(paths: Iterable[str]) -> dict[str, int]:
    """Number of elements of the arrays in access paths, by the access path of the array."""
    counts: dict[str, int] = {}
    for path in paths:
        for found in _INDEX.finditer(path):
            array = path[: found.start()]
            counts[array] = max(counts.get(array, 0), int(found[1]) + 1)
    return counts


def next_element(before: str, after: str) -> tuple[str, int, str] | None:
    """Matches two access paths that differ only in one index, which grows by one.

    Returns the path of the array, the first index, and the path in the element; None otherwise."""
    one, two = _INDEX.split(before), _INDEX.split(after)
    if len(one) != len(two):
        return None
    differing = [i for i, (a, b) in enumerate(zip(one, two, strict=True)) if a != b]
    if len(differing) != 1 or differing[0] % 2 == 0:
        return None
    (place,) = differing
    if int(two[place]) != int(one[place]) + 1:
        return None
    start = [found.start() for found in _INDEX.finditer(before)][place // 2]
    end = start + len(one[place]) + 2
    return before[:start], int(one[place]), before[end:].lstrip(".")


def element_prefixes(path: str) -> Iterator[tuple[str, str]]:
    """Yields the array elements on an access path, outermost first.

    Each comes with the rest of the path."""
    for found in _INDEX.finditer(path):
        if path[found.end() : found.end() + 1] == ".":
            yield path[: found.end()], path[found.end() + 1 :]


def element_name(path: str, scope: NameScope) -> str:
    """Name of a parameter that is an element of an array: `layer` for `model.layers[0]`."""
    return scope.unique(identifier(array_name(path).removesuffix("s")))


def array_name(path: str) -> str:
    """Name of the array of an element, by its access path: `layers`."""
    return path.rpartition("[")[0].rpartition(".")[2]
