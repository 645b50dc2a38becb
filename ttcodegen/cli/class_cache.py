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
import sys
from pathlib import Path
from types import CodeType
from typing import Any

from ttcodegen.cache import cache_folder, checked, keep_file, with_checksum

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
            # marshal trusts what it is given: half a file could end the interpreter.
            data = checked(path.read_bytes())
        except OSError:
            return
        if data is not None:
            content: dict[str, bytes] = marshal.loads(data)
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
            keep_file(self._path, with_checksum(marshal.dumps(self._codes)))
        except OSError:
            pass


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
