"""`ttcodegen-rt` on built shared objects, and flatbuffers beside them."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ttcodegen.cli.opt import main as opt_main
from ttcodegen.cli.rt import main
from ttcodegen.cli.translate import main as translate_main
from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.project.building import build_project
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain
from ttcodegen.rt import API

pytestmark = pytest.mark.slow

SOURCE = """
func.func @choose(
    %w: tensor<64x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>,
                            ttir.name = "layer.weight"},
    %x: tensor<32x64xbf16> {ttir.name = "x"}
) -> (tensor<32x16xbf16> {ttir.name = "scores"}, tensor<32xi64> {ttir.name = "best"},
      tensor<32x16xi1> {ttir.name = "positive"}) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x64xbf16>, tensor<64x16xbf16>) -> tensor<32x16xbf16>
  %1 = "ttir.argmax"(%0) <{dim_arg = [1 : i32], keep_dim = false}>
      : (tensor<32x16xbf16>) -> tensor<32xi64>
  %2 = "ttir.constant"() <{value = dense<0.0> : tensor<32x16xbf16>}> : () -> tensor<32x16xbf16>
  %3 = "ttir.gt"(%0, %2) : (tensor<32x16xbf16>, tensor<32x16xbf16>) -> tensor<32x16xi1>
  return %0, %1, %3 : tensor<32x16xbf16>, tensor<32xi64>, tensor<32x16xi1>
}
"""


@pytest.fixture(scope="session")
def project(
    toolchain: Toolchain,
    cpu_backend: CPUBackend,
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> Path:
    """A project with its shared object, built once for all tests; they do not change it."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "rt"
    folder.mkdir(exist_ok=True)
    out = folder / "choose"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            (folder / "choose.mlir").write_text(SOURCE)
            assert compile_main([str(folder / "choose.mlir"), "-o", str(out)]) == 0
        build_project(out, "choose", toolchain, "so")
    return out


def test_flatbuffers_and_shared_objects_side_by_side(project: Path) -> None:
    code, results = API.Run(args={"binary": project, "--emitc": True, "--quiet": True})()
    assert code == 0
    (result,) = results["results"]
    assert result["shared_object"] == str(project / "build" / "libchoose.so")
    checks = [
        {check["check"]: check["passed"] for check in output["checks"]}
        for output in result["programs"][0]["outputs"]
    ]
    assert checks == [{"golden": True, "flatbuffer": True}] * 3


def test_files_of_one_name_belong_together(project: Path, tmp_path: Path) -> None:
    """As a test writes them that compiles the C++ itself."""
    shutil.copy(project / "model.ttnn", tmp_path / "choose.ttnn")
    shutil.copy(project / "build" / "libchoose.so", tmp_path / "libchoose.so")
    assert main(["run", "--emitc", str(tmp_path), "--quiet"]) == 0


def test_programs_that_differ_are_found(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.mlir"
    other.write_text(SOURCE.replace("ttir.gt", "ttir.le"))
    assert compile_main([str(other), "-o", str(tmp_path / "out"), "--no-format"]) == 0
    shutil.copy(tmp_path / "out" / "model.ttnn", tmp_path / "choose.ttnn")
    shutil.copy(project / "build" / "libchoose.so", tmp_path / "libchoose.so")
    assert main(["run", "--emitc", str(tmp_path / "choose.ttnn")]) == 4
    message = capsys.readouterr().err
    assert "output 'positive', flatbuffer: only" in message
    assert "output 'scores'" not in message


def test_a_missing_shared_object(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(project / "model.ttnn", tmp_path / "choose.ttnn")
    assert main(["run", "--emitc", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert "there is no shared object that belongs to" in message
    assert "note: build it with ttcodegen --build; or put lib<name>.so" in message


def test_weights_come_from_the_data_of_the_project(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "choose"
    shutil.copytree(project, out)
    np.save(out / "data" / "layer_weight.npy", np.zeros((64, 16), np.float32))
    folder = tmp_path / "f"
    for path in (out / "model.ttnn", out / "build" / "libchoose.so"):
        args = {"binary": path, "--save-artifacts": True, "--artifact-dir": folder, "--quiet": True}
        code, results = API.Run(args=args)()
        assert code == 0
        assert results["results"][0]["programs"][0]["inputs"] == "files"
        scores = np.load(folder / "run" / path.stem / "program_0" / "output_0.npy")
        assert not scores.any()


def test_a_shared_object_is_compared_with_its_flatbuffer(project: Path) -> None:
    path = project / "build" / "libchoose.so"
    code, results = API.Run(args={"binary": path, "--quiet": True, "--memory": True})()
    assert code == 0
    program = results["results"][0]["programs"][0]
    assert program["golden"] == "unrounded"
    assert program["memory"]["peak_bytes"]["dram"] > 0


def test_a_shared_object_by_itself(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "libchoose.so"
    shutil.copy(project / "build" / "libchoose.so", path)
    code, results = API.Run(args={"binary": path, "--quiet": True})()
    assert code == 0
    assert results["results"][0]["programs"][0]["golden"] is None
    code, results = API.Read(args={"binary": path, "--quiet": True})()
    sections = results["results"][0]["sections"]
    assert set(sections) == {"version", "inputs", "outputs"}
    assert [row["name"] for row in sections["inputs"]["choose"]] == ["x", "layer.weight"]
    assert sections["outputs"]["choose"][0]["layout"] == "tile"


def test_sections_of_a_shared_object(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = str(project / "build" / "libchoose.so")
    for section, text in (("mlir", '"ttnn.matmul"('), ("cpp", "ttnn::matmul(")):
        assert main(["read", "--section", section, library]) == 0
        assert text in capsys.readouterr().out
    assert main(["read", "--section", "inputs", library]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["choose"]]
    assert names == ["layer.weight", "x"]
    assert main(["check", library]) == 0


def test_shared_objects_are_measured_op_by_op(project: Path, tmp_path: Path) -> None:
    path = project / "build" / "libchoose.so"
    args = {"binary": path, "--loops": 2, "--artifact-dir": tmp_path, "--quiet": True}
    code, results = API.Perf(args=args)()
    assert code == 0
    rows = {row["op"]: row for row in results["results"][0]["ops"]}
    assert {"ttnn.matmul", "ttnn.argmax", "(outside of the calls)"} < rows.keys()
    product = rows["ttnn.matmul"]
    assert (product["program"], product["calls"]) == ("choose", 1)
    assert product["flops"] == 2 * 32 * 64 * 16
    assert product["estimated_us"] > 0
    assert product["processor_us"] > 0
    assert rows["(outside of the calls)"]["index"] is None


def test_calls_of_a_shared_object_by_itself_have_their_own_names(
    project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "libchoose.so"
    shutil.copy(project / "build" / "libchoose.so", path)
    args = {"binary": path, "--artifact-dir": tmp_path, "--quiet": True}
    code, results = API.Perf(args=args)()
    assert code == 0
    rows = {row["op"]: row for row in results["results"][0]["ops"]}
    assert rows["ttnn::matmul"]["bytes"] == 2 * (32 * 64 + 64 * 32 + 32 * 32)
    assert rows["ttnn::matmul"]["estimated_us"] is None


def test_ops_of_a_shared_object_are_compared_with_those_of_a_flatbuffer(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(project / "build" / "libchoose.so")
    for pair in ([library, library], [library, str(project / "model.ttnn")]):
        assert main(["compare", *pair]) == 0
        assert "no op drifts, of " in capsys.readouterr().out
    other = tmp_path / "other.mlir"
    other.write_text(SOURCE.replace("dense<0.0>", "dense<0.5>"))
    assert compile_main([str(other), "-o", str(tmp_path / "out"), "--no-format"]) == 0
    capsys.readouterr()
    for pair in ([library, str(tmp_path / "out")], [str(tmp_path / "out"), library]):
        assert main(["compare", *pair]) == 4
        message = capsys.readouterr().err
        assert re.search(
            r"the first op that drifts: ttnn.gt\b.* positive at src/\w+.cpp:\d+: ", message
        )


def test_libraries_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "libother.so"
    path.write_bytes(b"\x7fELF")
    assert main(["run", str(path)]) == 1
    assert "cannot load" in capsys.readouterr().err


def test_callbacks_see_flatbuffers_only(project: Path) -> None:
    path = project / "build" / "libchoose.so"
    code, results = API.Run(args={"binary": path, "--quiet": True}, callback=lambda event: None)()
    assert code == 1
    assert "callbacks see the ops of flatbuffers" in results["results"][0]["error"]


def test_translated_cpp_is_built_and_compared(
    cpu_backend: CPUBackend, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of a test that translates one module both ways."""
    source, ttnn, emitc = (tmp_path / f"{name}.mlir" for name in ("choose", "t", "t2"))
    source.write_text(SOURCE)
    results = tmp_path / "results"
    results.mkdir()
    assert opt_main(["--ttir-to-ttnn-backend-pipeline", str(source), "-o", str(ttnn)]) == 0
    flatbuffer, cpp = results / "choose.ttnn", results / "choose.cpp"
    assert translate_main(["--ttnn-to-flatbuffer", str(ttnn), "-o", str(flatbuffer)]) == 0
    lowering = ["--ttnn-modify-signatures-for-dylib", "--convert-ttnn-to-emitc"]
    assert opt_main([*lowering, str(ttnn), "-o", str(emitc)]) == 0
    assert translate_main(["--mlir-to-cpp", str(emitc), "-o", str(cpp)]) == 0
    options = ["--emitc", "--artifact-dir", str(tmp_path / "artifacts")]
    assert main(["run", *options, str(results)]) == 0
    assert "choose: passed" in capsys.readouterr().out
    cpp.write_text(cpp.read_text().replace("ttnn::matmul(", "ttnn::matmul2("))
    assert main(["run", *options, str(results)]) == 1
    assert "the C++ did not build" in capsys.readouterr().err
    cpp.write_text("int x;")
    assert main(["run", *options, str(results)]) == 1
    assert "has no namespace of a module" in capsys.readouterr().err


def test_an_edited_project_is_built_to_be_compared(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "edited"
    shutil.copytree(project, edited, ignore=shutil.ignore_patterns("build"))
    source = edited / "src" / "choose.cpp"
    source.write_text(source.read_text().replace("ttnn::gt(", "ttnn::lt("))
    assert main(["compare", str(project), str(edited)]) == 4
    assert "positive: " in capsys.readouterr().err
    assert (edited / "build").is_dir()
