"""Checks what modules become for each release of tt-metal: link, kernels, and the real library.

    scripts/release_checks.py FOLDER... --count 120 --python 'ttnn70/bin/python:ttnn81/bin/python'
    scripts/release_checks.py FOLDER... --every --machine p150 --machine n300 --check calls

Takes modules evenly from the folders, compiles each for one target and level, which take turns, or
with --every for each, and for every release: the host program has to link with the libraries of its
wheel, the kernels to compile with its device headers, and the package, on a mocked device, to take
the calls of the program. Modules that compile for no release, as those that are refused, are
replaced by the next. With --machine they are compiled for those machines, and the mocked device is
a chip of theirs. Prints a line for each fault and a summary, which --write puts into the table of a
document; the exit status is 0 if there is no fault.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, zip_longest
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
from ttcodegen.judging.library import Libraries
from ttcodegen.rt.commands.validate import Validate
from ttcodegen.systems.cards import NAMES
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
DEFAULT_MACHINE = "n150"
BEGIN, END = "<!-- checked: scripts/release_checks.py -->\n", "<!-- end of checked -->\n"
"""Marks around the rows of a page's table."""
_LIBRARIES = Libraries()
"""Libraries that this process asks about one module after another."""


@dataclass(frozen=True)
class Checks:
    """Extent of the checks.

    Attributes:
        releases: those that modules are compiled for.
        forms: the targets and levels, which take turns.
        checks: those of `CHECKS` that are made.
        machines: the machines that modules are compiled for.
        every: whether a module is compiled for each form, which take turns otherwise.
        python: the Pythons that have the library, as `ttcodegen-rt validate` takes them; without
            them it is not asked.
    """

    releases: Sequence[str] = tuple(RELEASES)
    forms: Sequence[tuple[str, tuple[str, ...]]] = FORMS
    checks: Sequence[str] = CHECKS
    machines: Sequence[str] = (DEFAULT_MACHINE,)
    every: bool = False
    python: str = ""

    def tasks(self, number: int, module: Path) -> list[Task]:
        """The tasks of a module, by its number."""
        forms = self.forms if self.every else [self.forms[number % len(self.forms)]]
        return [Task(module, *form, machine) for machine in self.machines for form in forms]


@dataclass(frozen=True)
class Task:
    """Module, form and machine of one check.

    Attributes:
        module: the path of the module.
        form: the target and the level.
        options: those of the compiler.
        machine: the machine that it is compiled for.
    """

    module: Path
    form: str
    options: tuple[str, ...]
    machine: str


@dataclass
class Finding:
    """Result of the checks of a module for a machine and a form.

    Attributes:
        task: what was checked.
        compiled: the releases that it compiles for.
        faults: a line for each fault.
        not_judged: by release, the ops that the library was not asked about.
    """

    task: Task
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


def checked(task: Task, extent: Checks) -> Finding:
    """Checks a module for a machine and a form."""
    found = Finding(task)
    with tempfile.TemporaryDirectory() as folder:
        for release in extent.releases:
            out = Path(folder) / release
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                arguments = [str(task.module), "-o", str(out), "-q", "--tt-metal", release]
                status = ttcodegen([*arguments, "--machine", task.machine, *task.options])
            if status != 0:
                first = next((line for line in said.getvalue().splitlines() if "error" in line), "")
                found.faults.append(f"{release}: does not compile: {first}")
                continue
            found.compiled.append(release)
            faults = _faults(out, release, extent.checks)
            found.faults += (f"{release}: {each}" for each in faults)
            if "calls" in extent.checks and extent.python and task.options[0] == "--optimize":
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
    modules: Iterator[tuple[int, Path]], count: int, jobs: int, extent: Checks
) -> Iterator[list[Finding]]:
    """The findings on a number of modules, in the order in which they were taken."""
    left = count
    work = partial(checked, extent=extent)
    with ProcessPoolExecutor(jobs) as pool:
        while left > 0 and (some := list(islice(modules, left))):
            tasks = [extent.tasks(number, module) for number, module in some]
            found = pool.map(work, chain.from_iterable(tasks))
            for each in tasks:
                of_module = list(islice(found, len(each)))
                left -= any(one.compiled for one in of_module)
                yield of_module


@dataclass
class Summary:
    """Counts of findings.

    Attributes:
        projects: by machine, form, and whether there are faults.
        refused: by machine and form, modules that no release takes.
        not_judged: by release and op.
    """

    projects: Counter[tuple[str, str, bool]] = field(default_factory=Counter[tuple[str, str, bool]])
    refused: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    not_judged: Counter[str] = field(default_factory=Counter[str])

    def add(self, found: Finding) -> None:
        """Counts a finding."""
        task = found.task
        if not found.compiled:
            self.refused[task.machine, task.form] += 1
            return
        self.projects[task.machine, task.form, bool(found.faults)] += len(found.compiled)
        self.not_judged.update(found.not_judged)

    @property
    def has_faults(self) -> bool:
        """True if there is a fault."""
        return any(has_faults for _, _, has_faults in self.projects)

    def lines(self) -> Iterator[str]:
        """The counts, as lines."""
        for (machine, form, has_faults), number in sorted(self.projects.items()):
            yield f"{number:5} {machine}, {form}: {'faults' if has_faults else 'without fault'}"
        for (machine, form), number in sorted(self.refused.items()):
            yield f"{number:5} {machine}, {form}: refused for every release"
        for name, number in sorted(self.not_judged.items()):
            yield f"{number:5} not judged: {name}"

    def rows(self, modules: str, checks: str) -> Iterator[str]:
        """The counts as rows of a table, by machine; the first three cells say what was checked."""
        for machine in dict.fromkeys(machine for machine, *_ in sorted(self.projects)):
            of_machine = {key[1:]: n for key, n in self.projects.items() if key[0] == machine}
            forms = Counter[str]()
            for (form, _), number in sorted(of_machine.items()):
                forms[form] += number
            said = ", ".join(f"{form}: {number}" for form, number in forms.items())
            faults = sum(number for (_, has_faults), number in of_machine.items() if has_faults)
            yield f"| {modules} | {machine} | {checks} | {said} | {faults or 'none'} |"


def write_rows(page: Path, rows: Iterable[str]) -> None:
    """Writes rows into the table of a page, in place of those that have the same first cells."""
    text = page.read_text("utf-8")
    before, mark, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{page} has no table between '{BEGIN.strip()}' and '{END.strip()}'")
    found = {tuple(row.split("|")[1:4]): row for row in (*table.splitlines(), *rows)}
    lines = "".join(f"{found[key]}\n" for key in sorted(found))
    page.write_text(f"{before}{mark}{lines}{end}{after}", "utf-8")


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
    parser.add_argument("--machine", action="append", choices=NAMES, metavar="MACHINE",
                        help=f"one that modules are compiled for ({DEFAULT_MACHINE})")  # fmt: skip
    parser.add_argument("--form", action="append", choices=dict(FORMS), metavar="FORM",
                        help="one of: " + "; ".join(dict(FORMS)) + " (all in turn)")  # fmt: skip
    parser.add_argument("--every", action="store_true", help="each form for each module")
    parser.add_argument("--check", action="append", choices=CHECKS, help="one of them (all)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page with the table")
    options = parser.parse_args(arguments)
    extent = Checks(
        releases=tuple(options.release or RELEASES),
        forms=tuple((name, dict(FORMS)[name]) for name in options.form or dict(FORMS)),
        checks=tuple(options.check or CHECKS),
        machines=tuple(options.machine or [DEFAULT_MACHINE]),
        every=options.every,
        python=options.python,
    )
    summary = Summary()
    taken = 0
    modules = islice(enumerate(taken_evenly(options.folders)), options.after, None)
    found_all = run(modules, options.count, options.jobs, extent)
    for seen, of_module in enumerate(found_all, options.after + 1):
        print(f"{seen}: {of_module[0].task.module}", file=sys.stderr)
        taken += any(found.compiled for found in of_module)
        for found in of_module:
            summary.add(found)
            task = found.task
            for fault in found.faults:
                print(f"{task.module} ({task.machine}, {task.form}): {fault}", flush=True)
    for line in summary.lines():
        print(line)
    if options.write is not None:
        asked = [each for each in extent.checks if each != "calls" or extent.python]
        names = ", ".join(dict.fromkeys(folder.name for folder in options.folders))
        write_rows(options.write, summary.rows(f"{taken} of {names}", ", ".join(asked)))
    return 1 if summary.has_faults else 0


if __name__ == "__main__":
    sys.exit(main())
