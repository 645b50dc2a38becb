"""Links object files against the libraries of the released ttnn wheel and names what is missing.

    scripts/link_check.py --project out                # what a project calls, of its own release
    scripts/link_check.py model.o                      # what emitted code calls
    scripts/link_check.py --surface libttcodegen_cpu.a # every function that the CPU backend defines

A wrong name, namespace or parameter type of the tt-metal API is an undefined symbol. Functions
that the release has only as templates or inline in its headers are listed in
standalone/header_only.txt. The wheel is downloaded into the cache folder where `--lib-dir` does not
say where its libraries are.
"""

from __future__ import annotations

import argparse
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ttcodegen.project.cpu_backend import public_headers
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES, release_named

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("_ttnncpp.so", "libtt_metal.so")
PIP_OPTIONS = (
    "--no-deps",
    "--only-binary=:all:",
    "--python-version=3.12",
    "--platform=manylinux_2_34_x86_64",
    "--dest",
)
EXACT = "TTCODEGEN_EXACT_DECLARATIONS"
"""Makes namespaces and types of our declarations those of the release."""
LINKER_OPTIONS = (
    "-Wl,--allow-shlib-undefined",
    "-Wl,--warn-unresolved-symbols",
    "-Wl,--no-demangle",
)
FORWARDING = re.compile(r"tt_metal_\d|unity_src_releases_")
"""An object file of standalone/src/releases: of one source, or of all in the folder."""
API = re.compile(
    r"(?<![\w:])((ttnn|tt)::|bfloat16\b)|_of_bfloat16\(|\b(un)?tilize_(nfaces|swizzled)<"
)
"""A demangled name that belongs to the API, or has it in its parameters. Some functions of tt-metal
are in no namespace: those on vectors of bfloat16 and on tiles."""


class LinkCheckError(Exception):
    """The check could not be made."""


@dataclass(frozen=True)
class HeaderOnly:
    """A demangled name, with wildcards, that needs no symbol, and where that was read."""

    pattern: str
    reason: str


def read_header_only(path: Path) -> list[HeaderOnly]:
    """Lines of `pattern | reason`; empty lines and those after # are skipped."""
    entries: list[HeaderOnly] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, reason = line.partition(" | ")
        if not separator or not reason.strip():
            raise LinkCheckError(f"{path}:{number}: expected 'pattern | reason'")
        entries.append(HeaderOnly(pattern.strip(), reason.strip()))
    return entries


def _run(command: Sequence[str], text: str | None = None) -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LinkCheckError(f"{command[0]} is not installed") from error
    if done.returncode != 0:
        raise LinkCheckError(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout + done.stderr


def demangle(symbols: Sequence[str]) -> list[str]:
    """The C++ names of symbols."""
    return _run(["c++filt"], "\n".join(symbols)).splitlines() if symbols else []


def wheel_file(cache: Path, release: str = DEFAULT_RELEASE) -> Path:
    """The wheel of a release; downloaded into `cache` if it is not there."""
    pattern = f"ttnn-{release}-*.whl"
    if not any(cache.glob(pattern)):
        cache.mkdir(parents=True, exist_ok=True)
        options = (*PIP_OPTIONS, str(cache))
        _run((sys.executable, "-m", "pip", "download", f"ttnn=={release}", *options))
    wheels = sorted(cache.glob(pattern))
    if not wheels:
        raise LinkCheckError(f"pip downloaded no wheel of ttnn {release} to {cache}")
    return wheels[0]


def wheel_libraries(cache: Path, release: str = DEFAULT_RELEASE) -> Path:
    """The folder with the libraries of the wheel; downloads and unpacks it into `cache` once."""
    unpacked = cache / f"ttnn-{release}"
    libraries = unpacked / "ttnn" / "build" / "lib"
    if all((libraries / name).is_file() for name in LIBRARIES):
        return libraries
    with zipfile.ZipFile(wheel_file(cache, release)) as wheel:
        members = [name for name in wheel.namelist() if name.startswith("ttnn/build/lib/")]
        wheel.extractall(unpacked, members)
    return libraries


def defined_functions(library: Path) -> list[str]:
    """The API functions that a library of ours defines (strong symbols: no inline functions); not
    those in the form of a later release, which forward and have sources of their own."""
    symbols: list[str] = []
    member = ""
    for line in _run(["nm", "-g", "--defined-only", str(library)]).splitlines():
        fields = line.split()
        if line.endswith(".o:"):
            member = line
        elif len(fields) == 3 and fields[1] == "T" and not FORWARDING.match(member):
            symbols.append(fields[2])
    ours = sorted(set(symbols))
    return [
        symbol
        for symbol, name in zip(ours, demangle(ours), strict=True)
        if API.search(name) and not name.startswith(("ttcodegen::", "std::"))
    ]


def _reference_object(symbols: Iterable[str], folder: Path) -> Path:
    """An object file with a pointer to every symbol."""
    source = folder / "surface.s"
    lines = ["    .data", *(f"    .quad {symbol}" for symbol in symbols)]
    lines.append('    .section .note.GNU-stack,"",@progbits')
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    target = folder / "surface.o"
    _run(["g++", "-c", str(source), "-o", str(target)])
    return target


def _has_main(objects: Sequence[Path]) -> bool:
    listing = _run(["nm", "-g", "--defined-only", *map(str, objects)])
    return any(line.split()[-2:] == ["T", "main"] for line in listing.splitlines())


def undefined_symbols(objects: Sequence[Path], libraries: Path, folder: Path) -> list[str]:
    """The symbols that neither the objects nor the wheel's libraries define."""
    inputs = [str(path) for path in objects]
    if not _has_main(objects):
        stub = folder / "main.cpp"
        stub.write_text("int main() {}\n", encoding="utf-8")
        inputs.append(str(stub))
    named = (f"-l:{name}" for name in LIBRARIES)
    options = ("-L", str(libraries), *named, "-pthread", *LINKER_OPTIONS)
    output = _run(("g++", "-no-pie", *inputs, "-o", str(folder / "linked"), *options))
    return sorted(set(re.findall(r"undefined reference to `([^']+)'", output)))


def project_objects(project: Path, cache: Path, release: str) -> list[Path]:
    """Object files of the sources of a project, compiled against the declarations of a release.

    What projects share is compiled once: `cache` keeps it by its content.

    Raises LinkCheckError if a source does not compile.
    """
    folder, command = _declarations(cache, release)
    includes = (project, project / "src", project / "include")
    command += [option for path in includes for option in ("-I", str(path))]
    support = hashlib.sha256()
    for path in sorted(project.glob("support/**/*.h*")):
        support.update(path.read_bytes())
    objects: list[Path] = []
    for source in sorted((*project.glob("src/**/*.cpp"), *project.glob("support/**/*.cpp"))):
        content = support.copy()
        content.update(source.read_bytes())
        if source.is_relative_to(project / "src"):
            for path in sorted(project.glob("src/**/*.h*")):
                content.update(path.read_bytes())
        target = folder / f"{source.stem}-{content.hexdigest()[:16]}.o"
        if not target.is_file():
            unfinished = target.with_suffix(f".{os.getpid()}")
            _run([*command, "-c", str(source), "-o", str(unfinished)])
            unfinished.replace(target)
        objects.append(target)
    return objects


def _declarations(cache: Path, release: str) -> tuple[Path, list[str]]:
    """The folder for what is compiled against the declarations of a release, as they are now, and
    the command that does so; they are precompiled once."""
    ours = ROOT / "standalone" / "include"
    command = ["g++", "-std=c++20", "-O0", "-w"]
    command += [f"-D{name}" for name in (*release_named(release).definitions, EXACT)]
    content = hashlib.sha256(repr(command).encode())
    for path in sorted(path for path in ours.rglob("*") if path.is_file()):
        content.update(path.read_bytes())
    folder = cache / f"{release}-{content.hexdigest()[:12]}"
    include = folder / "include"
    header = folder / "declarations.hpp"
    command += ["-I", str(include)]
    made = Path(f"{header}.gch")
    cache.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ours, include)
            names = [name for names in public_headers(include).values() for name in names]
            lines = [f"#include <{name}>" for name in dict.fromkeys(names)]
            header.write_text("\n".join(["#pragma once", *lines, ""]), encoding="utf-8")
            unfinished = made.with_suffix(f".{os.getpid()}")
            _run([*command, "-x", "c++-header", str(header), "-o", str(unfinished)])
            unfinished.replace(made)
    return folder, [*command, "-include", str(header)]


def check(
    objects: Sequence[Path],
    surfaces: Sequence[Path],
    libraries: Path,
    header_only: Sequence[HeaderOnly],
) -> list[str]:
    """The demangled API names that do not link.

    Raises LinkCheckError if a tool or a library is missing.
    """
    for name in LIBRARIES:
        if not (libraries / name).is_file():
            raise LinkCheckError(f"{libraries} has no {name}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        linked = list(objects)
        if surfaces:
            functions = [symbol for library in surfaces for symbol in defined_functions(library)]
            linked.append(_reference_object(functions, folder))
        names = demangle(undefined_symbols(linked, libraries, folder))
    return [
        name
        for name in names
        if API.search(name)
        and not any(fnmatch.fnmatchcase(name, entry.pattern) for entry in header_only)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all links, 1 something does not, 2 the check could not be made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("objects", nargs="*", type=Path, help="object files and static libraries")
    parser.add_argument(
        "--surface",
        action="append",
        default=[],
        type=Path,
        metavar="LIBRARY",
        help="check every API function that this static library defines",
    )
    parser.add_argument(
        "--project",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="check what a project calls, in the release that it is written for",
    )
    parser.add_argument("--release", choices=RELEASES, help="of tt-metal; that of the projects")
    parser.add_argument("--lib-dir", type=Path, help="the wheel's unpacked ttnn/build/lib")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "wheels")
    parser.add_argument("--header-only", type=Path, default=ROOT / "standalone/header_only.txt")
    options = parser.parse_args(arguments)
    if not options.objects and not options.surface and not options.project:
        parser.error("nothing to check: name object files, --project or --surface")
    header_only = read_header_only(options.header_only)
    status = 0
    try:
        for project in options.project:
            release = options.release or project_release(project)
            libraries = options.lib_dir or wheel_libraries(options.cache, release)
            objects = project_objects(project, ROOT / "build" / "link_check", release)
            missing = check(objects, [], libraries, header_only)
            status |= _report(missing, release, f"{project}: ")
        if options.objects or options.surface:
            release = options.release or DEFAULT_RELEASE
            libraries = options.lib_dir or wheel_libraries(options.cache, release)
            missing = check(options.objects, options.surface, libraries, header_only)
            status |= _report(missing, release)
    except (LinkCheckError, OSError) as error:
        print(f"link check: {error}", file=sys.stderr)
        return 2
    return status


def project_release(project: Path) -> str:
    """The release that a project is written for, as its manifest says."""
    manifest = json.loads((project / "manifest.json").read_text(encoding="utf-8"))
    return str(manifest["tt_metal_release"])


def _report(missing: Sequence[str], release: str, where: str = "") -> int:
    """Prints what is missing; returns 1 if anything is."""
    for name in missing:
        print(f"{where}not in ttnn {release}: {name}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
