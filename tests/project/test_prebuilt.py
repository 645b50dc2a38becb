"""Choice of the compiled backend of a platform wheel for a processor."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import subprocess
from pathlib import Path

import pytest

from ttcodegen.project import cpu_backend
from ttcodegen.project.toolchain import find_toolchain

if platform.machine() != "x86_64":
    pytest.skip("levels are known of x86-64 only", allow_module_level=True)

LEVELS = cpu_backend.LEVELS["x86_64"]

FLAG_OF_MACRO = {
    "__AVX2__": "avx2",
    "__AVX512BW__": "avx512bw",
    "__AVX512CD__": "avx512cd",
    "__AVX512DQ__": "avx512dq",
    "__AVX512F__": "avx512f",
    "__AVX512VL__": "avx512vl",
    "__AVX__": "avx",
    "__BMI2__": "bmi2",
    "__BMI__": "bmi1",
    "__CRC32__": "sse4_2",
    "__F16C__": "f16c",
    "__FMA__": "fma",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__LAHF_SAHF__": "lahf_lm",
    "__LZCNT__": "abm",
    "__MOVBE__": "movbe",
    "__POPCNT__": "popcnt",
    "__SSE3__": "pni",
    "__SSE4_1__": "sse4_1",
    "__SSE4_2__": "sse4_2",
    "__SSSE3__": "ssse3",
    "__XSAVE__": "xsave",
}
"""Names in /proc/cpuinfo of the instruction sets for which macros are defined."""


def macros(level: str) -> set[str]:
    """Macros that the compiler defines when it compiles for a level."""
    command = [find_toolchain().compiler, f"-march={level}", "-dM", "-E", "-x", "c++", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE))


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_asks_for_all_instructions_that_its_code_may_have(level: str) -> None:
    added = macros(level) - macros("x86-64")
    instructions = {macro for macro in added if not macro.startswith("__FP_FAST_FMA")}
    assert {FLAG_OF_MACRO[macro] for macro in instructions} <= LEVELS[level]


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [
        (None, "x86-64-v4"),
        ("avx512vl", "x86-64-v3"),
        ("fma", "x86-64-v2"),
        ("ssse3", None),
    ],
)
def test_a_processor_gets_the_highest_level_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str | None, expected: str | None
) -> None:
    folder = tmp_path / cpu_backend.PREBUILT_FOLDER
    for level in LEVELS:
        (folder / level / "lib").mkdir(parents=True)
    (folder / cpu_backend.DESCRIPTION).write_text(json.dumps({"sources": "hash"}))
    flags = LEVELS["x86-64-v4"] | {"avx512_bf16"}
    monkeypatch.setattr(cpu_backend, "processor_flags", lambda: flags - {lacking})
    monkeypatch.delenv(cpu_backend.DISABLING_VARIABLE, raising=False)
    monkeypatch.delenv("LDFLAGS", raising=False)
    # An empty folder links: what the libraries need is tested with the backend.
    toolchain = dataclasses.replace(find_toolchain(), flags="")
    found = cpu_backend.find_prebuilt(tmp_path, "hash", toolchain)
    assert (None if found is None else found.level) == expected
