"""Single elements of blocks, which data movement kernels read and write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lang.compiling import checked, refusal
from tests.lang.running import failure, operation, run_text
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import Projects
from ttcodegen.project.cpu_backend import CPUBackend

GATHER = (Path(__file__).parent / "programs" / "elements.py").read_text("utf-8")
DTYPES = ("bfloat16", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_read_and_written(dtype: str) -> None:
    held = run_text(GATHER.replace("DTYPE = ttnn.float32", f"DTYPE = ttnn.{dtype}"))
    found = held["y"].elements()[:, 32:]  # type: ignore[attr-defined]
    for step, number in enumerate((2.75, 0, 1, 3)):
        block = found[32 * step : 32 * (step + 1)]
        assert block[20, 17 + step] == number
        # bfloat16 cuts the lower bits of 0.3 off.
        expected = np.float32(0.3) if dtype == "float32" else np.float32(0.298828125)
        assert block[21, 2] == (expected if number > 1.5 else 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_index_is_read(dtype: str) -> None:
    held = run_text(GATHER.replace("DTYPE = ttnn.float32", f"DTYPE = ttnn.{dtype}"))
    x, y = (held[name].elements() for name in "xy")  # type: ignore[attr-defined]
    for step, row in enumerate((2, 0, 1, 3)):
        np.testing.assert_array_equal(y[32 * step :][:32, :32], x[32 * row :][:32])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gather_on_device(dtype: str, cpu_backend: CPUBackend) -> None:
    (found,) = checked(
        Source("gather.py", GATHER.replace("DTYPE = ttnn.float32", f"DTYPE = ttnn.{dtype}"))
    )
    assert found.agreement.max_abs_err == 0


def _reading(body: str) -> str:
    return operation(READING + "".join(f"        {line}\n" for line in body.splitlines()) + WRITING)


READING = """
@ttl.datamovement()
def read():
    with x_dfb.reserve() as x_blk:
        ttl.copy(x[0, 0], x_blk).wait()
"""
WRITING = """
@ttl.datamovement()
def write():
    with x_dfb.wait() as x_blk:
        ttl.copy(x_blk, y[0, 0]).wait()
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ttl.raw_element_read(x_blk, 0)",
         "ttl.raw_element_read has 1 coordinates, but a block of 'x_dfb' has 2 dimensions"),
        ("ttl.raw_element_read(x_blk, 0, 32)",
         "has the coordinate 32, but a block of 'x_dfb' has (32, 32) elements"),
        ("ttl.raw_element_write(x_blk, 0, 0, 1.0)",
         "cannot write an element of a block of 'x_dfb' in the state MR"),
        ("ttl.read_index(x, 0, 0)", "ttl.read_index takes a block, not a Tensor"),
    ],
)  # fmt: skip
def test_accesses_that_are_refused(body: str, message: str) -> None:
    assert message in failure(_reading(body))


def test_the_compiler_refuses_comparisons_that_it_does_not_make() -> None:
    text = _reading("if ttl.raw_element_read(x_blk, 0, 0) >= 0.5:\n    pass")
    assert "kernels compare floats by > and < only" in refusal(text)


def test_what_kernels_do_with_elements_is_no_function_of_whole_tensors(tmp_path: Path) -> None:
    source = Source("gather.py", GATHER.replace("DTYPE", "float32"))
    projects = Projects(source.digest, tmp_path, has_modules=True)
    run_program_text(source, [], projects.watch)
    assert any("its kernels read single elements" in note for note in projects.notes)
