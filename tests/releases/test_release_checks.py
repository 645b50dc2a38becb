"""The checks of what modules become for each release."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.release_checks import BEGIN, END, FORMS, Checks, checked, main, taken_evenly
from ttcodegen.systems.releases import RELEASES

RELU = """
func.func @relu(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.relu"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
"""


def test_modules_are_taken_evenly(tmp_path: Path) -> None:
    for folder, count in (("few", 1), ("many", 31)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / f"{number:02}.mlir").touch()
        (tmp_path / folder / "notes.md").touch()
    names = [path.stem for path in taken_evenly([tmp_path / "few", tmp_path / "many"])]
    assert names[:4] == ["00", "15", "07", "23"]
    assert len(names) == 32
    # The beginning is distributed over the whole folder.
    eighth = sorted(map(int, names[1:8]))
    assert all(4 <= after - before <= 5 for before, after in pairwise(eighth))


def test_what_no_release_takes_is_no_fault(tmp_path: Path) -> None:
    module = tmp_path / "wrong.mlir"
    module.write_text(RELU.replace("ttir.relu", "ttir.rleu"))
    (task,) = Checks().tasks(0, module)
    found = checked(task, Checks())
    assert (found.compiled, found.faults, found.task.form) == ([], [], FORMS[0][0])


def test_modules_are_compiled_for_the_machine_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The mesh has two chips, which a p300 has and a p150 does not.
    module = RELU.replace("func.func", "module attributes {ttcore.meshes = "
                          '#ttcore.meshes<[<"mesh" = 1x2>]>} {\nfunc.func') + "}\n"  # fmt: skip
    (tmp_path / "pair.mlir").write_text(module)
    given = [str(tmp_path), "--count", "1", "-j", "1", "--check", "calls"]
    given += ["--form", "ttnn, level 1", "--release", RELEASES[0]]
    assert main([*given, "--machine", "p300"]) == 0
    assert "1 p300, ttnn, level 1: without fault" in capsys.readouterr().out
    assert main([*given, "--machine", "p150"]) == 0
    assert "1 p150, ttnn, level 1: refused for every release" in capsys.readouterr().out


def test_forms_take_turns_or_are_all_made_for_each_machine(tmp_path: Path) -> None:
    module = tmp_path / "m.mlir"
    in_turn = [Checks().tasks(number, module) for number in range(5)]
    assert [task.form for (task,) in in_turn] == [name for name, _ in (*FORMS, FORMS[0])]
    machines = ("n150", "p150")
    every = Checks(machines=machines, every=True).tasks(3, module)
    assert {(task.machine, task.form) for task in every} == {
        (machine, name) for machine in machines for name, _ in FORMS
    }


def test_the_counts_are_written_into_the_table_of_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules, page = tmp_path / "modules", tmp_path / "page.md"
    modules.mkdir()
    (modules / "relu.mlir").write_text(RELU)
    kept = "| 7 of others | p100 | link | ttmetal: 7 | none |\n"
    old = "| 1 of modules | p150 | link, kernels | ttmetal: 1 | 1 |\n"
    page.write_text(f"before\n{BEGIN}{old}{kept}{END}after\n")
    given = [str(modules), "--count", "1", "-j", "1", "--check", "kernels", "--every"]
    given += ["--form", "ttnn, level 1", "--form", "ttnn, level 0", "--machine", "p150"]
    assert main([*given, "--machine", "n150", "--write", str(page)]) == 0
    capsys.readouterr()
    said = "ttnn, level 0: 2, ttnn, level 1: 2"
    rows = [f"| 1 of modules | {machine} | kernels | {said} | none |\n" for machine in
            ("n150", "p150")]  # fmt: skip
    assert page.read_text() == f"before\n{BEGIN}{''.join([*rows, old, kept])}{END}after\n"
    assert main([*given, "--write", str(page)]) == 0
    assert page.read_text() == f"before\n{BEGIN}{''.join([*rows, old, kept])}{END}after\n"


@pytest.mark.slow
def test_a_module_holds_for_each_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ttnn_pythons: Callable[[str], str]
) -> None:
    for number in range(2):
        (tmp_path / f"{number}.mlir").write_text(RELU)
    pythons = os.pathsep.join(dict.fromkeys(map(ttnn_pythons, RELEASES)))
    assert main([str(tmp_path), "--count", "2", "-j", "1", "--python", pythons]) == 0
    assert capsys.readouterr().out.split() == [
        *("2", "n150,", "ttnn,", "level", "0:", "without", "fault"),
        *("2", "n150,", "ttnn,", "level", "2:", "without", "fault"),
    ]
