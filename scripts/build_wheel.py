"""Builds a wheel for this platform that holds the CPU backend, compiled.

    python scripts/build_wheel.py [-o dist] [--levels x86-64-v3 x86-64-v2] [--jobs N]

What is installed from it needs no build of the backend where one of the levels suits the processor
and the machine's compiler has the libraries that the backend was linked with; elsewhere the backend
is built from its sources, which the wheel holds as well. The tag of the wheel is the manylinux one
of the newest version of a system library that the compiled code requires: build it in the oldest
distribution that is to be served (docs/packaging.md).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ttcodegen.project.cpu_backend import (  # noqa: E402
    DESCRIPTION,
    LEVELS,
    sources_hash,
)
from ttcodegen.project.toolchain import Toolchain, find_toolchain  # noqa: E402

SOURCES = ROOT / "standalone"

_SYMBOL = re.compile(r"\((GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)\)")

_FIRST_GLIBC = {
    # The manylinux that has each version of libstdc++'s symbols, as in auditwheel's policies.
    "GLIBCXX": (
        ((3, 4, 19), (2, 17)),
        ((3, 4, 24), (2, 28)),
        ((3, 4, 29), (2, 34)),
        ((3, 4, 30), (2, 35)),
        ((3, 4, 32), (2, 39)),
    ),
    "CXXABI": (
        ((1, 3, 7), (2, 17)),
        ((1, 3, 11), (2, 28)),
        ((1, 3, 13), (2, 34)),
        ((1, 3, 14), (2, 39)),
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the wheel and prints its path."""
    levels = list(LEVELS.get(platform.machine(), {}))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", dest="out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--levels", nargs="+", choices=levels, default=levels)
    parser.add_argument("--build-folder", type=Path, default=ROOT / "build" / "wheel")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if find_spec("pip") is None:
        sys.exit(f"pip is not installed for {sys.executable}: it builds the wheel")
    if not levels:
        sys.exit(f"there are no levels of processors for {platform.machine()}")
    toolchain = find_toolchain()
    backend: Path = options.build_folder / "_backend"
    shutil.rmtree(backend, ignore_errors=True)
    for level in options.levels:
        compile_level(toolchain, level, options.build_folder / level, options.jobs)
        shutil.copytree(options.build_folder / level / "installed" / "lib", backend / level / "lib")
    description = {"sources": sources_hash(SOURCES), "compiler": toolchain.name}
    backend.joinpath(DESCRIPTION).write_text(json.dumps(description, indent=2) + "\n")
    libraries = sorted(backend.rglob("*.a"))
    tag = f"py3-none-manylinux_{oldest_glibc(toolchain, libraries)}_{platform.machine()}"
    print(build(backend, tag, options.out))


def compile_level(toolchain: Toolchain, level: str, folder: Path, jobs: int) -> None:
    """Compiles the backend for a level of processors; installs it in `folder`/installed."""
    build = folder / "build"
    configure = [toolchain.cmake, "-G", "Ninja", "-S", str(SOURCES), "-B", str(build)]
    configure += [
        "-DCMAKE_BUILD_TYPE=Release",
        "-DTTCODEGEN_CPU_NATIVE=OFF",
        "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}",
        f"-DCMAKE_CXX_COMPILER={toolchain.compiler}",
        # Paths of this machine mean nothing to others.
        f"-DCMAKE_CXX_FLAGS=-march={level} -ffile-prefix-map={ROOT}=.",
    ]
    shutil.rmtree(folder / "installed", ignore_errors=True)
    for command in (
        configure,
        [toolchain.ninja, "-C", str(build), f"-j{jobs}"],
        [toolchain.cmake, "--install", str(build), "--prefix", str(folder / "installed")],
    ):
        subprocess.run(command, check=True, stdout=sys.stderr)


def oldest_glibc(toolchain: Toolchain, archives: Iterable[Path]) -> str:
    """The version of glibc, as in a manylinux tag, that has all that the archives ask for."""
    needed = (2, 17)
    with tempfile.TemporaryDirectory() as scratch:
        for number, archive in enumerate(archives):
            # Which versions an archive requires is only settled when it is linked.
            linked = Path(scratch, f"{number}.so")
            command = [toolchain.compiler, "-shared", "-o", str(linked), "-Wl,--whole-archive"]
            command += [str(archive), "-Wl,--no-whole-archive", "-Wl,--no-undefined", "-pthread"]
            subprocess.run([*command, "-ldl"], check=True)
            dump = ["objdump", "-T", str(linked)]
            text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
            needed = max(needed, *map(_glibc_with, _SYMBOL.findall(text)))
    return "_".join(map(str, needed))


def _glibc_with(symbol: tuple[str, str]) -> tuple[int, ...]:
    """The version of glibc in distributions that have a version of a library's symbols."""
    library, text = symbol
    version = tuple(map(int, text.split(".")))
    if library == "GLIBC":
        return version[:2]
    known = [glibc for last, glibc in _FIRST_GLIBC[library] if version <= last]
    if not known:
        raise SystemExit(f"no manylinux is known to have {library}_{text}")
    return known[0]


def build(backend: Path, tag: str, out: Path) -> Path:
    """Builds the wheel; returns its path."""
    out.mkdir(parents=True, exist_ok=True)
    before = set(out.glob("*.whl"))
    variables = {"TTCODEGEN_WHEEL_BACKEND": str(backend), "TTCODEGEN_WHEEL_TAG": tag}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(out), str(ROOT)]
    subprocess.run(command, check=True, env={**os.environ, **variables}, stdout=sys.stderr)
    made = [path for path in out.glob(f"*-{tag}.whl") if path not in before]
    return made[0] if made else max(out.glob(f"*-{tag}.whl"), key=lambda p: p.stat().st_mtime)


if __name__ == "__main__":
    main()
