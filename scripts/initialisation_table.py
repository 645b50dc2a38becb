"""Effects of the compute kernel API on the processors of a core, read from the
headers of a release.

An operation has to be preceded by its initialisation, and the headers say which one that is:
`llk_math_matmul` needs `llk_math_matmul_init`, whatever the functions around them are called. A
*full* initialisation also gives the destination registers and their semaphores back
(`llk_math_pack_sync_init`, `llk_pack_dest_init`); a *short* one does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

API = "tt_metal/hw/inc/api/compute"
FULL = frozenset({"llk_math_pack_sync_init", "llk_pack_dest_init"})
"""Calls that make an initialisation full: either processor starts at the first half again."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FUNCTION = re.compile(
    r"(?:template\s*<(?P<parameters>[^{};]*?)>\s*)?"
    r"(?:ALWI|inline|__attribute__\(\(always_inline\)\)|(?<=>)\s)\s*(?:inline\s+)?"
    r"(?:void|bool|u?int32_t|std::uint32_t)\s+(?P<name>\w+)\s*\("
)
_CALL = re.compile(r"\b(?P<name>[A-Za-z_]\w*)\s*(?:<(?P<template>[^;(){}]*)>)?\s*\(")
_LOW_LEVEL = re.compile(r"llk_(unpack|math|pack)_(\w+)")
_PACKS = frozenset({"llk_pack", "llk_matmul_pack", "llk_pack_block"})
_SETS = re.compile(r"^(?P<core>\w+?)_(?:re)?init(?:_(?P<variant>\w+))?$")
_KINDS = (
    re.compile(r"\bELW(ADD|SUB|MUL)\b"),
    re.compile(r"\b(NONE|COL|ROW|SCALAR)\b"),
    re.compile(r"\b(SUM|AVG|MAX|MIN)\b"),
    re.compile(r"\b(REDUCE_(?:ROW|COL|SCALAR))\b"),
)
"""Words of template arguments that distinguish the uses of a low-level kernel."""
_TRANSPOSED = "transposed"
_TRANSPOSES = ("transpose_wh.", "transpose.")
"""The header of transposes, in 0.70.1 and later."""
_NOT_OPERATIONS = re.compile(
    r"section_done|wait_for|reconfig|hw_configure|dummy_valid|set_fp32|special_value|relu|l1_acc|"
    r"offset_registers"
)


@dataclass(frozen=True)
class Step:
    """One thing that a call does.

    Attributes:
        verb: "full", "set" or "undo" of an initialisation, "need" of an operation; "mask" and
            "unmask" of what packing keeps of the result of a reduction.
        engine: unpack, math or pack.
        core: which low-level kernel, such as "matmul".
        kind: what distinguishes its uses, such as "ADD ROW"; empty where the call does not say.
    """

    verb: str
    engine: str = ""
    core: str = ""
    kind: str = ""


@dataclass(frozen=True)
class _Body:
    header: str
    parameters: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class InitialisationTable:
    """The functions of api/compute of a release.

    Attributes:
        bodies: by name, the texts of all overloads.
    """

    bodies: Mapping[str, Sequence[_Body]]
    _steps: dict[tuple[str, str], tuple[Step, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[Step, ...]]
    )

    @classmethod
    def read(cls, device: Path, arch: str = "wormhole_b0") -> InitialisationTable:
        """The table of the headers below the folder of `device_headers`."""
        bodies: dict[str, list[_Body]] = {}
        root = device / API
        for path in sorted(root.rglob("*.h")):
            text = _for_architecture(_COMMENT.sub("", path.read_text("utf-8")), arch)
            for name, parameters, body in _functions(text):
                header = path.relative_to(root).as_posix()
                bodies.setdefault(name, []).append(_Body(header, parameters, body))
        return cls({name: _of_circular_buffers(each) for name, each in bodies.items()})

    def steps(self, name: str, template: str = "") -> tuple[Step, ...]:
        """The steps of a call, in order; none of a function that is not in the API.

        Args:
            template: the template arguments as they are written.
        """
        key = (name, template)
        if key not in self._steps:
            self._steps[key] = ()  # A function that calls itself adds nothing.
            self._steps[key] = self._of_transposes(name, dict.fromkeys(self._found(name, template)))
        return self._steps[key]

    def _of_transposes(self, name: str, steps: Iterable[Step]) -> tuple[Step, ...]:
        """Unpacking that transposes is distinguished by an argument of its initialisation;
        operations that need it are in one header with it."""
        bodies = self.bodies.get(name, ())
        transposes = any(each.header.startswith(_TRANSPOSES) for each in bodies)
        return tuple(
            replace(step, kind=_TRANSPOSED)
            if transposes and (step.engine, step.core) == ("unpack", "A")
            else step
            for step in steps
        )

    def _found(self, name: str, template: str) -> Iterator[Step]:
        for body in self.bodies.get(name, ()):
            given = dict(zip(body.parameters, _arguments(template), strict=False))
            for match in _CALL.finditer(body.text):
                words = _replaced(match["template"] or "", given)
                called = match["name"]
                if called in FULL:
                    yield Step("full")
                elif called in _PACKS:
                    yield Step("need", "pack", "tiles")
                elif low_level := _LOW_LEVEL.fullmatch(called):
                    yield from _low_level_steps(*low_level.groups(), words)
                elif called != name and called in self.bodies:
                    yield from self.steps(called, words)

    def is_full(self, name: str) -> bool:
        """True if a function is a full initialisation."""
        return Step("full") in self.steps(name)

    @cached_property
    def full(self) -> dict[str, str]:
        """The full initialisations with their headers."""
        return {
            name: bodies[0].header
            for name, bodies in sorted(self.bodies.items())
            if self.is_full(name)
        }

    @cached_property
    def undone(self) -> dict[tuple[str, str], str]:
        """State to be undone, by engine and core, with the function of the API that does so."""
        found: dict[tuple[str, str], str] = {}
        for name in sorted(self.bodies, key=lambda name: (len(name), name)):
            if not name.endswith("_uninit"):
                continue
            for step in self.steps(name):
                if step.verb == "undo":
                    found.setdefault((step.engine, step.core), name)
        # A copy's initialisation writes all that one with a broadcast changes; the kernels of the
        # release leave unary_bcast_uninit out.
        left_out = ("unary_bcast_uninit", "reduce_uninit")
        return {key: name for key, name in found.items() if name not in left_out}

    # The vector engine

    def vector_initialisations(self, name: str) -> frozenset[str]:
        """The initialisations that an operation of the vector engine may follow; none if it needs
        none, or is no such operation."""
        bodies = self.bodies.get(name)
        if bodies is None or "init" in name or not _is_vector(bodies[0].text):
            return frozenset()
        if f"{name}_init" in self.bodies:
            return frozenset({f"{name}_init"})
        return frozenset(self._vector_inits.get(bodies[0].header, ()))

    @cached_property
    def _vector_inits(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, bodies in self.bodies.items():
            if "init" in name and _is_vector(bodies[0].text):
                found.setdefault(bodies[0].header, []).append(name)
        return found

    def is_vector_initialisation(self, name: str) -> bool:
        """True if a function sets the vector engine up."""
        return "init" in name and name in self.bodies and _is_vector(self.bodies[name][0].text)


def _of_circular_buffers(bodies: Sequence[_Body]) -> Sequence[_Body]:
    """The overloads of a function that take circular buffers: headers in experimental/ have others,
    of operands as objects, with low-level kernels of their own."""
    stable = [body for body in bodies if not body.header.startswith("experimental/")]
    return stable or bodies


def _is_vector(text: str) -> bool:
    return "sfpu" in text.lower()


def _low_level_steps(engine: str, name: str, template: str) -> Iterator[Step]:
    if _NOT_OPERATIONS.search(name) or "sfpu" in name:
        return
    kind = " ".join(found[1] for each in _KINDS if (found := each.search(template)))
    # An average is a sum with another scaler.
    kind = kind.replace("AVG", "SUM")
    if "reduce_mask" in name:
        yield Step("unmask" if "clear" in name else "mask")
    elif name.endswith("_uninit") or "_uninit_" in name:
        yield Step("undo", engine, _family(name.partition("_uninit")[0]))
    elif name == "init" or name.startswith("init_"):
        yield Step("set", engine, "tiles")
    elif match := _SETS.match(name):
        yield Step("set", engine, _family(match["core"]), kind)
    else:
        yield Step("need", engine, _family(name), kind)


def _family(core: str) -> str:
    """A low-level kernel without what names a variant of it that has the same initialisation."""
    return re.sub(r"(_block|_tile|_runtime)?_*$", "", core) or core


def _arguments(template: str) -> list[str]:
    return [part.strip() for part in template.split(",")] if template.strip() else []


def _replaced(text: str, given: Mapping[str, str]) -> str:
    return re.sub(r"\b\w+\b", lambda match: given.get(match[0], match[0]), text)


def _functions(text: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for match in _FUNCTION.finditer(text):
        end = _closing(text, match.end() - 1, "()")
        start = text.find("{", end)
        if start < 0 or text[end:start].strip():
            continue
        declared = re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", match["parameters"] or "")
        yield match["name"], tuple(declared), text[start : _closing(text, start, "{}")]


def _closing(text: str, start: int, pair: str) -> int:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == pair[0]) - (text[position] == pair[1])
        if depth == 0:
            return position + 1
    return len(text)


def _for_architecture(text: str, arch: str) -> str:
    """Without what is for other architectures; other conditions are left out, and what they choose
    between stays."""
    mine = f"ARCH_{arch.removesuffix('_b0').upper()}"
    kept: list[str] = []
    levels: list[bool | None] = []
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", line)
        if directive is None:
            if False not in levels:
                kept.append(line)
            continue
        word, condition = directive[1], directive[2]
        if word.startswith("if"):
            named = re.search(r"ARCH_\w+", condition)
            holds = None if named is None else (named[0] == mine)
            negated = word == "ifndef" or "!defined" in condition.replace(" ", "")
            levels.append(holds if holds is None else holds != negated)
        elif word == "endif":
            levels.pop()
        elif levels[-1] is not None:
            levels[-1] = not levels[-1]
    return "\n".join(kept)
