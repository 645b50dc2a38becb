"""Where ttcodegen keeps what it made once."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder ttcodegen/ in $TTCODEGEN_CACHE, $XDG_CACHE_HOME or ~/.cache."""
    for variable in ("TTCODEGEN_CACHE", "XDG_CACHE_HOME"):
        if value := os.environ.get(variable):
            return Path(value).absolute() / "ttcodegen"
    return Path.home() / ".cache" / "ttcodegen"
