"""The version, and the commit that it is built from.

Generated projects and cache keys contain only the version, so that output is the same for equal
versions. `--version` and the package version (`pip show ttcodegen`) also show the commit.
"""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

COMMIT_FILE = "_commit.txt"
"""File in packages that records the commit, next to this module."""

_LENGTH = 12


def commit() -> str | None:
    """Returns the commit, with `+changes` if the checkout is modified; None if unknown."""
    folder = Path(__file__).resolve().parent
    try:
        return folder.joinpath(COMMIT_FILE).read_text("utf-8").strip() or None
    except OSError:
        pass
    # Ignore an unrelated repository around an installation.
    if not folder.parent.joinpath(".git").exists():
        return None
    return _git(folder, "describe", "--always", "--dirty=+changes", "--exclude=*")


def package_version() -> str:
    """Returns the version for a package build: includes the commit unless it is a release."""
    known = commit()
    if known is None:
        return __version__
    folder = Path(__file__).resolve().parent
    if _git(folder, "describe", "--dirty", "--exact-match", "--match", f"v{__version__}"):
        return __version__
    return f"{__version__}+g{known.replace('+', '.')}"


def _git(folder: Path, command: str, *options: str) -> str | None:
    # Imported late: rarely needed.
    import subprocess

    call = ["git", "-C", str(folder), command, f"--abbrev={_LENGTH}", *options]
    try:
        done = subprocess.run(call, capture_output=True, text=True, check=False)
    except OSError:
        return None
    revision = done.stdout.strip()
    if done.returncode != 0 or (command == "describe" and revision.endswith("-dirty")):
        return None
    return revision or None
