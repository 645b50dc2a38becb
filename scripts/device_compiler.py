"""Compiles device kernels with the vendor's compiler, as the runtime does, and states their sizes.

    scripts/device_compiler.py out/           # the kernels that out/manifest.json lists

The compiler (GCC for RISC-V with the vector interface sfpi) is part of the PyPI wheels of
`jax-tt-plugin`, which are downloaded like those of ttnn: their library unpacks it when it is
loaded. It finds what declarations of ours cannot (scripts/kernel_check.py): errors of the vector
code, and the size of kernels.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.kernel_check_configuration import (
    ConfigurationError,
    KernelConfiguration,
    read_manifest,
)
from scripts.kernel_check_toolchain import (
    Processor,
    ToolchainError,
    device_headers,
    generated_files,
    include_folders,
    macros,
    processors,
)
from scripts.link_check import PIP_OPTIONS, ROOT, LinkCheckError, project_release

PACKAGES = {"0.70.1": "0.1.0", "0.81.1": "0.1.3"}
"""The version of jax-tt-plugin whose compiler is the nearest to that of a release: sfpi 7.67 for
7.46, and 7.87 for 7.89 (`tt_metal/sfpi-version` of the wheels)."""
_LIBRARY = "jax_plugins/libtt/libtt.so"
_COMPILER = "compiler/bin/riscv-tt-elf-g++"
_MULTILIBS = ("bh-ilp32", "wh-ilp32")
"""Libraries for blackhole are shipped, and those beside them for all processors. Wormhole takes the
latter: it lacks the instructions for bits (`clz` in sums of floats) of the former."""
_LACKING = """\
#pragma once
#include_next <sfpi.h>
// Overloads that sfpi 7.46 has, and 7.67 has not.
namespace sfpi {
sfpi_inline vInt setsgn(const vInt v, const vInt sign) {
    return reinterpret<vInt>(setsgn(reinterpret<vFloat>(v), sign));
}
sfpi_inline vFloat setman(const vFloat v, const vInt man) {
    return setman(v, reinterpret<vUInt>(man));
}
}
"""
"""Is found before sfpi.h of the compiler for 0.70.1."""
_OPTIONS = (
    *("-std=c++17", "-ftt-nttp", "-ftt-constinit", "-ftt-consteval", "-ftt-no-dyninit"),
    *("-ffast-math", "-fno-finite-math-only", "-fsigned-zeros", "-fno-associative-math"),
    *("-fno-exceptions", "-fno-rtti", "-fno-use-cxa-atexit", "-fno-delete-null-pointer-checks"),
    *("-fno-tree-loop-distribute-patterns", "-Wall", "-Werror", "-Wno-unknown-pragmas"),
    *("-Wno-deprecated-declarations", "-Wno-error=multistatement-macros", "-Wno-error=parentheses"),
    *(
        "-Wno-error=array-bounds",
        "-Wno-error=unused-but-set-variable",
        "-Wno-unused-variable",
        "-Wno-unused-function",
    ),
)
"""As libtt_metal.so has them in its text, but for the optimization when programs are linked: code
is made at once, so that it has a size. That warns of mailboxes at fixed addresses
(`firmware_common.h`)."""
_CPUS = {"wormhole_b0": "tt-wh", "blackhole": "tt-bh"}


@dataclass(frozen=True)
class Compiled:
    """Result for a kernel on one processor.

    Attributes:
        kernel: its file.
        processor: the processor.
        size: bytes of its code, 0 if it does not compile.
        errors: the compiler's.
    """

    kernel: Path
    processor: str
    size: int
    errors: tuple[str, ...]


def device_compiler(cache: Path, release: str) -> Path:
    """The folder of the vendor's compiler for a release, made in `cache` if it is not there yet.

    Raises:
        ToolchainError: if the wheel cannot be had, or has no compiler.
    """
    version = PACKAGES[release]
    folder = cache / f"sfpi-of-jax-tt-plugin-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMPILER).is_file():
            _unpack(_wheel(cache, version), folder, release)
        give_wormhole_libraries(folder)
    return folder


def _wheel(cache: Path, version: str) -> Path:
    pattern = f"jax_tt_plugin-{version}-*.whl"
    if not any(cache.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", f"jax-tt-plugin=={version}"]
        _run([*command, *PIP_OPTIONS, str(cache)])
    wheels = sorted(cache.glob(pattern))
    if not wheels:
        raise ToolchainError(f"pip downloaded no wheel of jax-tt-plugin {version} to {cache}")
    return wheels[0]


def _unpack(wheel: Path, folder: Path, release: str) -> None:
    """Takes the compiler out of what the wheel's library unpacks when it is loaded."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        with zipfile.ZipFile(wheel) as content:
            content.extractall(temporary, [
                name for name in content.namelist() if name.startswith("jax_plugins/")
            ])  # fmt: skip
        assets = Path(temporary) / "assets"
        assets.mkdir()
        load = f"import ctypes; ctypes.CDLL({str(Path(temporary) / _LIBRARY)!r})"
        _run([sys.executable, "-c", load], {**os.environ, "TMPDIR": str(assets)})
        found = next((path.parents[2] for path in assets.rglob(_COMPILER)), None)
        if found is None:
            raise ToolchainError(f"{wheel.name} unpacked no compiler")
        if release == min(PACKAGES):
            own = found / "own"
            own.mkdir()
            (own / "sfpi.h").write_text(_LACKING)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(found, folder)


def give_wormhole_libraries(compiler: Path) -> None:
    """Makes folders of libraries for wormhole where there are some for blackhole."""
    shipped, wanted = _MULTILIBS
    for libraries in sorted(compiler.rglob(shipped)):
        folder = libraries.with_name(wanted)
        if folder.is_symlink():  # of an earlier version, to those of blackhole
            folder.unlink()
        folder.mkdir(exist_ok=True)
        for name in sorted(each.name for each in libraries.iterdir()):
            if libraries.with_name(name).exists() and not (folder / name).exists():
                (folder / name).symlink_to(Path("..", name))


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment or dict(os.environ)
    )
    if done.returncode != 0:
        raise ToolchainError(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-500:]}")
    return done.stdout


@dataclass(frozen=True)
class DeviceCompiler:
    """Compiles kernels of projects of one release.

    Attributes:
        folder: that of device_compiler().
        device: the device headers of the release, of device_headers().
        jobs: how many compilers run at a time.
    """

    folder: Path
    device: Path
    jobs: int = os.cpu_count() or 1

    def compile(self, configurations: Sequence[KernelConfiguration]) -> list[Compiled]:
        """Compiles each kernel for all of its processors."""
        work = [(kernel, each) for kernel in configurations for each in processors(kernel)]
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda each: self._compiled(*each), dict.fromkeys(work)))

    def _compiled(self, kernel: KernelConfiguration, processor: Processor) -> Compiled:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for path, text in generated_files(kernel, processor, checks_names=False).items():
                (folder / path).write_text(text)
            target = folder / "kernel.o"
            command = self._command(kernel, processor, folder, target)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = [line for line in done.stderr.splitlines() if "error: " in line]
                errors = tuple(lines or done.stderr.splitlines()[:5])
                return Compiled(kernel.file, processor.name, 0, errors)
            listed = _run([str(self.folder / _COMPILER.replace("g++", "size")), str(target)])
            return Compiled(kernel.file, processor.name, int(listed.split()[6]), ())

    def _command(
        self, kernel: KernelConfiguration, processor: Processor, folder: Path, target: Path
    ) -> list[str]:
        is_compute = kernel.processor == "compute"
        cpu = f"{_CPUS[kernel.arch]}{'-tensix' if is_compute else ''}"
        system = [self.folder / "own", self.folder / "include"]
        system += [self.device / each for each in include_folders(kernel.arch, is_compute)]
        return [
            str(self.folder / _COMPILER),
            *(*_OPTIONS, "-O3" if is_compute else "-Os", f"-mcpu={cpu}"),
            *("-c", "-o", str(target)),
            *(f"-D{macro}" for macro in macros(kernel, processor)),
            *(f"-I{folder}", f"-I{kernel.file.resolve().parent}"),
            *(argument for each in system for argument in ("-isystem", str(each))),
            str(self.device / "tt_metal/hw/firmware/src/tt-1xx" / processor.source),
        ]


def report(found: Sequence[Compiled]) -> Iterator[str]:
    """A line for each kernel and processor, and its errors."""
    for each in found:
        result = f"{each.size} bytes" if not each.errors else "does not compile"
        yield f"{each.kernel.name} [{each.processor}]: {result}"
        yield from (f"    {re.sub(r'^/.*/ttnn', 'ttnn', line)}" for line in each.errors)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all kernels compile, 1 one does not, 2 they could not be compiled."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("projects", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "wheels")
    options = parser.parse_args(arguments)
    status = 0
    try:
        for project in options.projects:
            release = project_release(project)
            compiler = DeviceCompiler(
                device_compiler(options.cache, release),
                device_headers(options.cache, release=release),
            )
            found = compiler.compile(read_manifest(project / "manifest.json"))
            print("\n".join(report(found)))
            status |= any(each.errors for each in found)
    except (ConfigurationError, ToolchainError, LinkCheckError, OSError) as error:
        print(f"device compiler: {error}", file=sys.stderr)
        return 2
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
