"""The kernel API of two wheels of ttnn, side by side, as far as kernels call it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.initialisation_table import InitialisationTable

DEVICE = "tt_metal/hw/inc"
"""The folder of the headers that kernels include, in the folder ttnn of a wheel."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ADDED_EVERYWHERE = re.compile(r",? ?bool (is_fp32_dest_acc_en|enforce_fp32_accumulation) = [\w!]+")


@dataclass(frozen=True)
class KernelChange:
    """A function of the kernel API that a release declares otherwise.

    Attributes:
        function: its name.
        header: where the old release declares it, below DEVICE.
        now: another header, if the new release has it in another one; empty if it has it nowhere.
        old, new: the forms that only one of them has.
        is_short: true if it was a full initialisation and is none any more.
    """

    function: str
    header: str
    now: str
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    is_short: bool = False


def kernel_changes(functions: Mapping[str, str], old: Path, new: Path) -> list[KernelChange]:
    """The functions that changed, in the order of their headers.

    Args:
        functions: by name, the headers that declare them in the old release.
        old, new: the folders ttnn of both wheels.
    """
    full = [InitialisationTable.read(each).full for each in (old, new)]
    before, after = _texts(old), _texts(new)
    found: list[KernelChange] = []
    for function, header in sorted(functions.items(), key=lambda each: (each[1], each[0])):
        if header not in before or not _is_declared(function, before[header]):
            continue
        now = header if _is_declared(function, after.get(header, "")) else ""
        if not now:
            others = (path for path, text in after.items() if _is_declared(function, text))
            now = next((path for path in others if "/experimental/" not in path), "")
        forms = set(_forms(function, before[header]))
        later = set(_forms(function, after[now])) if now else set[str]()
        change = KernelChange(
            function,
            header,
            now,
            tuple(sorted(f for f in forms if now and not any(_takes(each, f) for each in later))),
            tuple(sorted(later - forms)),
            bool(now) and function in full[0] and function not in full[1],
        )
        if now != header or change.old or change.is_short:
            found.append(change)
    return found


def _texts(wheel: Path) -> dict[str, str]:
    root = wheel / DEVICE
    return {
        path.relative_to(root).as_posix(): _COMMENT.sub("", path.read_text("utf-8", "replace"))
        for path in sorted(root.joinpath("api").rglob("*.h*"))
    }


def _is_declared(function: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(function)}\s*\(", text) is not None


def _forms(function: str, text: str) -> Iterator[str]:
    """The parameters of each declaration, with those of its template; what each function of a
    release got in the same way is left out."""
    pattern = (
        r"(?:template\s*<([^;{}()]*)>\s*)?(?:\[\[[^\]]*\]\]\s*)?"
        r"(?:ALWI|FORCE_INLINE|inline)\s+(?:inline\s+)?(?:__attribute__\(\(\w+\)\)\s+)?[\w:]+[&*\s]+"
        rf"{re.escape(function)}\s*\(([^;{{}}]*?)\)\s*\{{"
    )
    for match in re.finditer(pattern, text):
        template, parameters = (
            re.sub(r"\s+", " ", part or "").replace("std::", "").replace("const ", "").strip()
            for part in match.groups()
        )
        template = _ADDED_EVERYWHERE.sub("", template)
        form = f"<{template}>({parameters})" if template else f"({parameters})"
        yield re.sub(r"\s*=\s*", " = ", form)


def _takes(new: str, old: str) -> bool:
    """True if each call of the old form is one of the new: that only has more parameters, with
    defaults."""
    pairs = [(form.rpartition("(")[0], form.rpartition("(")[2]) for form in (new, old)]
    for theirs, ours in zip(pairs[0], pairs[1], strict=True):
        parts = [re.split(r", ?", part.strip("<>() ")) for part in (theirs, ours)]
        after, before = ([each for each in part if each] for part in parts)
        if after[: len(before)] != before or not all("=" in each for each in after[len(before) :]):
            return False
    return True
