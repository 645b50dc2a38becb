"""Says on one page what an uplift to another release of ttnn needs.

    scripts/new_release.py ttnn-0.81.1-cp312-....whl      # or its version, which is downloaded

It compares two wheels: which functions that ttcodegen calls still link, the signatures of the
others old and new, the functions of kernels that the device headers declare otherwise, and the
fields of structs. docs/releases.md says what to do with each.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.link_check import (
    LIBRARIES,
    ROOT,
    LinkCheckError,
    defined_functions,
    demangle,
    wheel_file,
)
from scripts.release_kernels import DEVICE, KernelChange, kernel_changes
from scripts.release_symbols import Change, Comparison, compare, struct_fields
from ttcodegen.dialects.ttkernel.definition import CallForm
from ttcodegen.dialects.ttkernel.operation import functions_in
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.project.cpu_backend import ensure_cpu_backend
from ttcodegen.project.toolchain import BuildError, find_toolchain
from ttcodegen.systems.releases import CATALOGUE_RELEASE, RELEASES, release_named

_VERSION = re.compile(r"ttnn-(\d+(?:\.\d+)+)")
_WIDTH = 100


def unpacked(given: str, cache: Path) -> tuple[str, Path]:
    """The version of a wheel and its folder ttnn: of a file, a version, or what is unpacked.

    Raises LinkCheckError if there is no such wheel.
    """
    path = Path(given)
    if path.is_dir():
        found = [each for each in (path, path / "ttnn") if (each / DEVICE).is_dir()]
        if not found:
            raise LinkCheckError(f"{path} is no unpacked wheel of ttnn")
        named = (*path.parent.glob("ttnn-*"), *path.glob("ttnn-*"))
        names = [match[1] for each in named if (match := _version(each))]
        return names[0] if names else path.name, found[0]
    wheel = path if path.suffix == ".whl" else wheel_file(cache, given)
    match = _version(wheel)
    if not wheel.is_file() or match is None:
        raise LinkCheckError(f"{wheel} is no wheel of ttnn")
    folder = cache / f"ttnn-{match[1]}-compared"
    if not folder.is_dir():
        with zipfile.ZipFile(wheel) as content:
            wanted = ("ttnn/build/lib/", f"ttnn/{DEVICE}/", "ttnn/_ttnn")
            members = [name for name in content.namelist() if name.startswith(wanted)]
            content.extractall(folder, members)
    return match[1], folder / "ttnn"


def _version(path: Path) -> re.Match[str] | None:
    return _VERSION.match(path.name)


def exported(wheel: Path) -> list[str]:
    """The symbols that the libraries of a wheel export."""
    found: set[str] = set()
    for name in LIBRARIES:
        command = ["nm", "-D", "--defined-only", str(wheel / "build" / "lib" / name)]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found |= {line.split()[2] for line in listed.splitlines() if len(line.split()) == 3}
    return sorted(found)


def kernel_functions() -> dict[str, str]:
    """The functions of the kernel API that kernels call, with the headers that declare them."""
    return {
        function.function: function.header
        for definition in kernel_ops().values()
        for function in functions_in(definition, CATALOGUE_RELEASE)
        if function.form is CallForm.FUNCTION
    }


def declared_structs(include: Path) -> set[str]:
    """The names of the structs that the CPU backend declares."""
    texts = (path.read_text("utf-8") for path in sorted(include.rglob("*.hpp")))
    return {name for text in texts for name in re.findall(r"\bstruct (\w+) (?:final )?\{", text)}


def stated_calls(release: str) -> set[str]:
    """The functions that the table of a release says something of; none if it has no table."""
    if release not in RELEASES:
        return set()
    table = release_named(release)
    return {*table.calls, *table.absent_calls}


def stated_kernels(release: str) -> set[str]:
    """The functions of kernels that the table of a release says something of."""
    if release not in RELEASES:
        return set()
    table = release_named(release)
    ops = kernel_ops()
    return {
        function.function
        for name in (*table.kernels, *table.absent_kernels)
        for function in functions_in(ops[name], CATALOGUE_RELEASE)
    }


def page(
    releases: tuple[str, str],
    calls: Comparison,
    kernels: Sequence[KernelChange],
    fields: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
    stated: tuple[Collection[str], Collection[str]] = ((), ()),
) -> str:
    """The report.

    Args:
        releases: the names of the old and the new one.
        calls: functions of the libraries that are in use.
        kernels: functions of kernels that changed.
        fields: by struct, the fields of both releases.
        stated: the functions, and those of kernels, that the table of the new one has rows for.
    """
    old, new = releases
    other = [each for each in calls.changed if each.new is not None]
    gone = [each for each in calls.changed if each.new is None]
    counts = (
        (len(calls.same), "link as they are"),
        (len(calls.moved), "link once they are compiled again: namespaces of types changed"),
        (sum(len(each.names) for each in other), "have other parameters"),
        (sum(len(each.names) for each in gone), "are not there, or inline now"),
    )
    total = sum(count for count, _ in counts)
    lines = [f"ttnn {old} -> {new}", "", f"{total} functions of the libraries are in use:"]
    lines += [f"{count:6} {text}" for count, text in counts]
    for (before, after), count in sorted(calls.types.items(), key=lambda each: -each[1]):
        lines.append(f"           {before} is {after} ({count})")
    lines += _changed_functions(other, releases, stated[0])
    if gone:
        lines += ["", "Functions that are not there", ""]
        lines += [f"  {name}{_mark(name, stated[0])}" for each in gone for name in each.names]
    lines += _changed_kernels(kernels, releases, stated[1])
    lines += _changed_fields(fields)
    return "\n".join([*lines, ""])


def _mark(name: str, stated: Collection[str]) -> str:
    return "  [has a row]" if name in stated else ""


def _changed_functions(
    changes: Sequence[Change], releases: tuple[str, str], stated: Collection[str]
) -> list[str]:
    if not changes:
        return []
    lines = ["", "Functions with more parameters at the end, which the table may leave out", ""]
    for change in changes:
        if change.is_appended:
            names = ", ".join(f"{name}{_mark(name, stated)}" for name in change.names)
            added = ", ".join(text for _, _, text in change.difference)
            lines += _wrapped("  ", [f"{names}: + {added}"])
    lines += ["", "Functions with other parameters (- went, + came, with their places)", ""]
    for change in changes:
        assert change.new is not None
        if change.is_appended:
            continue
        lines += _wrapped("  ", (f"{name}{_mark(name, stated)}" for name in change.names))
        for release, signature in zip(releases, (change.old, change.new), strict=True):
            lines += _wrapped(f"    {release}  ", signature.short.parameters)
        lines += [f"      {verb} {place}: {text}" for verb, place, text in change.difference]
    return lines


def _wrapped(start: str, parts: Iterable[str]) -> list[str]:
    text = ", ".join(parts)
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [start.rstrip()]


def _changed_kernels(
    changes: Sequence[KernelChange], releases: tuple[str, str], stated: Collection[str]
) -> list[str]:
    gone = [each for each in changes if not each.now]
    there = [each for each in changes if each.now]
    lines: list[str] = []
    if gone:
        lines += ["", "Functions of kernels that the device headers no longer declare", ""]
        by_header: dict[str, list[str]] = {}
        for change in gone:
            name = f"{change.function}{_mark(change.function, stated)}"
            by_header.setdefault(change.header, []).append(name)
        for header, names in by_header.items():
            lines += _wrapped(f"  {header}: ", names)
    if there:
        lines += ["", "Functions of kernels that they declare otherwise", ""]
    for change in there:
        short = "; no full initialisation any more" if change.is_short else ""
        where = "" if change.now == change.header else f", now in {change.now}"
        mark = _mark(change.function, stated)
        lines.append(f"  {change.function} ({change.header}{where}){short}{mark}")
        for release, forms in zip(releases, (change.old, change.new), strict=True):
            for form in forms:
                lines += _wrapped(f"    {release}  ", [form])
    return lines


def _changed_fields(
    fields: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
) -> list[str]:
    lines: list[str] = []
    for name, (before, after) in sorted(fields.items()):
        went = [each for each in before if each not in after]
        came = [each for each in after if each not in before]
        order = [each for each in after if each in before]
        if not (went or came) and order == [each for each in before if each in after]:
            continue
        is_end = not went and after[: len(before)] == before
        parts = [f"- {each}" for each in went] + [f"+ {each}" for each in came]
        where = " (at the end)" if is_end else " (designated initialisers need the order)"
        lines += _wrapped(f"  {name}: ", [", ".join(parts) + where])
    return ["", "Fields of structs", "", *lines] if lines else []


def report(old: tuple[str, Path], new: tuple[str, Path], library: Path) -> str:
    """The page on two wheels, by their versions and folders.

    Args:
        library: the CPU backend, whose functions are those that programs call.
    """
    available = exported(old[1])
    used = sorted(set(defined_functions(library)) & set(available))
    calls = compare(demangle(used), demangle(exported(new[1])))
    kernels = kernel_changes(kernel_functions(), old[1], new[1])
    structs = declared_structs(ROOT / "standalone" / "include")
    before, after = (_printed_fields(wheel) for _, wheel in (old, new))
    fields = {
        name: (before[name], after[name]) for name in sorted(structs & before.keys() & after.keys())
    }
    stated = (stated_calls(new[0]), stated_kernels(new[0]))
    return page((old[0], new[0]), calls, kernels, fields, stated)


def _printed_fields(wheel: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for binding in sorted(wheel.glob("_ttnn*.so")):
        found.update(struct_fields(binding))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 the page was printed, 2 the wheels could not be compared."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("wheel", metavar="WHEEL", help="a wheel, its folder, or its version")
    parser.add_argument(
        "--against",
        default=CATALOGUE_RELEASE.name,
        metavar="WHEEL",
        help=f"the release that calls are stated for ({CATALOGUE_RELEASE.name})",
    )
    parser.add_argument("--library", type=Path, help="a built libttcodegen_cpu.a")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "wheels")
    options = parser.parse_args(arguments)
    try:
        old, new = (unpacked(each, options.cache) for each in (options.against, options.wheel))
        library = options.library
        if library is None:
            library = ensure_cpu_backend(find_toolchain()).folder / "lib" / "libttcodegen_cpu.a"
        print(report(old, new, library), end="")
    except (LinkCheckError, BuildError, OSError, subprocess.CalledProcessError) as error:
        print(f"new release: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
