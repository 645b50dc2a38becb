"""Shared by all tests: models, the CPU backend, built projects, the libraries of the release.

What costs time is made once for all processes of a test run, under a lock. The CPU backend is kept
where ttcodegen keeps it for its user, so that later runs have it as well.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import KernelConfiguration
from scripts.kernel_check_toolchain import ToolchainError, device_headers, find_clang
from scripts.link_check import LinkCheckError, wheel_file, wheel_libraries
from scripts.ttnn_environment import NoEnvironment
from scripts.ttnn_environment import ttnn_python as environment_python
from ttcodegen.cli.ttcodegen import main
from ttcodegen.judging.library import VARIABLE as TTNN_PYTHON
from ttcodegen.project.cpu_backend import CPUBackend, ensure_cpu_backend
from ttcodegen.project.toolchain import Toolchain, find_toolchain
from ttcodegen.systems.releases import DEFAULT_RELEASE

# A test says the same of the same tree; `--hypothesis-profile=others` draws other examples. The
# time of one example says nothing on a machine that does other things as well.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("others", deadline=None)
settings.load_profile("same")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --update-golden, for tests/golden, and --all."""
    parser.addoption(
        "--all", action="store_true", help="also the tests that are marked slow, as CI does"
    )
    parser.addoption(
        "--update-golden", action="store_true", help="write the files of tests/golden anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leaves out slow tests where all tests are run and nothing says which."""
    given = [
        each for each in config.invocation_params.args if Path(str(each).split("::")[0]).exists()
    ]
    if not (given or config.option.markexpr or config.option.keyword or config.getoption("--all")):
        config.option.markexpr = "not slow"
    # The workers of a parallel run report to the process that prints.
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        config.pluginmanager.register(_EarlyFailures(config))


class _EarlyFailures:
    """Names each failure when it happens, so that a run that is cut off has reported it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Prints the test, the phase, the seconds and the first line of the reason."""
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if not report.failed or terminal is None:
            return
        reason = next((line for line in report.longreprtext.splitlines() if line[:2] == "E "), "")
        terminal.ensure_newline()
        seconds = f"{report.duration:.0f} s"
        terminal.write_line(
            f"FAILED {report.nodeid} ({report.when}, {seconds}) {reason[2:].strip()}"
        )


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Keeps the other processes of a test run from what a file stands for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def corpus() -> Path:
    """A folder of TTIR modules that are no part of the project: $TTCODEGEN_CORPUS, or beside it."""
    named = os.environ.get("TTCODEGEN_CORPUS")
    folder = Path(named) if named else ROOT.parent / "shared" / "corpus" / "ttir"
    if not folder.is_dir():
        pytest.skip("there is no corpus: name its folder in TTCODEGEN_CORPUS")
    return folder


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The C++ compiler, CMake and Ninja."""
    return find_toolchain()


@pytest.fixture(scope="session")
def cpu_backend(toolchain: Toolchain) -> CPUBackend:
    """The CPU backend, built if this is the first time."""
    return ensure_cpu_backend(toolchain)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder of all processes of a test run."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def example(shared_folder: Path) -> Callable[[str], Path]:
    """Gives the project of an example by its name: compiled, built and checked."""
    shared = shared_folder / "examples"

    def project(name: str) -> Path:
        out, status = shared / name, shared / f"{name}.status"
        with locked(shared / f"{name}.lock"):
            if not status.exists():
                source = ROOT / "examples" / name / f"{name}.mlir"
                arguments = [str(source), "-o", str(out), "--check", "--kind", "both"]
                status.write_text(str(main(arguments)))
        assert status.read_text() == "0"
        return out

    return project


@pytest.fixture(scope="session")
def ttnn_libraries_of() -> Callable[[str], Path]:
    """Gives the folder with the libraries of a release's wheel: $TTNN_LIBRARIES, which is of the
    default one, or downloaded."""

    def libraries(release: str) -> Path:
        if release == DEFAULT_RELEASE and (named := os.environ.get("TTNN_LIBRARIES")):
            return Path(named)
        cache = ROOT / "build" / "wheels"
        try:
            with locked(cache / "lock"):
                return wheel_libraries(cache, release)
        except LinkCheckError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"the ttnn wheel cannot be had: {error}")

    return libraries


@pytest.fixture(scope="session")
def ttnn_libraries(ttnn_libraries_of: Callable[[str], Path]) -> Path:
    """The folder with the libraries of the default release's wheel."""
    return ttnn_libraries_of(DEFAULT_RELEASE)


@pytest.fixture(scope="session")
def ttnn_pythons() -> Callable[[str], str]:
    """Gives the Pythons with the released package of ttnn, among them one of a release:
    $TTCODEGEN_TTNN_PYTHON, or an environment that is made for it."""

    def pythons(release: str) -> str:
        if named := os.environ.get(TTNN_PYTHON):
            return named
        wheels = ROOT / "build" / "wheels"
        folder = ROOT / "build" / f"ttnn-{release}-python"
        try:
            with locked(wheels / "lock"):
                wheel = wheel_file(wheels, release)
            with locked(folder.with_name(f"{folder.name}.lock")):
                return str(environment_python(folder, wheel, release))
        except (LinkCheckError, NoEnvironment) as error:
            pytest.skip(f"there is no Python with ttnn: {error}")

    return pythons


@pytest.fixture(scope="session")
def ttnn_python(ttnn_pythons: Callable[[str], str]) -> str:
    """Pythons with the released package of ttnn, among them one of the default release."""
    return ttnn_pythons(DEFAULT_RELEASE)


@pytest.fixture(scope="session")
def kernel_checks() -> Callable[[str], KernelCheck]:
    """Gives the check of device kernels for a release: with the wheel of $TTNN_LIBRARIES, which is
    of the default one, or downloaded."""
    named = os.environ.get("TTNN_LIBRARIES")
    cache = ROOT / "build" / "wheels"

    def check(release: str) -> KernelCheck:
        given = named if release == DEFAULT_RELEASE else None
        unpacked = Path(given).resolve().parent.parent if given else None
        try:
            clang = find_clang()
            with locked(cache / "lock"):
                device = device_headers(cache, unpacked, release)
        except (LinkCheckError, ToolchainError) as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"device kernels cannot be checked: {error}")
        return KernelCheck(clang, device, ROOT / "build" / "kernel_check", jobs=2)

    return check


@pytest.fixture(scope="session")
def kernel_check(kernel_checks: Callable[[str], KernelCheck]) -> KernelCheck:
    """The check of device kernels for the default release."""
    return kernel_checks(DEFAULT_RELEASE)


_VALUE = re.compile(r"\b(\d[\w.]*|[A-Za-z_]\w*(?!\w|\s*(\(|<|::)))")
"""Numbers, and names that are neither called nor templates nor namespaces."""


def _matters_to_a_compiler(kernel: KernelConfiguration) -> Iterator[str]:
    """Lines of a kernel and parts of its configuration, without numbers and names of variables:
    whether these are declared shows where a kernel is compiled for the emulated device."""
    processor = f"{kernel.arch} {kernel.processor}"
    for line in kernel.file.read_text("utf-8").splitlines():
        if (code := line.strip()) and not code.startswith("//"):
            yield f"{processor} {code if code[0] == '#' else _VALUE.sub('v', code)}"
    for buffer in kernel.circular_buffers:
        yield f"{processor} {buffer.data_format} {buffer.tile} {buffer.unpack_to_dest_fp32}"
    yield from (f"{processor} {name}={_VALUE.sub('v', text)}" for name, text in kernel.defines)
    yield f"{processor} {kernel.fp32_dest_acc_en} {kernel.math_fidelity}"


class KernelFaults(Protocol):
    """Checks kernels for a release."""

    def __call__(
        self, kernels: Sequence[KernelConfiguration], release: str = DEFAULT_RELEASE
    ) -> list[str]:
        """A line for each fault."""
        ...


@pytest.fixture(scope="session")
def kernel_faults(kernel_checks: Callable[[str], KernelCheck], shared_folder: Path) -> KernelFaults:
    """Gives the faults of kernels; of those whose every line, data format and define some kernel of
    this run has had, the order of initialisations alone is followed.

    $TTCODEGEN_ALL_KERNELS has all of them compiled.
    """

    def faults(kernels: Sequence[KernelConfiguration], release: str = DEFAULT_RELEASE) -> list[str]:
        chosen: list[KernelConfiguration] = []
        kernel_check = kernel_checks(release)
        known = shared_folder / f"lines_of_kernels_{release}"
        lines = {kernel: set(_matters_to_a_compiler(kernel)) for kernel in dict.fromkeys(kernels)}
        with locked(known.with_name(f"{known.name}.lock")):
            seen = set(known.read_text("utf-8").split("\n")) if known.exists() else set[str]()
            for kernel in sorted(lines, key=lambda kernel: -len(lines[kernel])):
                if not lines[kernel] <= seen or os.environ.get("TTCODEGEN_ALL_KERNELS"):
                    chosen.append(kernel)
                    seen |= lines[kernel]
            known.write_text("\n".join(sorted(seen)), "utf-8")
        found = kernel_check.compile(chosen) + kernel_check.initialisations(kernels)
        return [str(fault) for fault in found]

    return faults
