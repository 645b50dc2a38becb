"""Many modules are compiled in one process, and one that fails costs nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import compile_corpus

MODULE = """
func.func @f(%a: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.OP"(%a) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
"""


def test_modules_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, op in (("a", "relu"), ("b", "nothing_like_it"), ("c", "exp")):
        (tmp_path / f"{name}.mlir").write_text(MODULE.replace("OP", op))
    assert compile_corpus.main([str(tmp_path), "-j", "1", "--", "--no-format"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("b.mlir: 1: ")
    assert "unknown operation 'ttir.nothing_like_it'" in lines[0]
    assert lines[1].startswith("2 of 3 done")


def test_a_module_that_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text(MODULE.replace("OP", "relu"))
    ((_, status, _),) = compile_corpus.results([tmp_path / "a.mlir"], [], 1, 0.0)
    assert status == compile_corpus.TIMED_OUT


def test_a_sample_takes_of_all_folders_and_compiles_with_each_variant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "many", tmp_path / "few"]
    for folder, count in zip(folders, (16, 4), strict=True):
        folder.mkdir()
        for index in range(count):
            (folder / f"{index:02}.mlir").write_text(MODULE.replace("OP", "relu"))
    files = [sorted(folder.iterdir()) for folder in folders]
    assert [path.relative_to(tmp_path).as_posix() for path in compile_corpus.sample(files, 6)] == [
        "many/02.mlir",
        "many/06.mlir",
        "many/10.mlir",
        "many/14.mlir",
        "few/01.mlir",
        "few/03.mlir",
    ]
    variants = ["--variant", "--machine p100", "--variant", "--machine no_such_card"]
    assert compile_corpus.main([*map(str, folders), "-j", "1", "--sample", "2", *variants]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("--machine p100: 2 of 2 done")
    assert "no_such_card" in lines[1]
    assert lines[-1].startswith("--machine no_such_card: 0 of 2 done")
