"""Subcommands read and run of `ttcodegen-rt`, and the values of their inputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.flatbuffers import EXAMPLES, SCHEMA, result_of, written
from tests.flatbuffer.programs import adding_program, binary
from ttcodegen.cli.rt import main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.system import write_ttsys
from ttcodegen.rt import API
from ttcodegen.rt.commands import arguments
from ttcodegen.systems.cards import default_system


def test_read_shows_each_section(adding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "version": '"tt_metal": "0.70.1"',
        "system_desc": '"arch": "wormhole_b0"',
        "mlir": '"ttnn.add"(%a, %b)',
        "cpp": "ttnn::add(",
        "inputs": '"name": "a"',
        "outputs": '"name": "sum"',
    }
    assert set(expected) == set(arguments.SECTIONS) - {"all"}
    for section, text in expected.items():
        assert main(["read", "--section", section, str(adding)]) == 0
        assert text in capsys.readouterr().out, section
    assert main(["read", str(adding)]) == 0
    everything = capsys.readouterr().out
    assert all(text in everything for text in expected.values())
    assert "# system_desc\n" in everything


def test_read_gives_sections_as_data(adding: Path) -> None:
    code, result = result_of("Read", {"binary": adding, "--section": "inputs"})
    assert code == 0
    rows = result["sections"]["inputs"]["main"]
    assert [(row["name"], row["kind"], row["shape"]) for row in rows] == [
        ("a", "input", [2, 32]),
        ("b", "parameter", [2, 32]),
    ]


def test_read_system_descriptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ttsys"
    path.write_bytes(write_ttsys(default_system("blackhole")))
    assert main(["read", str(path)]) == 0
    assert '"arch": "blackhole"' in capsys.readouterr().out
    assert main(["read", "--section", "mlir", str(path)]) == 1
    assert "a .ttsys file has no section 'mlir'" in capsys.readouterr().err


def test_other_versions_are_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.ttnn"
    path.write_bytes(encode(SCHEMA, replace(binary(adding_program()), minor=file.MINOR + 1)))
    for command in ("read", "run", "perf", "check"):
        assert main([command, str(path)]) == 1
        message = capsys.readouterr().err
        assert f"version {file.MAJOR}.{file.MINOR + 1}, which is newer" in message
        assert "make it again with this version of ttcodegen" in message


# run


def test_values_depend_on_seed_and_kind(adding: Path, tmp_path: Path) -> None:
    def inputs(*options: str) -> np.ndarray:
        folder = ["--artifact-dir", str(tmp_path / "f"), "--clean-artifacts", "--save-artifacts"]
        assert main(["run", str(adding), "--quiet", *folder, *options]) == 0
        return np.load(tmp_path / "f" / "run" / "adding" / "program_0" / "input_0.npy")

    assert np.array_equal(inputs("--seed", "1"), inputs("--seed", "1"))
    assert not np.array_equal(inputs("--seed", "1"), inputs("--seed", "2"))
    assert np.array_equal(inputs("--init", "arange").ravel(), np.arange(64))
    assert (inputs("--init", "ones") == 1).all()
    assert not inputs("--init", "zeros").any()
    assert np.abs(inputs("--init", "randn")).max() > 1
    assert (inputs("--init", "rand") >= 0).all()


def test_values_come_from_files(adding: Path, tmp_path: Path) -> None:
    values = tmp_path / "values"
    values.mkdir()
    np.save(values / "a.npy", np.full((2, 32), 3.0))
    np.save(values / "b.npy", np.full((2, 32), 4.0))
    args = {"binary": adding, "--inputs": values, "--save-artifacts": True}
    code, result = result_of("Run", {**args, "--artifact-dir": tmp_path / "f"})
    assert (code, result["programs"][0]["inputs"]) == (0, "files")
    total = np.load(tmp_path / "f" / "run" / "adding" / "program_0" / "output_0.npy")
    assert (total == 7).all()
    np.save(values / "b.npy", np.zeros(3))
    code, result = result_of("Run", {"binary": adding, "--inputs": values})
    assert code == 1
    assert "expected the shape (2, 32) of 'b', found (3,)" in result["error"]


def test_identity(tmp_path: Path) -> None:
    path = written(tmp_path, "same", outputs=(file.Output(0, "a"),))
    assert result_of("Run", {"binary": path, "--identity": True})[0] == 0
    other = written(tmp_path, "sum")
    code, result = result_of("Run", {"binary": other, "--identity": True})
    assert code == 4
    checks = {c["check"]: c for c in result["programs"][0]["outputs"][0]["checks"]}
    assert checks["golden"]["passed"]
    assert not checks["identity"]["passed"]
    loose = {"binary": other, "--identity": True, "--rtol": 1.0, "--atol": 10.0}
    assert result_of("Run", loose)[0] == 0


def test_non_zero(adding: Path) -> None:
    assert result_of("Run", {"binary": adding, "--non-zero": True})[0] == 0
    code, result = result_of("Run", {"binary": adding, "--non-zero": True, "--init": "zeros"})
    assert code == 4
    reasons = [c["reason"] for c in result["programs"][0]["outputs"][0]["checks"]]
    assert "all elements are zero" in reasons


def test_correlation_can_be_demanded(tmp_path: Path) -> None:
    """bf16 meets the program without rounding well, but not perfectly."""
    tensors = tuple(
        replace(t, type=replace(t.type, data_type="bf16")) for t in adding_program().tensors
    )
    path = written(tmp_path, "narrow", tensors=tensors)
    assert result_of("Run", {"binary": path, "--pcc": 0.99})[0] == 0
    assert result_of("Run", {"binary": path, "--pcc": 1.0})[0] == 4
    assert result_of("Run", {"binary": path, "--rtol": 0.01, "--atol": 0.01})[0] == 0
    assert result_of("Run", {"binary": path, "--rtol": 1e-7})[0] == 4


def test_programs_are_chosen_by_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.ttnn"
    path.write_bytes(encode(SCHEMA, binary(adding_program("first"), adding_program("second"))))
    for index, expected in (("all", ["first", "second"]), (1, ["second"])):
        _, result = result_of("Run", {"binary": path, "--program-index": index})
        assert [program["program"] for program in result["programs"]] == expected
    assert main(["run", str(path), "--program-index", "2"]) == 1
    assert "has no program 2; it has 2" in capsys.readouterr().err


def test_memory_and_leaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = adding_program().operations[0]
    tensors = (*adding_program().tensors, adding_program().tensors[2])
    path = written(tmp_path, "leaky", tensors=tensors, operations=(add, replace(add, results=(3,))))
    assert main(["run", str(path), "--memory"]) == 0
    assert "peak memory: dram 16384 bytes, l1 0 bytes" in capsys.readouterr().out
    assert main(["run", str(path), "--check-memory-leak"]) == 4
    assert "leak: c, 4096 bytes in dram" in capsys.readouterr().err
    folder = tmp_path / "f"
    args = {"binary": path, "--memory": True, "--save-artifacts": True, "--artifact-dir": folder}
    _, result = result_of("Run", args)
    assert result["programs"][0]["memory"]["peak_bytes"] == {"dram": 16384, "l1": 0}
    rows = (folder / "run" / "leaky" / "program_0" / "memory.csv").read_text().splitlines()
    assert rows[0] == "index,op,location,dram_bytes,l1_bytes"
    assert rows[2] == '1,ttnn.add,"""add.1""",16384,0'


def test_arrays_are_printed(adding: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--print-input-output-tensors", "--init", "ones"]
    assert main(["run", str(adding), *options]) == 0
    text = capsys.readouterr().out
    assert "input 'a':\n[[1. 1." in text
    assert "output 'sum':\n[[2. 2." in text


def test_tensors_larger_than_the_machine_are_refused(tmp_path: Path) -> None:
    huge = tuple(
        replace(t, type=replace(t.type, shape=(2**31, 2**31))) for t in adding_program().tensors
    )
    path = written(tmp_path, "huge", tensors=huge)
    for command in ("Run", "Perf"):
        code, result = result_of(command, {"binary": path, "--artifact-dir": tmp_path / "f"})
        assert code == 1
        assert "GiB for its tensors, there are" in result["error"]


def test_programs_of_the_device(tmp_path: Path) -> None:
    out = tmp_path / "decoder"
    source = str(EXAMPLES / "stitching" / "decoder.mlir")
    options = ["--target", "ttmetal", "--no-format"]
    assert compile_main([source, "-o", str(out), *options]) == 0
    path = out / "model.ttm"
    seen: list[str] = []
    run = API.Run(
        args={"binary": path, "--quiet": True, "--memory": True, "--check-memory-leak": True},
        callback=lambda event: seen.append(event.name),
    )
    code, results = run()
    program = results["results"][0]["programs"][0]
    assert (code, program["golden"]) == (0, "unrounded")
    assert program["memory"]["peak_bytes"]["dram"] > 0
    assert "ttmetal.run_program matmul" in seen
    assert "ttir.matmul" in seen
    _, result = result_of("Perf", {"binary": path, "--artifact-dir": tmp_path / "f"})
    rows = {row["op"]: row for row in result["ops"]}
    assert rows["matmul"]["flops"] == 2 * 32 * 128 * 10
    _, result = result_of("Read", {"binary": path, "--section": "cpp"})
    assert "void kernel_main() {" in result["sections"]["cpp"]
    assert result_of("Check", {"binary": path})[0] == 0


def test_programs_that_cannot_be_run(tmp_path: Path) -> None:
    tensors = (*adding_program().tensors[:2], replace(adding_program().tensors[2]))
    tensors = (
        *tensors[:2],
        replace(tensors[2], type=replace(tensors[2].type, shape=(2, 33))),
    )
    code, result = result_of("Run", {"binary": written(tmp_path, "wrong", tensors=tensors)})
    assert code == 1
    said = "function 'main', operation 0 at \"add.1\": ttnn.add: expected a result of shape 2x32"
    assert said in result["error"]
