"""The tuning knobs of device programs: src/tuning.hpp, and the kernels that follow it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ttmetal.function_text import single
from tests.ttmetal.modules import MODULES, text_of
from ttcodegen.cli.ttcodegen import main
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.ttir_to_ttmetal.matmul.plan import Blocking
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import find_toolchain

ROOT = Path(__file__).parents[2]
SIDE = 512
PRODUCT = single("product", "matmul", [(SIDE, SIDE)] * 2, (SIDE, SIDE), "bf16")

_USELESS = re.compile(r"[*/%] 1\b(?![.\w])|\b1 \* |< 1;|\+ 0\b(?!x)|[^\w.]0 \+ |\+= 0;")
"""Arithmetic that changes nothing, and loops that run once."""


def files_of(text: str) -> dict[str, str]:
    """Files of the compiled module."""
    return compile_module(Source("tiny.mlir", text), CompileOptions("tiny", "ttmetal")).files


@pytest.mark.parametrize("name", MODULES)
def test_kernels_compute_nothing_that_is_known(name: str) -> None:
    kernels = {
        path: text
        for path, text in files_of(text_of(name)).items()
        if path.startswith("kernels/") and "/blocks/" not in path
    }
    assert kernels
    for path, text in kernels.items():
        lines = [line for line in text.splitlines() if not line.strip().startswith("//")]
        assert [line for line in lines if _USELESS.search(line)] == [], path


def test_each_setting_stands_once() -> None:
    files = files_of(PRODUCT)
    header = files["src/tuning.hpp"]
    for setting, value in {
        "grid_rows": 8,
        "grid_columns": 8,
        "block_rows": 2,
        "block_columns": 2,
        "block_inner": 8,
        "subblock_columns": 2,
        "operand_depth": 2,
        "result_depth": 2,
    }.items():
        assert header.count(f"std::uint32_t {setting} = {value};") == 1
    programs = " ".join(files["src/programs.cpp"].split())
    assert (
        "cb_left, DataFormat::Float16_b, Tuning::operand_depth * Tuning::block_rows *" in programs
    )
    assert '{"block_inner", Tuning::block_inner}' in programs
    assert "CoreRange({1, 0}, {Tuning::grid_columns - 1, Tuning::grid_rows - 1})" in programs
    compute = files["kernels/compute_matmul.cpp"]
    assert 'block_inner = get_named_compile_time_arg_val("block_inner");' in compute


def test_the_width_of_registers_can_be_turned_where_the_kernel_allows_it() -> None:
    def rules(op: str, element: str) -> str:
        text = single("f", op, [(64, 64)] * 2, (64, 64), element)
        return files_of(text)["src/tuning.hpp"]

    fixed = "static_assert(fp32_dest_acc_en, "
    assert fixed in rules("add", "si32")
    assert fixed not in rules("add", "f32")
    assert fixed not in rules("add", "bf16")


def test_products_of_other_sizes_share_their_kernels() -> None:
    sizes = (256, 512)
    texts = [single("product", "matmul", [(n, n)] * 2, (n, n), "bf16") for n in sizes]
    kernels = [
        {p: t.partition("\n//\n")[2] for p, t in files_of(text).items() if p.startswith("kernels/")}
        for text in texts
    ]
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize(
    ("inner", "block", "blocks"), [(17, 6, 3), (16, 8, 2), (20, 7, 3), (7, 7, 1), (1, 1, 1)]
)
def test_the_inner_dimension_is_brought_in_few_blocks(inner: int, block: int, blocks: int) -> None:
    """Whatever its number of tiles: the last block has what is left."""
    found = Blocking.of(1, 16, 16, inner, CoreRange(0, 0, 7, 7))
    assert (found.block_inner, found.inner_blocks) == (block, blocks)


def test_a_product_of_single_tiles_has_no_loops() -> None:
    files = files_of(single("vector", "matmul", [(1, 20), (20, 30)], (1, 30), "bf16"))
    assert "block_rows" not in files["src/tuning.hpp"]
    for name in ("read_left", "compute", "read_right"):
        text = files[f"kernels/{name}_matmul.cpp"]
        assert "for (" not in text
        # Neither are sizes requested that nothing needs.
        assert "get_tile_size" not in text
        assert "beyond the last" not in text


def compiled(header: str, folder: Path) -> str:
    """Messages of the C++ compiler for a tuning.hpp."""
    (folder / "tuning.hpp").write_text(header)
    (folder / "tuning.cpp").write_text('#include "tuning.hpp"\n')
    support = ROOT / "ttcodegen" / "templates" / "support_ttmetal" / "tuning.hpp"
    (folder / "support").mkdir(exist_ok=True)
    (folder / "support" / "tuning.hpp").write_text(support.read_text())
    includes = [f"-I{folder}", f"-I{ROOT / 'standalone' / 'include'}"]
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run(
        ["c++", *flags, *includes, str(folder / "tuning.cpp")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stderr


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("block_inner = 8", "block_inner = 0", "block_inner is at least 1"),
        (
            "subblock_columns = 2",
            "subblock_columns = 3",
            "subblock_columns must divide block_columns",
        ),
        (
            "uint32_t block_columns = 2",
            "uint32_t block_columns = 1",
            "subblock_columns must divide block_columns",
        ),
        ("grid_rows = 8", "grid_rows = 1", "grid_rows is at least 2: blocks of the right operand"),
        ("operand_depth = 2", "operand_depth = 0", "operand_depth is at least 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused_when_they_are_compiled(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    header = files_of(PRODUCT)["src/tuning.hpp"]
    assert old in header
    messages = compiled(header.replace(old, new), tmp_path)
    assert "static assertion failed" in messages
    assert expected in messages


def test_a_block_of_nothing_is_what_is_reported_first(tmp_path: Path) -> None:
    header = files_of(PRODUCT)["src/tuning.hpp"]
    messages = compiled(
        header.replace("uint32_t block_rows = 2", "uint32_t block_rows = 0"), tmp_path
    )
    first = next(line for line in messages.splitlines() if "error:" in line)
    assert "static assertion failed: block_rows is at least 1" in first


def test_settings_that_fit_are_compiled(tmp_path: Path) -> None:
    header = files_of(PRODUCT)["src/tuning.hpp"]
    changed = (
        header.replace("block_inner = 8", "block_inner = 5")
        .replace("subblock_columns = 2", "subblock_columns = 1")
        .replace("fp32_dest_acc_en = true", "fp32_dest_acc_en = false")
    )
    assert compiled(changed, tmp_path) == ""


def run(out: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Builds and runs a project; what the device counted as well."""
    build = [find_toolchain().cmake, "--build", str(out / "build")]
    subprocess.run(build, check=True, capture_output=True)
    report = out / "report.json"
    report.unlink(missing_ok=True)
    done = subprocess.run(
        [str(out / "build" / "tiny_main"), *arguments],
        env={**os.environ, "TTCODEGEN_DEVICE_REPORT": str(report)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    counts: dict[str, Any] = {}
    if report.exists():
        counts = json.loads(report.read_text())[0]["total"]
    return done, counts


@pytest.mark.slow
def test_one_number_tunes_a_product(cpu_backend: CPUBackend, tmp_path: Path) -> None:
    source, out = tmp_path / "tiny.mlir", tmp_path / "out"
    source.write_text(PRODUCT)
    arguments = [str(source), "-o", str(out), "--target", "ttmetal", "--kind", "exe", "--build"]
    assert main(arguments) == 0
    tuning = out / "src" / "tuning.hpp"
    original = tuning.read_text()
    expected = str(tmp_path / "expected")
    done, before = run(out, "--outputs", expected)
    assert done.returncode == 0, done.stderr
    tiles = (SIDE // 32) ** 2
    assert before["packed_tiles"] == 2 * tiles

    def tuned(old: str, new: str) -> dict[str, Any]:
        assert old in original
        tuning.write_text(original.replace(old, new))
        done, counts = run(out, "--golden", expected)
        assert done.returncode == 0, done.stderr
        return counts

    # The whole inner dimension at once: no sums wait in L1.
    assert tuned("block_inner = 8", "block_inner = 16")["packed_tiles"] == tiles
    # Three blocks, the last with what is left: the same is read, and a third more sums wait.
    ragged = tuned("block_inner = 8", "block_inner = 7")
    assert ragged["packed_tiles"] == 3 * tiles
    assert ragged["dram_read_bytes"] == before["dram_read_bytes"]
    assert ragged["matmul_tiles"] == before["matmul_tiles"]
    # Cores compute two blocks one after the other, so that the right operand is read twice.
    read = tuned("block_rows = 2", "block_rows = 1")["dram_read_bytes"]
    assert read == before["dram_read_bytes"] * 3 // 2
    assert tuned("grid_columns = 8", "grid_columns = 4")["dram_read_bytes"] == read
    tuning.write_text(original.replace("operand_depth = 2", "operand_depth = 64"))
    done, _ = run(out)
    assert done.returncode == 3
    assert "circular buffers of 'matmul' take 4" in done.stderr
    assert "which has 1499136: make blocks smaller or buffers less deep" in done.stderr
    tuning.write_text(original.replace("grid_rows = 8", "grid_rows = 10"))
    done, _ = run(out)
    assert done.returncode == 3
    assert "'matmul' runs on 8 columns and 10 rows of cores, but the device has 8" in done.stderr
