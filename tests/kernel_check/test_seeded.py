"""Faults of initialisation in kernels that ttcodegen wrote, one at a time: each is refused by the
emulated device, or found by the check of kernels."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.initialisation_check import InitialisationCheck
from scripts.initialisation_table import InitialisationTable
from scripts.kernel_check import KernelCheck
from scripts.kernel_check_configuration import KernelConfiguration, read_manifest
from tests.kernel_check.seeded_faults import Seed, seeds
from tests.kernel_check.test_emitted import emitted
from ttcodegen.project.building import build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.systems.releases import CATALOGUE_RELEASE

MODULE = "attention"
"""A module of the tests whose kernels have operations of all engines; they are written for the
release in whose spelling the faults are."""
FAULTS = int(os.environ.get("TTCODEGEN_FAULTS", "91"))
"""Thirteen of each kind; each night there are two hundred."""
MISSED = 3
"""Most of them that the emulated device lets pass; most of those other than formats, which the text
does not show, that the check does not find."""
FORMAT = "format of another operand"

pytestmark = pytest.mark.slow


def drawn(kernels: list[KernelConfiguration]) -> list[tuple[KernelConfiguration, Seed]]:
    """As many faults of each kind, until there are enough."""
    by_kind: dict[str, list[tuple[KernelConfiguration, Seed]]] = {}
    numbers = random.Random(0)
    for kernel in kernels:
        for seed in seeds(kernel.file.read_text("utf-8")):
            by_kind.setdefault(seed.kind, []).append((kernel, seed))
    for found in by_kind.values():
        numbers.shuffle(found)
    chosen: list[tuple[KernelConfiguration, Seed]] = []
    while len(chosen) < FAULTS:
        chosen += [found.pop() for found in by_kind.values() if found]
    return chosen[:FAULTS]


def is_refused(executable: Path, kernel: Path, seed: Seed) -> bool:
    """True if the program ends with an error at a line of the kernel with the fault."""
    right = kernel.read_text("utf-8")
    # Not every kernel has the full initialisation that some faults are.
    kernel.write_text(f'#include "api/compute/eltwise_unary/eltwise_unary.h"\n{seed.text}', "utf-8")
    try:
        done = subprocess.run(
            [executable], capture_output=True, text=True, check=False, timeout=300
        )
    finally:
        kernel.write_text(right, "utf-8")
    located = re.search(rf"error: \S*{re.escape(kernel.name)}:\d+: ", done.stdout + done.stderr)
    return done.returncode != 0 and located is not None


def test_seeded_faults_are_refused(
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    kernel_checks: Callable[[str], KernelCheck],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cpu_backend is not None
    out = emitted(MODULE, "wormhole_b0", tmp_path, CATALOGUE_RELEASE.name)
    executable = build_project(out, MODULE, toolchain, "exe").executable
    assert executable is not None
    manifest = read_manifest(out / "manifest.json")
    compute = {kernel.file: kernel for kernel in manifest if kernel.processor == "compute"}
    faults = drawn(list(compute.values()))
    assert len({kind for kind in (seed.kind for _, seed in faults)}) == 8
    table = InitialisationTable.read(kernel_checks(CATALOGUE_RELEASE.name).device)
    counts: Counter[str] = Counter()
    for kernel, seed in faults:
        text = tmp_path / "seeded.cpp"
        text.write_text(seed.text, "utf-8")
        check = InitialisationCheck(table, kernel.dst_full_sync_en)
        in_text = bool(check.faults([text], dict(kernel.defines)))
        on_device = is_refused(executable, kernel.file, seed)
        counts["on the device"] += on_device
        counts["in the text"] += in_text
        counts["by either"] += in_text or on_device
        if not (in_text or on_device):
            counts[f"missed: {seed.kind}"] += 1
    with capsys.disabled():
        print(f"\n{FAULTS} faults: {dict(counts)}")
    assert counts["on the device"] >= FAULTS - MISSED
    assert counts["in the text"] >= sum(seed.kind != FORMAT for _, seed in faults) - MISSED
