"""Checks the types of device kernels against the device headers of the released ttnn wheel.

    scripts/kernel_check.py out/                   # the kernels that out/manifest.json lists
    scripts/kernel_check.py kernel.cpp --processor compute --circular-buffer 0=Bfp8_b

Each kernel is compiled, with its configuration, for every processor that runs it: BRISC or NCRISC,
or unpack, math and pack. Compute kernels are followed call by call besides, for the order of their
initialisations. docs/kernel-check.md says what that finds and how a configuration is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.initialisation_check import InitialisationCheck
from scripts.initialisation_table import InitialisationTable
from scripts.kernel_check_configuration import (
    ARCHITECTURES,
    DATA_FORMATS,
    MATH_FIDELITIES,
    CircularBuffer,
    ConfigurationError,
    KernelConfiguration,
    read_manifest,
)
from scripts.kernel_check_toolchain import (
    INCLUDE,
    Clang,
    Processor,
    ToolchainError,
    command,
    device_headers,
    find_clang,
    generated_files,
    precompiled_headers,
    processors,
    release_of,
)
from scripts.link_check import LinkCheckError
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

ROOT = Path(__file__).resolve().parent.parent
DIAGNOSTIC = re.compile(r"^(?P<file>/[^:\n]*):(?P<line>\d+):(?P<column>\d+): (?P<kind>[a-z ]+): ")
INCLUDED_FROM = re.compile(r"^In file included from (?P<file>[^:\n]*):(?P<line>\d+):")
INCLUDE_DIRECTIVE = re.compile(r'^\s*#\s*include\s*"([^"\n]+)"', re.MULTILINE)
_initialisation_table = lru_cache(InitialisationTable.read)
ANY_FOLDER = "/kernels/"
"""Replaces the folder of the kernel in the cache."""
NOTES = 3
"""Upper bound on the compiler notes shown with an error."""


@dataclass(frozen=True)
class Fault:
    """Error in a kernel.

    Attributes:
        place: file, line and column of the kernel, or of the header it includes.
        message: the compiler's.
        notes: what the compiler adds.
        processors: for which the kernel does not compile so; none of what its text shows.
    """

    place: str
    message: str
    notes: tuple[str, ...]
    processors: tuple[str, ...]

    def __str__(self) -> str:
        names = f" [{', '.join(self.processors)}]" if self.processors else ""
        text = f"{self.place}: {self.message}{names}"
        return "\n".join([text, *(f"    {note}" for note in self.notes)])


@dataclass(frozen=True)
class _Place:
    """A place in a source; the column is 0 where only the line is known."""

    file: Path
    line: int
    column: int

    def shown(self, device: Path) -> str:
        """As a person reads it: relative to the device headers or to the working directory."""
        name = str(self.file)
        for folder in (device, Path.cwd()):
            name = name.removeprefix(f"{folder}/")
        return f"{name}:{self.line}:{self.column}" if self.column else f"{name}:{self.line}"


@dataclass
class _Message:
    """An error or a warning of the compiler, with what belongs to it.

    Attributes:
        places: where it is, what its notes name, and what includes the file, from the inside out.
    """

    kind: str
    text: str
    places: list[_Place]
    notes: list[str]


def _path(name: str) -> Path:
    return Path(os.path.normpath(name))


def _messages(output: str) -> list[_Message]:
    """The errors and warnings in a compiler's output."""
    messages: list[_Message] = []
    included: list[_Place] = []
    for line in output.splitlines():
        if match := INCLUDED_FROM.match(line):
            included.insert(0, _Place(_path(match["file"]), int(match["line"]), 0))
            continue
        match = DIAGNOSTIC.match(line)
        if match is None:
            continue
        place = _Place(_path(match["file"]), int(match["line"]), int(match["column"]))
        text = line[match.end() :]
        if match["kind"] != "note":
            messages.append(_Message(match["kind"], text, [place, *included], []))
        elif messages:
            messages[-1].places.insert(len(messages[-1].notes) + 1, place)
            messages[-1].notes.append(text)
        included = []
    return messages


def faults(output: str, sources: Collection[Path], device: Path, processor: str) -> list[Fault]:
    """The faults of a kernel in what the compiler printed; of those in one line the first.

    A fault is placed where the kernel causes it: a call that fails within a header of the release
    is reported at the call. Warnings count in the kernel's own files, as the vendor's compiler has
    it.

    Args:
        output: the compiler's messages.
        sources: the kernel and its own headers.
        device: the folder of device_headers().
        processor: the name of the processor it was compiled for.
    """
    found: dict[str, Fault] = {}
    for message in _messages(output):
        own = [place for place in message.places if place.file in sources]
        origin = message.places[0]
        if message.kind == "warning" and own[:1] != [origin]:
            continue
        # The compiler says once for several errors within a header what led there.
        if not own and found:
            continue
        place = own[0] if own else origin
        notes = message.notes[:NOTES]
        if place != origin:
            notes.insert(0, f"in {origin.shown(device)}")
        fault = Fault(place.shown(device), message.text, tuple(notes), (processor,))
        found.setdefault(f"{place.file}:{place.line}", fault)
    return list(found.values())


def _own_sources(kernel: Path) -> list[Path]:
    """The kernel and what it includes from beside it, directly or not."""
    sources = [kernel]
    for source in sources:
        text = source.read_text(encoding="utf-8", errors="replace")
        for name in INCLUDE_DIRECTIVE.findall(text):
            candidates = (source.parent / name, kernel.parent / name)
            header = next((_path(str(path)) for path in candidates if path.is_file()), None)
            if header is not None and header not in sources:
                sources.append(header)
    return sources


@dataclass(frozen=True)
class KernelCheck:
    """Checks kernels with a compiler and device headers; remembers what it found.

    Attributes:
        clang: the compiler.
        device: the folder of device_headers().
        cache: where results are kept, by what they depend on.
        jobs: how many compilers run at a time.
    """

    clang: Clang
    device: Path
    cache: Path
    jobs: int = os.cpu_count() or 1

    def check(self, configurations: Sequence[KernelConfiguration]) -> list[Fault]:
        """The faults of all kernels, each once, in the order of the configurations.

        Raises ConfigurationError if a kernel cannot be read.
        """
        return merged(self.compile(configurations) + self.initialisations(configurations))

    def compile(self, configurations: Sequence[KernelConfiguration]) -> list[Fault]:
        """The faults that the compiler finds, as `check`, but for the order of initialisations.

        Raises ConfigurationError if a kernel cannot be read.
        """
        for configuration in configurations:
            if not configuration.file.is_file():
                raise ConfigurationError(f"there is no kernel {configuration.file}")
        precompiled = precompiled_headers(self.clang, self.cache)
        compilers = [
            _Compiler(self, replace(kernel, file=kernel.file.resolve()), processor, precompiled)
            for kernel in configurations
            for processor in processors(kernel)
        ]
        with ThreadPoolExecutor(self.jobs) as pool:
            results = [pool.submit(compiler.faults) for compiler in dict.fromkeys(compilers)]
            return merged([fault for result in results for fault in result.result()])

    def initialisations(self, configurations: Sequence[KernelConfiguration]) -> list[Fault]:
        """Operations of compute kernels without their initialisation, and full initialisations
        where they break what is under way."""
        found: list[Fault] = []
        for kernel in dict.fromkeys(configurations):
            if kernel.processor != "compute":
                continue
            table = _initialisation_table(self.device, kernel.arch)
            check = InitialisationCheck(table, kernel.dst_full_sync_en)
            sources = _own_sources(kernel.file.resolve())
            found += [
                Fault(_Place(fault.file, fault.line, 0).shown(self.device), fault.message, (), ())
                for fault in check.faults(sources, dict(kernel.defines))
            ]
        return found


@dataclass(frozen=True)
class _Compiler:
    """Compiles a kernel for one processor, or remembers what came of it."""

    check: KernelCheck
    kernel: KernelConfiguration
    processor: Processor
    precompiled: Path

    def faults(self) -> list[Fault]:
        """The faults of the kernel."""
        folder = self.kernel.file.parent
        remembered = self.check.cache / f"{self._key()}.txt"
        try:
            output = remembered.read_text(encoding="utf-8")
        except FileNotFoundError:
            output = self._output().replace(f"{folder}/", ANY_FOLDER)
            with tempfile.NamedTemporaryFile(
                "w", dir=self.check.cache, delete=False, encoding="utf-8"
            ) as written:
                written.write(output)
            Path(written.name).replace(remembered)
        output = output.replace(ANY_FOLDER, f"{folder}/")
        sources = _own_sources(self.kernel.file)
        return faults(output, sources, self.check.device, self.processor.name)

    def _output(self) -> str:
        """Output of the compiler."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for path, text in generated_files(self.kernel, self.processor).items():
                folder.joinpath(path).write_text(text, encoding="utf-8")
            arguments = self._command(folder)
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0 and not any("error" in m.kind for m in _messages(done.stderr)):
            raise ToolchainError(f"{' '.join(arguments)}\n{done.stderr.strip()}")
        return done.stderr

    def _command(self, generated: Path) -> list[str]:
        check = self.check
        return command(
            self.kernel, self.processor, check.clang, check.device, self.precompiled, generated
        )

    def _key(self) -> str:
        """Hash of everything that the compiler's output depends on but the kernel's path."""
        folder = self.kernel.file.parent
        kernel = replace(self.kernel, file=Path(ANY_FOLDER, self.kernel.file.name))
        anywhere = replace(self, kernel=kernel)
        generated = sorted(generated_files(kernel, self.processor).items())
        arguments = anywhere._command(Path("generated"))
        digest = hashlib.sha256(repr((self.check.clang, arguments, generated)).encode())
        ours = sorted(path for path in INCLUDE.rglob("*") if path.is_file())
        for root, paths in ((INCLUDE, ours), (folder, _own_sources(self.kernel.file))):
            for path in paths:
                digest.update(f"\0{os.path.relpath(path, root)}\0".encode() + path.read_bytes())
        return digest.hexdigest()


def merged(found: Sequence[Fault]) -> list[Fault]:
    """Faults without repetition: one that several processors have names them all."""
    first: dict[tuple[str, str], Fault] = {}
    for fault in found:
        known = first.setdefault((fault.place, fault.message), fault)
        names = dict.fromkeys((*known.processors, *fault.processors))
        first[fault.place, fault.message] = replace(known, processors=tuple(names))
    return list(first.values())


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise ConfigurationError(f"{text!r} is not NAME=VALUE")
    return name, value


def _by_hand(kernel: Path, options: argparse.Namespace) -> list[KernelConfiguration]:
    """The configurations that the command line gives a kernel."""
    buffers: list[CircularBuffer] = []
    for index, data_format in map(_pair, options.circular_buffer):
        if data_format not in DATA_FORMATS:
            raise ConfigurationError(f"{data_format!r} is not one of {', '.join(DATA_FORMATS)}")
        buffers.append(CircularBuffer(int(index), data_format))
    configuration = KernelConfiguration(
        kernel,
        options.processor,
        options.arch or ARCHITECTURES[0],
        tuple(int(value, 0) for value in options.compile_args.split(",") if value),
        tuple((name, int(value, 0)) for name, value in map(_pair, options.named)),
        tuple(map(_pair, options.define)),
        tuple(buffers),
        math_fidelity=options.math_fidelity,
        fp32_dest_acc_en=options.fp32_dest_acc_en,
    )
    if options.processor != "data_movement":
        return [configuration]
    return [replace(configuration, processor=name) for name in ("riscv_0", "riscv_1")]


def _configurations(options: argparse.Namespace) -> list[KernelConfiguration]:
    found: list[KernelConfiguration] = []
    for path in options.inputs:
        if path.suffix == ".cpp":
            found += _by_hand(path, options)
            continue
        found += read_manifest(path / "manifest.json" if path.is_dir() else path, options.arch)
    return found


def _release_of_projects(inputs: Sequence[Path]) -> str:
    """The release that all of the inputs are written for; the default one of kernels alone.

    Raises ConfigurationError if they are written for several.
    """
    manifests = [path / "manifest.json" if path.is_dir() else path for path in inputs]
    found = {
        json.loads(path.read_text(encoding="utf-8")).get("tt_metal_release", DEFAULT_RELEASE)
        for path in manifests
        if path.suffix == ".json"
    }
    if len(found) > 1:
        raise ConfigurationError(f"written for several releases: {', '.join(sorted(found))}")
    return found.pop() if found else DEFAULT_RELEASE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "inputs", nargs="+", type=Path, help="projects, manifests, or kernels (.cpp)"
    )
    parser.add_argument("--arch", choices=ARCHITECTURES, help="instead of the manifest's")
    parser.add_argument("--release", choices=RELEASES, help="of tt-metal; that of the projects")
    parser.add_argument("--ttnn", type=Path, help="the folder ttnn of an unpacked wheel")
    parser.add_argument("--clang", help="the compiler; without it the newest that is installed")
    parser.add_argument("--cache", type=Path, default=ROOT / "build")
    kernel = parser.add_argument_group("the configuration of kernels that are given by name")
    kernel.add_argument(
        "--processor",
        choices=("data_movement", "riscv_0", "riscv_1", "compute"),
        default="data_movement",
        help="without it both of data movement",
    )
    kernel.add_argument("--compile-args", default="", metavar="N,N,...")
    kernel.add_argument("--named", action="append", default=[], metavar="NAME=N")
    kernel.add_argument("--define", action="append", default=[], metavar="NAME=TEXT")
    kernel.add_argument("--circular-buffer", action="append", default=[], metavar="INDEX=FORMAT")
    kernel.add_argument("--math-fidelity", choices=tuple(MATH_FIDELITIES), default="HiFi4")
    kernel.add_argument("--fp32-dest-acc-en", action="store_true")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all kernels compile, 1 one does not, 2 the check could not be made."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        configurations = _configurations(options)
        clang = find_clang(options.clang)
        release = options.release or _release_of_projects(options.inputs)
        device = device_headers(options.cache / "wheels", options.ttnn, release)
        check = KernelCheck(clang, device, options.cache / "kernel_check")
        found = check.check(configurations)
    except (ConfigurationError, ToolchainError, LinkCheckError, OSError, ValueError) as error:
        print(f"kernel check: {error}", file=sys.stderr)
        return 2
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        print(
            f"{len(found)} faults against ttnn {release_of(options.ttnn, release)}", file=sys.stderr
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
