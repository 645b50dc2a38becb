"""The executable of a project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

pytestmark = pytest.mark.slow

X = np.arange(8, dtype=np.float32).reshape(2, 4)
WEIGHT = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
BIAS = np.array([[1.0, -1.0, 0.5]], np.float32)
CONSTANT = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture
def program(sanitized_program: Path) -> Path:
    """The executable."""
    return sanitized_program


def run(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the executable far from its folder."""
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def save(folder: Path, **arrays: np.ndarray) -> Path:
    """Writes arrays as files of their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with the inputs and weights of `forward`."""
    save(tmp_path / "inputs" / "forward", x=X, layer_weight=WEIGHT, layer_bias=BIAS)
    return tmp_path / "inputs"


def test_it_computes(program: Path, inputs: Path, tmp_path: Path) -> None:
    done = run(program, "--inputs", inputs, "--outputs", tmp_path / "out", "--function", "forward")
    assert (done.returncode, done.stderr) == (0, "")
    y = np.load(tmp_path / "out" / "forward" / "y.npy")
    np.testing.assert_allclose(y, X @ WEIGHT + BIAS + CONSTANT, rtol=1e-5)
    assert not (tmp_path / "out" / "types_of_all").exists()
    assert "1 runs: inputs to the device" in done.stdout


def test_single_inputs_are_given_by_name(program: Path, inputs: Path, tmp_path: Path) -> None:
    save(tmp_path, other=X + 1)
    arguments = ["--inputs", inputs, f"--input=x={tmp_path}/other.npy", "--function=forward"]
    done = run(program, *arguments, "--outputs", tmp_path / "out")
    assert done.returncode == 0
    y = np.load(tmp_path / "out" / "forward" / "y.npy")
    np.testing.assert_allclose(y, (X + 1) @ WEIGHT + BIAS + CONSTANT, rtol=1e-5)
    done = run(program, *arguments, "--input", f"layer.weight={tmp_path}/other.npy")
    assert done.returncode == 3
    assert "'layer.weight': expected the shape (4, 3), found (2, 4)" in done.stderr


def test_types_go_through(program: Path, tmp_path: Path) -> None:
    half = np.array([1.5, -2, 3], ml_dtypes.bfloat16)
    save(
        tmp_path / "in" / "types_of_all",
        i=np.array([1, -2, 3], np.int64),
        h=half,
        u=np.array([0, 1, 65535], np.uint16),
    )
    done = run(
        program, "--inputs", tmp_path / "in", "--outputs", tmp_path, "--function=types/of all"
    )
    assert done.returncode == 0, done.stderr
    out = [np.load(tmp_path / "types_of_all" / f"output{i}.npy") for i in range(4)]
    assert [array.dtype.name for array in out] == ["int32", "float32", "uint16", "float32"]
    assert [array.tolist() for array in out] == [
        [2, -4, 6],
        [1.5, -2, 3],
        [0, 1, 65535],
        [0, 0, 0],
    ]


@pytest.mark.parametrize(
    "values",
    [
        X.astype(np.float16),
        X.astype(np.float64),
        X.astype(">f4"),
        X.astype(">i2"),
        np.asfortranarray(X),
        X.astype(np.int8),
        X.astype(np.uint64),
        X.astype(ml_dtypes.bfloat16),
        X > 3,
    ],
    ids=lambda v: f"{v.dtype.str}-{'F' if not v.flags.c_contiguous else 'C'}",
)
def test_arrays_of_other_types_are_converted(
    program: Path, inputs: Path, tmp_path: Path, values: np.ndarray
) -> None:
    save(inputs / "forward", x=values)
    done = run(program, "--inputs", inputs, "--outputs", tmp_path, "--function", "forward")
    assert done.returncode == 0, done.stderr
    expected = values.astype(np.float32) @ WEIGHT + BIAS + CONSTANT
    np.testing.assert_allclose(np.load(tmp_path / "forward" / "y.npy"), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1.5, 2, 3]), "elements of type float64 cannot become int32"),
        (np.array([1, 2, 2**31]), "the value 2147483648 (element 2) does not fit int32"),
        (np.array([1, 2]), "expected the shape (3,), found (2,)"),
        (np.array(1), "expected the shape (3,), found ()"),
        (np.array([1j, 2, 3]), "elements of type '<c16'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    program: Path, tmp_path: Path, values: np.ndarray, message: str
) -> None:
    save(tmp_path, i=values)
    done = run(program, "--function", "types_of_all", "--input", f"i={tmp_path}/i.npy")
    assert done.returncode == 3
    assert message in done.stderr


def _npy(header: bytes, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"not an array at all",
        _npy(HEADER),
        _npy(HEADER, bytes(31)),
        _npy(HEADER, bytes(33)),
        _npy(HEADER, bytes(32), b"\x09\x00"),
        _npy(HEADER[:20], bytes(32)),
        _npy(b""),
        _npy(b"{}"),
        _npy(b"{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 4), }", bytes(32)),
        _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 4), }", bytes(32)),
        _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}"),
        _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4)}"),
        _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 1073741824)}"),
        _npy(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 4), }", bytes(32)),
        _npy(b"{'descr': '<f4' 'fortran_order': False}", bytes(32)),
        _npy(b"{'other': '<f4'}", bytes(32)),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    ],
)
def test_damaged_files_are_refused(program: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.npy"
    file.write_bytes(content)
    done = run(program, "--function", "forward", "--input", f"x={file}")
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: {file}: ")


def test_later_versions_of_the_format_are_read(program: Path, tmp_path: Path) -> None:
    header = HEADER + b" " * 7
    content = b"\x93NUMPY\x03\x00" + len(header).to_bytes(4, "little") + header + X.tobytes()
    (tmp_path / "x.npy").write_bytes(content)
    assert run(program, "--function=forward", f"--input=x={tmp_path}/x.npy").returncode == 0


def test_what_is_not_given_is_drawn_by_the_seed(program: Path, tmp_path: Path) -> None:
    def outputs(seed: int, name: str) -> np.ndarray:
        done = run(program, "--seed", str(seed), "--outputs", tmp_path / name, "--loops", "2")
        assert done.returncode == 0
        return np.load(tmp_path / name / "forward" / "y.npy")

    first = outputs(7, "a")
    assert np.array_equal(outputs(7, "b"), first)
    assert not np.array_equal(outputs(8, "c"), first)


def test_golden_outputs_are_compared(program: Path, inputs: Path, tmp_path: Path) -> None:
    arguments = ["--inputs", inputs, "--function", "forward", "--golden", tmp_path / "golden"]
    y = X @ WEIGHT + BIAS + CONSTANT
    save(tmp_path / "golden" / "forward", y=y)
    done = run(program, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "equals the golden output: correlation 1.0" in done.stdout
    y[0, 0] += 1
    save(tmp_path / "golden" / "forward", y=y)
    done = run(program, *arguments)
    assert done.returncode == 1
    assert "error: output 'y' of 'forward' differs from the golden one" in done.stderr
    assert run(program, *arguments, "--max-error", "0.1", "--correlation=0.9").returncode == 0
    y[0, 0] = np.nan
    save(tmp_path / "golden" / "forward", y=y)
    assert run(program, *arguments, "--max-error", "1", "--correlation", "0").returncode == 1


def test_a_golden_output_of_another_shape(program: Path, inputs: Path, tmp_path: Path) -> None:
    save(tmp_path / "forward", y=np.zeros(6, np.float32))
    done = run(program, "--function", "forward", "--golden", tmp_path)
    assert done.returncode == 3
    assert "the shape (2, 3) is not the expected (6,)" in done.stderr


def test_weights_come_from_the_data_folder(program: Path, inputs: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    save(data, offset=CONSTANT)
    np.save(data / "forward.layer_weight.npy", WEIGHT)
    np.save(data / "forward.layer_bias.npy", BIAS)
    file = inputs / "forward" / "x.npy"
    arguments = ["--function", "forward", "--input", f"x={file}", "--outputs", tmp_path]
    done = run(program, *arguments, "--data", data)
    assert done.returncode == 0
    assert done.stdout.count("from the data folder") == 2
    expected = X @ WEIGHT + BIAS + CONSTANT
    np.testing.assert_allclose(np.load(tmp_path / "forward" / "y.npy"), expected, rtol=1e-5)
    (data / "offset.npy").unlink()
    done = run(program, *arguments, "--data", data)
    assert done.returncode == 3
    assert f"{data}/offset.npy: No such file" in done.stderr


def test_functions_are_listed(program: Path) -> None:
    done = run(program, "--list")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["parameter", "layer.weight", "(4,", "3)", "float32"] in lines
    assert ["types/of", "all"] in lines


def test_help(program: Path) -> None:
    done = run(program, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: tiny_main [options]")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nothing"],
        ["--nothing=1"],
        ["--seed"],
        ["--seed", "x"],
        ["--seed", "1x"],
        ["--device", "70000"],
        ["--input", "x"],
        ["--function", "none"],
        ["file.npy"],
        ["--input", "none=x.npy"],
        ["--loops", "0"],
        ["--inputs", "/no/such/folder"],
        ["--inputs", "/dev"],
        ["--golden", "/no/such/folder"],
        ["--data", "/no/such/folder"],
    ],
)
def test_wrong_usage(program: Path, arguments: list[str]) -> None:
    done = run(program, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "--help lists the options" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outputs", "/dev/null/x"], "cannot create /dev/null/x"),
        (["--input", "x=/nothing.npy"], "/nothing.npy: No such file"),
        (["--input", "x=/"], "/: "),
        (["--device", "3"], "device"),
    ],
)
def test_failures_are_reported(program: Path, arguments: list[str], message: str) -> None:
    done = run(program, *arguments)
    assert done.returncode == 3
    assert message in done.stderr


def test_a_full_disk_is_reported(program: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(program), "--list"], stdout=full, check=False)
    assert done.returncode == 3
