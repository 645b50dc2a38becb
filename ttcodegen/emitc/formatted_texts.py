"""Keeps formatted text: formatting a large model takes clang-format longer than printing it, and
most of a model is the same the next time."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ttcodegen.foundation.cache import (
    checked,
    keep_file,
    kept_file,
    own_cache_folder,
    with_checksum,
)

_MOST_BYTES = 64 << 20
"""Of all texts that are kept; beyond that the ones that were not used for longest go."""


class FormattedTexts:
    """The texts that a clang-format made of others in a style.

    A text is found by everything that it follows from: the binary, the style, the name of its file,
    which decides the language and the include that comes first, and the text that was formatted. A
    folder that cannot be read or written, or is not the user's own, costs nothing but the time.
    """

    def __init__(self, binary: str, style: str) -> None:
        self._folder: Path | None = None
        self._grown = False
        self._context = hashlib.sha256(style.encode())
        try:
            status = os.stat(binary)
            cache = own_cache_folder()
        except OSError:
            # There is no such binary, or no cache to be had.
            return
        self._folder = None if cache is None else cache / "formatted"
        self._context.update(f"\0{binary}\0{status.st_size}\0{status.st_mtime_ns}".encode())

    def key(self, name: str, text: str) -> str:
        """What the formatted text of a file of that name is found by."""
        content = self._context.copy()
        content.update(f"\0{name}\0{text}".encode())
        return content.hexdigest()

    def find(self, key: str) -> str | None:
        """The formatted text, None if it is not kept."""
        if self._folder is None:
            return None
        path = self._folder / key
        try:
            kept = kept_file(path)
            data = None if kept is None else checked(kept)
            if data is None:
                return None
            os.utime(path)
        except OSError:
            return None
        return data.decode()

    def keep(self, key: str, text: str) -> None:
        """Keeps a formatted text."""
        if self._folder is None:
            return
        try:
            keep_file(self._folder / key, with_checksum(text.encode()))
        except OSError:
            self._folder = None
            return
        self._grown = True

    def close(self) -> None:
        """Makes room, if anything was added."""
        if self._folder is None or not self._grown:
            return
        try:
            with os.scandir(self._folder) as entries:
                found = [(entry.stat(), entry.path) for entry in entries]
            size = sum(status.st_size for status, _ in found)
            if size <= _MOST_BYTES:
                return
            for status, path in sorted(found, key=lambda each: each[0].st_mtime_ns):
                os.unlink(path)
                size -= status.st_size
                if size <= _MOST_BYTES // 2:
                    return
        except OSError:
            pass
