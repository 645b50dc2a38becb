"""Keeps the methods that `dataclasses` compiles, as Python itself keeps the bytecode of modules.

`dataclasses` writes the text of each generated method and compiles it whenever the class is
imported. xDSL and ttcodegen define several hundred of such classes: compiling their methods is a
fifth of a small run. Here the code of a text is looked up in a file of the cache folder instead;
what it does not hold is compiled and goes into it at the end of the process.
"""

from __future__ import annotations

import atexit
import dataclasses
import marshal
import os
import sys
import tempfile
import zlib
from pathlib import Path
from types import CodeType
from typing import Any

from ttcodegen.cache import cache_folder

_MOST_TEXTS = 20_000
"""The most texts that are kept; a file that has more is started afresh."""


class ClassCache:
    """The compiled methods of a file; one that cannot be read or written only costs the time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # As bytes: a process needs few of all that were ever kept.
        self._codes: dict[str, bytes] = {}
        self._grown = False
        try:
            data = path.read_bytes()
        except OSError:
            return
        # marshal trusts what it is given: half a file could end the interpreter.
        if data[:4] == _checksum(data[4:]):
            content: dict[str, bytes] = marshal.loads(data[4:])
            if len(content) <= _MOST_TEXTS:
                self._codes = content

    def execute(
        self,
        source: str,
        namespace: dict[str, Any] | None = None,
        variables: dict[str, Any] | None = None,
    ) -> None:
        """What `exec` does with the text of a program."""
        kept = self._codes.get(source)
        if kept is None:
            code = compile(source, "<string>", "exec")
            self._codes[source] = marshal.dumps(code)
            self._grown = True
        else:
            code: CodeType = marshal.loads(kept)
        exec(code, namespace, variables)

    def save(self) -> None:
        """Writes what is new."""
        if not self._grown:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
                data = marshal.dumps(self._codes)
                file.write(_checksum(data) + data)
            os.replace(file.name, self._path)
        except OSError:
            pass


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")


def keep_generated_methods() -> None:
    """Makes `dataclasses` use the cache, from now until the process ends.

    Python's own switch for not writing bytecode holds for this file as well.
    """
    # Bytecode differs between versions of the interpreter, and may between builds of it.
    tag = f"{sys.implementation.cache_tag}-{sys.hexversion:x}"
    try:
        cache = ClassCache(cache_folder() / f"methods-{tag}")
    except RuntimeError:
        # There is no home folder to have a cache in.
        return
    # The module calls `exec` by its name, which its own namespace may hold before the builtins do.
    dataclasses.exec = cache.execute  # pyright: ignore[reportAttributeAccessIssue]
    if not sys.dont_write_bytecode:
        atexit.register(cache.save)
