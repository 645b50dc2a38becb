"""First contact with the command: other formats, spellings, existing projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ttcodegen
from ttcodegen.cli.opt import main as opt_main
from ttcodegen.cli.rt import main as rt_main
from ttcodegen.cli.ttcodegen import main
from ttcodegen.project.settings import ProjectOptions
from ttcodegen.runtime.c_api import ModuleError

SOURCE = """func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttir.relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "first.mlir"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model.pt", "ttcodegen.torch.compile"),
        ("model.onnx", "ONNX"),
        ("model.safetensors", "holds weights and no program"),
        ("scripted.pt", "torch.jit.load"),
        ("model.ipynb", "notebook"),
        ("x.npy", "--golden"),
        ("model.py", "ttcodegen-lang"),
        ("model.tflite", "TOSA"),
        ("model.bin", "holds weights and no program"),
        ("model.ttnn", "ttcodegen-rt run"),
        ("n300.ttsys", "--system-desc"),
    ],
)
def test_other_formats_are_named(
    tmp_path: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"PK\3\4\xff\0")
    assert main([str(tmp_path / name), "-o", str(tmp_path / "out")]) == 1
    message = capsys.readouterr().err
    assert words in message
    assert message.startswith(f"error: '{tmp_path / name}' is ")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("fp16", "f16"),
        ("float16", "f16"),
        ("b16", "bf16"),
        ("bool", "i1"),
        ("uint8", "ui8"),
        ("BF16", "bf16"),
        ("long", "i64"),
    ],
)
def test_element_types_of_other_systems(
    source: Path, written: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text(SOURCE.replace("f32", written))
    assert main([str(source), "-o", str(source.parent / "out")]) == 1
    hint = f"there is no element type {written}; did you mean {meant}?"
    assert hint in capsys.readouterr().err


def test_another_model_does_not_replace_a_project(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = source.parent / "out", source.parent / "second.mlir"
    other.write_text(SOURCE.replace("relu", "abs"))
    assert main([str(source), "-o", str(out), "-q"]) == 0
    assert main([str(other), "-o", str(out), "-q"]) == 1
    assert f"'{out}' holds the project of 'first', not of 'second'" in (
        err := capsys.readouterr().err
    )
    assert "--name first if it is the same model" in err
    assert (out / "src" / "first.cpp").exists()
    assert main([str(other), "-o", str(out), "-q", "--force"]) == 0
    assert not (out / "src" / "first.cpp").exists()


def test_a_model_whose_file_was_renamed_keeps_its_edits(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = source.parent / "out"
    assert main([str(source), "-o", str(out), "-q"]) == 0
    code = out / "src" / "first.cpp"
    code.write_text(code.read_text() + "// mine\n")
    renamed = source.rename(source.with_name("renamed.mlir"))
    assert main([str(renamed), "-o", str(out)]) == 0
    assert code.read_text().endswith("// mine\n")
    assert "with your edits of src/first.cpp" in capsys.readouterr().err


def test_a_compile_says_what_it_wrote(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = source.parent / "out"
    assert main([str(source), "-o", str(out)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ttcodegen: wrote ")
    assert line.endswith(f"files of the project 'first' to {out}; next: ttcodegen-rt run {out}")
    assert main([str(source), "-o", str(out), "-q"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_build_says_what_it_built(
    source: Path, cpu_backend: object, capsys: pytest.CaptureFixture[str]
) -> None:
    out = source.parent / "out"
    for kind, files, step in (
        ("both", f"{out}/build/first_main and {out}/build/libfirst.so", "build/first_main --help"),
        ("so", f"{out}/build/libfirst.so", f"ttcodegen.load('{out}') in Python"),
    ):
        assert main([str(source), "-o", str(out), "--build", "--kind", kind]) == 0
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith(f"ttcodegen: built {files}; next: ")
        assert last.endswith(step)


def test_wrong_usage_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["x.mlir", "--targt", "ttnn"]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert first == "ttcodegen: error: there is no option --targt; did you mean --target?"
    assert rt_main(["run", "--lops", "2"]) == 2
    assert capsys.readouterr().err.splitlines()[0].endswith("did you mean --loops?")


def test_quiet_and_verbose_everywhere(source: Path) -> None:
    out = source.parent / "out"
    for option in ("-q", "-v"):
        assert main([str(source), "-o", str(out), option]) == 0
        assert opt_main(["--ttir-canonicalize", option, str(source)]) == 0
        assert rt_main(["read", option, str(out / "model.ttnn")]) == 0


def test_the_package_is_a_program() -> None:
    command = [sys.executable, "-m", "ttcodegen", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ttcodegen 0.")


def test_hand_and_tool_build_in_one_folder(source: Path) -> None:
    out = source.parent / "out"
    assert main([str(source), "-o", str(out), "-q"]) == 0
    assert '"binaryDir": "${sourceDir}/build",' in (out / "CMakePresets.json").read_text()
    assert "build/first_main" in (out / "README.md").read_text()
    assert "build-cpu" not in (out / "README.md").read_text()


def test_python_takes_the_options_of_the_command_line(tmp_path: Path) -> None:
    given = ProjectOptions("ttmetal", weights="bfp8_b", mesh="1x2", kind="exe", trace=True)
    options = given.compile_options("m")
    assert (options.target, options.weights, options.mesh) == ("ttmetal", "bfp8_b", (1, 2))
    assert (options.kind, options.trace) == ("exe", True)
    (tmp_path / "o.json").write_text("text")
    options = ProjectOptions(optimize=2, overrides=tmp_path / "o.json").compile_options("m")
    assert (options.optimize, options.overrides) == (2, "text")


@pytest.mark.slow
def test_a_model_is_loaded_from_its_file(source: Path, cpu_backend: object) -> None:
    out = source.parent / "out"
    with ttcodegen.load(source, out=out, optimize=1) as model:
        assert model(np.array([-1, 0, 1, 2], np.float32)).tolist() == [0, 0, 1, 2]
    with pytest.raises(ModuleError, match="nothing to compile"):
        ttcodegen.load(out, optimize=1)
    with pytest.raises(ModuleError, match="give the folder"):
        ttcodegen.load(source)
