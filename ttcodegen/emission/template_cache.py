"""Keeps compiled templates: compiling them takes longer than all the rest of a small project."""

from __future__ import annotations

from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from ttcodegen.cache import cache_folder, keep_file
from ttcodegen.version import __version__


class TemplateCache(BytecodeCache):
    """Compiled templates in ttcodegen's cache folder.

    jinja2 looks whether they are of the same source, Python and jinja2. A folder that cannot be
    read or written costs nothing but the time.
    """

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            with _path(bucket).open("rb") as file:
                bucket.load_bytecode(file)
        except (OSError, EOFError, ValueError, TypeError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        try:
            keep_file(_path(bucket), bucket.bytecode_to_string())
        except OSError:
            pass


def _path(bucket: Bucket) -> Path:
    return cache_folder() / f"templates-{__version__}" / bucket.key
