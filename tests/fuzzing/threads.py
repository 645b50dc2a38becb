"""The C API of a built module under threads: models of their own, tensors of each other, and calls
that are wrong.

`python -m tests.fuzzing.threads --sanitize` builds the CPU backend, the module and the program
under ThreadSanitizer, which takes minutes once, and runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.project.conftest import SOURCE, write
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.building import build_project
from ttcodegen.project.toolchain import Toolchain, find_toolchain

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "fuzzing-threads"
PROGRAM = Path(__file__).with_name("c_api.cpp")
TURNS = 60
SECONDS = 600
"""After which a run counts as a deadlock; it takes less than one."""
_COMPILED = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-DMODULE=tiny")


class ThreadsError(Exception):
    """A thread got what it should not have."""


def threads_mutant(numbers: random.Random) -> bytes:
    """The seed of what the threads do."""
    return json.dumps(numbers.randrange(2**31)).encode()


def use_threads(data: bytes) -> None:
    """Runs the threads once."""
    run(threads_program(), json.loads(data))


def run(program: Path, seed: int, turns: int = TURNS) -> None:
    """Runs a program of threads; raises ThreadsError with what it says if it fails."""
    command = [program, str(turns), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise ThreadsError(f"{done.returncode}: {done.stdout}{done.stderr}")


@cache
def threads_program() -> Path:
    """The program, with the module of the tests of projects."""
    toolchain = find_toolchain()
    out = _written(FOLDER / "tiny")
    library = build_project(out, "tiny", toolchain, "so").library
    assert library is not None
    return _linked(toolchain, out, library)


def sanitized_program(jobs: int) -> Path:
    """The program under ThreadSanitizer, with the whole CPU backend."""
    toolchain = find_toolchain()
    out, installed = _written(FOLDER / "sanitized" / "tiny"), FOLDER / "sanitized" / "backend"
    flags = "-DCMAKE_CXX_FLAGS=-fsanitize=thread -g1 -O1 -Wno-tsan -Wno-maybe-uninitialized"
    for source, target, options in (
        (ROOT / "standalone", "install", [f"-DCMAKE_INSTALL_PREFIX={installed}"]),
        (out, "tiny", [f"-DCMAKE_PREFIX_PATH={installed}"]),
    ):
        build = FOLDER / "sanitized" / f"build-{source.name}"
        common = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={toolchain.ninja}", flags]
        common += [f"-DCMAKE_CXX_COMPILER={toolchain.compiler}", "-DCMAKE_BUILD_TYPE=Debug"]
        command = [toolchain.cmake, "-S", source, "-B", build, *common, *options]
        subprocess.run(command, check=True)
        subprocess.run([toolchain.ninja, "-C", build, f"-j{jobs}", target], check=True)
    library = FOLDER / "sanitized" / "build-tiny" / "libtiny.so"
    return _linked(toolchain, out, library, "-fsanitize=thread", "-g1")


def _written(out: Path) -> Path:
    compiled = compile_module(Source("tiny.mlir", SOURCE), CompileOptions("tiny"))
    out.parent.mkdir(parents=True, exist_ok=True)
    write(compiled, out, force=True)
    return out


def _linked(toolchain: Toolchain, out: Path, library: Path, *options: str) -> Path:
    program = library.parent / "threads"
    paths = [
        f"-I{out}",
        f"-I{out / 'include'}",
        "-include",
        "tiny.h",
        f"-Wl,-rpath,{library.parent}",
    ]
    command = [toolchain.compiler, *_COMPILED, *options, *paths, PROGRAM, library, "-o", program]
    subprocess.run(command, check=True)
    return program


def main() -> int:
    """Runs the threads with a range of seeds; 1 at the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.threads", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many (20)")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one (0)")
    parser.add_argument("--turns", type=int, default=500, help="calls of each thread (500)")
    parser.add_argument("--sanitize", action="store_true", help="under ThreadSanitizer")
    options = parser.parse_args()
    jobs = os.cpu_count() or 1
    program = sanitized_program(jobs) if options.sanitize else threads_program()
    for seed in range(options.first, options.first + options.runs):
        try:
            run(program, seed, options.turns)
        except ThreadsError as error:
            print(f"seed {seed}: {error}")
            return 1
    print(f"{options.runs} runs of {options.turns} turns: nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
