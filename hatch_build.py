"""What packages hold besides the files of the repository: their commit, and in platform wheels the
compiled CPU backend (scripts/build_wheel.py)."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from ttcodegen.version import COMMIT_FILE, commit


class CustomBuildHook(BuildHookInterface):
    """Adds the files while a wheel or a source distribution is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a package is built; an editable one finds its commit by itself."""
        if version == "editable":
            return
        known = commit()
        if known is not None and not Path(self.root, "ttcodegen", COMMIT_FILE).exists():
            self._scratch = tempfile.TemporaryDirectory()
            file = Path(self._scratch.name, COMMIT_FILE)
            file.write_text(known + "\n")
            build_data["force_include"][str(file)] = f"ttcodegen/{COMMIT_FILE}"
        backend = os.environ.get("TTCODEGEN_WHEEL_BACKEND")
        if backend and self.target_name == "wheel":
            build_data["force_include"][backend] = "ttcodegen/_backend"
            build_data["pure_python"] = False
            build_data["tag"] = os.environ["TTCODEGEN_WHEEL_TAG"]
