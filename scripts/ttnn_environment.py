"""Makes a Python environment with the released package of ttnn: what `ttcodegen-rt validate` asks.

    scripts/ttnn_environment.py build/ttnn-python      # prints the Python of it
    scripts/ttnn_environment.py build/ttnn-simulated --compiler     # with the vendor's compiler

The package has wheels for two versions of Python. Where the machine has neither, uv brings one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# The package beside this file, whatever other checkout is installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES

VERSIONS = ("3.12", "3.10")
"""The versions of Python that the package has wheels for, the preferred one first."""
NEEDED = ("numpy<2", "loguru", "networkx", "graphviz", "pyyaml", "click", "ml-dtypes")
"""Dependencies of the package that calls need; it names more, torch among them."""
_MADE = "made"


class NoEnvironment(Exception):
    """The environment cannot be made here."""


def ttnn_python(folder: Path, wheel: Path | None = None, release: str = DEFAULT_RELEASE) -> Path:
    """The Python of the environment in a folder, which is made if it is not there.

    Args:
        folder: where it is, or is to be.
        wheel: the package for the first of the versions, if it was downloaded before.
        release: the version of the package.

    Raises:
        NoEnvironment: if there is no Python for it, or the package cannot be had.
    """
    python = folder / "bin" / "python"
    if (folder / _MADE).is_file():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    interpreter, version = _interpreter(folder)
    _run([interpreter, "-m", "venv", str(folder)])
    package = str(wheel) if wheel and version == VERSIONS[0] else f"ttnn=={release}"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*install, "--no-deps", package])
    _run([*install, *NEEDED])
    (folder / _MADE).touch()
    return python


def add_compiler(python: Path, release: str) -> None:
    """Puts the vendor's device compiler into the package of an environment: what a simulator runs
    is compiled.

    Raises:
        NoEnvironment: if the compiler cannot be had.
    """
    from scripts.device_compiler import device_compiler
    from scripts.kernel_check_toolchain import ToolchainError

    (package,) = python.parents[1].glob("lib/python3*/site-packages/ttnn")
    folder = package / "runtime" / "sfpi"
    if (folder / _MADE).is_file():
        return
    try:
        compiler = device_compiler(python.parents[1] / "wheels", release)
    except ToolchainError as error:
        raise NoEnvironment(str(error)) from None
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(compiler, folder, symlinks=True)
    own = folder / "own" / "sfpi.h"
    if own.is_file():
        # The package looks into one folder: what is found first has to lie there as well.
        include = folder / "include"
        (include / "sfpi.h").rename(include / "sfpi_of_compiler.h")
        text = own.read_text().replace("#include_next <sfpi.h>", '#include "sfpi_of_compiler.h"')
        (include / "sfpi.h").write_text(text)
    (folder / _MADE).touch()


def _interpreter(folder: Path) -> tuple[str, str]:
    """A Python that the package has wheels for, and its version."""
    for version in VERSIONS:
        for found in _candidates(version):
            # What a version manager puts into PATH may not be an interpreter.
            if _works([found, "-c", "import ensurepip, venv"]):
                return found, version
    uv = folder.with_name(f"{folder.name}-uv")
    target = ["install", "--quiet", "--target", str(uv), "uv"]
    _run([sys.executable, "-m", "pip", *target])
    interpreters = ["--install-dir", str(uv / "pythons"), VERSIONS[0]]
    _run([str(uv / "bin" / "uv"), "python", "install", "--quiet", *interpreters])
    for found in sorted((uv / "pythons").glob(f"*/bin/python{VERSIONS[0]}")):
        return str(found), VERSIONS[0]
    raise NoEnvironment(f"uv brought no Python {VERSIONS[0]}")


def _candidates(version: str) -> Iterator[str]:
    """Yields candidate paths of a Python version, from PATH and pyenv."""
    if (found := shutil.which(f"python{version}")) is not None:
        yield found
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for path in sorted(kept.glob(f"{version}.*/bin/python{version}")):
        yield str(path)


def _works(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
        raise NoEnvironment(f"{' '.join(command[:4])} failed: {last[0]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes the environment; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--release", choices=RELEASES, default=DEFAULT_RELEASE)
    parser.add_argument("--compiler", action="store_true", help="add the vendor's device compiler")
    options = parser.parse_args(arguments)
    try:
        python = ttnn_python(options.folder.resolve(), release=options.release)
        if options.compiler:
            add_compiler(python, options.release)
        print(python)
    except NoEnvironment as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
