"""The CPU backend as a platform wheel brings it: compiled for a few levels of processors.

Such a wheel holds `_backend/backend.json` and `_backend/<level>/lib`. The levels are those of the
x86-64 psABI; the highest that the machine has is used. Where none suits, or the libraries of the
machine's compiler are older than those of the wheel's, the backend is compiled as it is from a
source distribution.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ttcodegen.project.toolchain import Toolchain

PREBUILT_FOLDER = "_backend"
DESCRIPTION = "backend.json"
DISABLING_VARIABLE = "TTCODEGEN_PREBUILT"
"""If it is 0, the backend is compiled, for exactly the processor of the machine."""

_V2 = frozenset("cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3".split())
_V3 = _V2 | frozenset("abm avx avx2 bmi1 bmi2 f16c fma movbe xsave".split())
_V4 = _V3 | frozenset("avx512f avx512bw avx512cd avx512dq avx512vl".split())

LEVELS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "x86_64": {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2},
}
"""By machine: what -march takes, best first, and the flags that Linux lists for such processors."""


@dataclass(frozen=True)
class Prebuilt:
    """A compiled backend of the package."""

    level: str
    library: Path
    """The folder to install as `lib`."""


def find_prebuilt(package: Path, sources_hash: str, toolchain: Toolchain) -> Prebuilt | None:
    """The compiled backend that suits this machine; None if there is none.

    Args:
        package: the folder of the installed package.
        sources_hash: identifies the sources; another one means that they were changed.
        toolchain: the compiler whose programs it is linked to. With flags of the user's own the
            backend is compiled, for they may change what the library has to be.
    """
    folder = package / PREBUILT_FOLDER
    description = _description(folder)
    if description is None or description.get("sources") != sources_hash:
        return None
    if os.environ.get(DISABLING_VARIABLE) == "0":
        return None
    if toolchain.flags or os.environ.get("LDFLAGS"):
        return None
    flags = processor_flags()
    for level, needed in LEVELS.get(platform.machine(), {}).items():
        library = folder / level / "lib"
        if needed <= flags and library.is_dir():
            return Prebuilt(level, library) if _links(library, toolchain) else None
    return None


def processor_flags() -> frozenset[str]:
    """What Linux says that the processor has; nothing where it does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def _description(folder: Path) -> Mapping[str, Any] | None:
    try:
        content: Any = json.loads(folder.joinpath(DESCRIPTION).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _links(library: Path, toolchain: Toolchain) -> bool:
    """True if the compiler's own libraries have all that the archives need."""
    archives = [str(path) for path in sorted(library.glob("*.a"))]
    with tempfile.TemporaryDirectory(prefix="ttcodegen-link-") as scratch:
        command = [toolchain.compiler, "-shared", "-o", str(Path(scratch, "all.so"))]
        command += ["-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive"]
        command += ["-Wl,--no-undefined", "-pthread", "-ldl"]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            return False
