"""The tutorials of the public package tt-lang, as they are in it: downloaded, not kept here."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

RELEASE = "1.1.1"
PLATFORM = ("--python-version", "3.12", "--platform", "manylinux_2_35_x86_64")
FOLDER = "ttl/tutorials/"
ELEMENTWISE = [
    "elementwise/step_0_ttnn_base.py",
    "elementwise/step_1_single_node_single_tile_block.py",
    "elementwise/step_2_single_node_multitile_block.py",
    "elementwise/step_3_multinode.py",
    "elementwise/step_4_multinode_grid_auto.py",
    "broadcast/single_node_broadcast_single_tile_block.py",
    "broadcast/single_node_broadcast_multitile_blocks.py",
]
MATMUL = [
    "matmul/step_0_ttnn_base.py",
    "matmul/step_1_single_node_single_tile_block.py",
    "matmul/step_2_single_node_multitile_block.py",
    "matmul/step_3_multinode.py",
    "matmul/step_4_multinode_grid_auto.py",
    "matmul/step_5_multidevice_shard_m.py",
    "matmul/step_6_multidevice_shard_k.py",
    "matmul/step_7_multidevice_shard_k_all_reduce.py",
]
SIZE = "M, K, N = 8192, 8192, 8192"
"""A product of this size takes 40 to 60 seconds, of single tiles eight minutes."""
WHOLE = ["matmul/step_4_multinode_grid_auto.py"]
"""Those that always have their own size."""
SMALLER = "M, K, N = 1024, 512, 1024"


@pytest.fixture(scope="module")
def tutorials() -> zipfile.ZipFile:
    """The wheel, skipped where it cannot be had."""
    pytest.importorskip("torch")
    cache = Path(__file__).parent.parent.parent / "build" / "wheels"
    cache.mkdir(parents=True, exist_ok=True)
    pattern = f"tt_lang-{RELEASE}-*.whl"
    if not any(cache.glob(pattern)):
        command = ("pip", "download", f"tt-lang=={RELEASE}", "--no-deps", "--only-binary=:all:")
        try:
            subprocess.run((*command, *PLATFORM, "-q", "-d", str(cache)), check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"the wheel of tt-lang {RELEASE} cannot be had: {error}")
    return zipfile.ZipFile(next(cache.glob(pattern)))


def run(text: str, folder: Path, *options: str) -> str:
    """Runs a program by itself; it compares its results with those of torch."""
    program = folder / "tutorial.py"
    program.write_text(text, "utf-8")
    start = "import sys; from ttcodegen.cli.lang import main; sys.exit(main(sys.argv[1:]))"
    command = (sys.executable, "-c", start, str(program), *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_tutorial_runs_unchanged(name: str, tutorials: zipfile.ZipFile, tmp_path: Path) -> None:
    run(tutorials.read(FOLDER + name).decode(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", MATMUL)
def test_a_tutorial_of_products_runs(name: str, tutorials: zipfile.ZipFile, tmp_path: Path) -> None:
    text = tutorials.read(FOLDER + name).decode()
    assert SIZE in text
    if name not in WHOLE and not os.environ.get("TTCODEGEN_WHOLE_TUTORIALS"):
        text = text.replace(SIZE, SMALLER)
    reported = run(text, tmp_path)
    assert "PCC 0.99" in reported or "PCC 1.0" in reported


@pytest.mark.slow
@pytest.mark.parametrize("name", [ELEMENTWISE[4], ELEMENTWISE[6], MATMUL[4]])
def test_a_tutorial_on_the_emulated_device(
    name: str, tutorials: zipfile.ZipFile, tmp_path: Path
) -> None:
    text = tutorials.read(FOLDER + name).decode().replace(SIZE, "M, K, N = 256, 256, 384")
    reported = run(text.replace("(2048, 2048)", "(256, 384)"), tmp_path, "--check")
    assert "correlation " in reported
