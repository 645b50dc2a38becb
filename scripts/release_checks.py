"""Checks what modules become for each release of tt-metal: link, kernels, and the real library.

    scripts/release_checks.py FOLDER... --count 120 --python 'ttnn70/bin/python:ttnn81/bin/python'

Takes modules evenly from the folders, compiles each for one target and level, which take turns, and
for every release: the host program has to link with the libraries of its wheel, the kernels to
compile with its device headers, and the package, on a mocked device, to take the calls of the
program. Modules that compile for no release, as those that are refused, are replaced by the next.
With --machine they are compiled for that machine, and the mocked device is one of its chips.
Prints a line for each fault and a summary; the exit status is 0 if there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import read_manifest
from scripts.kernel_check_toolchain import device_headers, find_clang
from scripts.link_check import (
    ROOT,
    LinkCheckError,
    check,
    project_objects,
    read_header_only,
    wheel_libraries,
)
from ttcodegen.cli.ttcodegen import main as ttcodegen
from ttcodegen.rt.commands.validate import Validate
from ttcodegen.rt.judging.library import Libraries
from ttcodegen.systems.releases import RELEASES

SUFFIXES = (".mlir", ".mlirbc", ".txt")
FORMS = (
    ("ttnn, level 0", ("--optimize", "0")),
    ("ttnn, level 2", ("--optimize", "2")),
    ("ttmetal", ("--target", "ttmetal")),
    ("ttnn, level 1", ("--optimize", "1")),
)
"""Targets and levels, by name."""
CHECKS = ("link", "kernels", "calls")
_LIBRARIES = Libraries()
"""Libraries that this process asks about one module after another."""


@dataclass(frozen=True)
class Checks:
    """Extent of the checks.

    Attributes:
        releases: those that modules are compiled for.
        forms: the targets and levels, which take turns.
        checks: those of `CHECKS` that are made.
        machine: the machine that modules are compiled for, the default of the compiler if empty.
        python: the Pythons that have the library, as `ttcodegen-rt validate` takes them; without
            them it is not asked.
    """

    releases: Sequence[str] = tuple(RELEASES)
    forms: Sequence[tuple[str, tuple[str, ...]]] = FORMS
    checks: Sequence[str] = CHECKS
    machine: str = ""
    python: str = ""


@dataclass
class Finding:
    """Result of the checks of a module.

    Attributes:
        module: its path.
        form: the target and the level.
        compiled: the releases that it compiles for.
        faults: a line for each fault.
        not_judged: by release, the ops that the library was not asked about.
    """

    module: Path
    form: str
    compiled: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    not_judged: list[str] = field(default_factory=list[str])


def taken_evenly(folders: Sequence[Path]) -> list[Path]:
    """The modules of folders in an order whose beginning, however long, is taken evenly from all:
    the folders take turns, and the modules of each are in the order of a halved interval."""
    orders: list[list[Path]] = []
    for folder in folders:
        files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
        orders.append([files[index] for index in _halved(len(files))])
    turns = zip_longest(*orders)
    return [path for turn in turns for path in turn if path is not None]


def _halved(size: int) -> Iterator[int]:
    """The indices below a size: the middle of the longest interval that is left, each time."""
    waiting = [(0, size)]
    while waiting:
        further: list[tuple[int, int]] = []
        for begin, end in waiting:
            if begin < end:
                middle = (begin + end) // 2
                yield middle
                further += [(begin, middle), (middle + 1, end)]
        waiting = further


def checked(task: tuple[int, Path], extent: Checks) -> Finding:
    """Checks a module, in the form of that number."""
    number, module = task
    form, options = extent.forms[number % len(extent.forms)]
    found = Finding(module, form)
    machine = ("--machine", extent.machine) if extent.machine else ()
    with tempfile.TemporaryDirectory() as folder:
        for release in extent.releases:
            out = Path(folder) / release
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                arguments = [str(module), "-o", str(out), "-q", "--tt-metal", release]
                status = ttcodegen([*arguments, *machine, *options])
            if status != 0:
                first = next((line for line in said.getvalue().splitlines() if "error" in line), "")
                found.faults.append(f"{release}: does not compile: {first}")
                continue
            found.compiled.append(release)
            faults = _faults(out, release, extent.checks)
            found.faults += (f"{release}: {each}" for each in faults)
            if "calls" in extent.checks and extent.python and options[0] == "--optimize":
                _judge(out, release, extent.python, found)
            shutil.rmtree(out)
    if not found.compiled:
        found.faults.clear()
    return found


def _faults(out: Path, release: str, checks: Sequence[str]) -> Iterator[str]:
    """Yields the names that do not link, and the faults of kernels."""
    wheels = ROOT / "build" / "wheels"
    if "link" in checks:
        yield from _link_faults(out, release, wheels)
    if "kernels" in checks and (configurations := read_manifest(out / "manifest.json")):
        device = device_headers(wheels, release=release)
        kernel_check = KernelCheck(find_clang(), device, ROOT / "build" / "kernel_check", jobs=1)
        yield from (f"kernel: {fault}" for fault in kernel_check.check(configurations))


def _link_faults(out: Path, release: str, wheels: Path) -> Iterator[str]:
    """Yields the names that the libraries of the wheel do not have."""
    header_only = read_header_only(ROOT / "standalone" / "header_only.txt")
    try:
        objects = project_objects(out, ROOT / "build" / "link_check", release)
        for name in check(objects, [], wheel_libraries(wheels, release), header_only):
            yield f"not in the libraries: {name}"
    except LinkCheckError as error:
        lines = [line for line in str(error).splitlines() if "error" in line] or [str(error)]
        yield f"the host program does not compile: {lines[0]}"


def _judge(out: Path, release: str, python: str, found: Finding) -> None:
    """Asks the library about the calls of a program."""
    arguments = {"binary": out, "--python": python, "--log-level": "CRITICAL"}
    for result in Validate(arguments, libraries=_LIBRARIES).execute():
        if result.error is not None:
            found.faults.append(f"{release}: {result.error}")
            continue
        for program in result.content["programs"]:
            faults = (*program["refused"], *program["different"])
            found.faults += (f"{release}: {fault}" for fault in faults)
            found.not_judged += (f"{release}: {name}" for name in program["not_judged"])


def run(
    tasks: Iterator[tuple[int, Path]], count: int, jobs: int, extent: Checks
) -> Iterator[Finding]:
    """The findings on a number of modules, in the order in which they were taken."""
    left = count
    work = partial(checked, extent=extent)
    with ProcessPoolExecutor(jobs) as pool:
        while left > 0 and (some := [task for _, task in zip(range(left), tasks, strict=False)]):
            for found in pool.map(work, some):
                left -= bool(found.compiled)
                yield found


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks the modules; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=120, help="modules (120)")
    parser.add_argument("--after", type=int, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("-j", dest="jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--python", default="", help="as ttcodegen-rt validate takes it; without "
                        "it the library is not asked")  # fmt: skip
    parser.add_argument("--release", action="append", choices=RELEASES, help="one of them (all)")
    parser.add_argument("--machine", default="", help="the machine that modules are compiled for")
    parser.add_argument("--form", action="append", choices=dict(FORMS), metavar="FORM",
                        help="one of: " + "; ".join(dict(FORMS)) + " (all in turn)")  # fmt: skip
    parser.add_argument("--check", action="append", choices=CHECKS, help="one of them (all)")
    options = parser.parse_args(arguments)
    extent = Checks(
        releases=tuple(options.release or RELEASES),
        forms=tuple((name, dict(FORMS)[name]) for name in options.form or dict(FORMS)),
        checks=tuple(options.check or CHECKS),
        machine=options.machine,
        python=options.python,
    )
    counts = Counter[str]()
    not_judged = Counter[str]()
    tasks = islice(enumerate(taken_evenly(options.folders)), options.after, None)
    found_all = run(tasks, options.count, options.jobs, extent)
    for seen, found in enumerate(found_all, options.after + 1):
        print(f"{seen}: {found.module}", file=sys.stderr)
        if not found.compiled:
            counts["refused for every release"] += 1
            continue
        counts[f"{found.form}: {'faults' if found.faults else 'without fault'}"] += 1
        not_judged.update(found.not_judged)
        for fault in found.faults:
            print(f"{found.module} ({found.form}): {fault}", flush=True)
    for name, number in sorted(counts.items()):
        print(f"{number:5} {name}")
    for name, number in sorted(not_judged.items()):
        print(f"{number:5} not judged: {name}")
    return 1 if any("faults" in name for name in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
