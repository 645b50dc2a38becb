"""The version, and the commit that it was made from.

What ttcodegen writes into projects and names its cache by is the version alone: the same version
gives the same bytes, whatever a checkout holds besides. `--version` and the version of the package
(`pip show ttcodegen`) also show the commit.
"""

from __future__ import annotations

from pathlib import Path

__version__ = "0.1.0"

COMMIT_FILE = "_commit.txt"
"""Beside this module in packages: they are built where the history is, and installed where not."""

_LENGTH = 12


def commit() -> str | None:
    """The commit, with `+changes` if files of the checkout differ from it; None if unknown."""
    folder = Path(__file__).resolve().parent
    try:
        return folder.joinpath(COMMIT_FILE).read_text("utf-8").strip() or None
    except OSError:
        pass
    # Not any repository that an installation happens to be in.
    if not folder.parent.joinpath(".git").exists():
        return None
    return _git(folder, "describe", "--always", "--dirty=+changes", "--exclude=*")


def package_version() -> str:
    """The version of a package that is built now: that of the commit, unless it is released."""
    known = commit()
    if known is None:
        return __version__
    folder = Path(__file__).resolve().parent
    if _git(folder, "describe", "--dirty", "--exact-match", "--match", f"v{__version__}"):
        return __version__
    return f"{__version__}+g{known.replace('+', '.')}"


def _git(folder: Path, command: str, *options: str) -> str | None:
    # Computed only when the commit is needed.
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
