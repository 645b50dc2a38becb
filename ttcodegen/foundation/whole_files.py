"""Files that readers see as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Writes a file atomically, and the folders on the way to it.

    A reader at the same time has the content before or this one, and another writer none of it.

    Args:
        path: the file; what is there is replaced, a link itself rather than what it leads to.
        content: text is encoded as UTF-8.
        private: whether the file, and folders that are made for it, are for the user alone.

    Raises:
        OSError: if it cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    # A unique name in the same folder: `os.replace` stays within one file system.
    unfinished = path.with_name(f".{os.urandom(8).hex()}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(unfinished, flags, 0o600 if private else 0o666), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
