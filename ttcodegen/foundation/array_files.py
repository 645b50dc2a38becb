"""Loading of arrays from .npy files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

from ttcodegen.foundation.diagnostics import CompileError

if TYPE_CHECKING:
    import numpy as np


def existing_file(path: Path) -> Path | None:
    """Returns the path of a regular file, None if nothing exists there.

    Raises:
        CompileError: if the path is something else (a folder, a pipe, a broken link), or a
            parent is no folder. Treating it as absent would silently use random values.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise CompileError(f"'{path}' is a link to nothing") from None
        _require_folders(path)
        return None
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise CompileError(f"'{path}' is no regular file")
    return path


def _require_folders(path: Path) -> None:
    above = next((each for each in path.parents if os.path.lexists(each)), None)
    if above is not None and not above.is_dir():
        what = "a link to no folder" if above.is_symlink() else "no folder"
        raise CompileError(f"'{above}' is {what}") from None


def load_array(path: Path) -> np.ndarray:
    """Loads the array in a .npy file.

    Raises:
        CompileError: if it cannot be read, or is no .npy file.
    """
    import numpy as np

    try:
        # Opening a pipe would block until it has a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise CompileError(f"'{path}' is no regular file")
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise CompileError(f"cannot read '{path}': {error.strerror or error}") from None
    except (ValueError, EOFError, SyntaxError, TypeError, TokenError, MemoryError) as error:
        # numpy parses the header as a Python literal, with its exceptions.
        raise CompileError(f"'{path}' is no .npy file, or damaged: {error}") from None
