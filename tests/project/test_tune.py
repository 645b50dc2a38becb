"""The alternatives of one op under the model of cost, and the fastest as an edit of the C++."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.edits import tune_op, tuned_files
from ttcodegen.project.tuning.report import entries

MODEL = """
func.func @ffn(
    %x: tensor<32x1024xbf16> {ttcore.argument_type = #ttcore.argument_type<input>},
    %up: tensor<1024x4096xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %down: tensor<4096x1024xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<32x1024xbf16> {
  %hidden = "ttir.matmul"(%x, %up) : (tensor<32x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<32x4096xbf16>
  %active = "ttir.silu"(%hidden) : (tensor<32x4096xbf16>) -> tensor<32x4096xbf16>
  %product = "ttir.matmul"(%active, %down) : (tensor<32x4096xbf16>, tensor<4096x1024xbf16>) -> tensor<32x1024xbf16>
  return %product : tensor<32x1024xbf16>
}
"""  # noqa: E501


@pytest.fixture
def out(tmp_path: Path) -> Path:
    model, folder = tmp_path / "ffn.mlir", tmp_path / "out"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(folder)]) == 0
    return folder


def test_the_fastest_alternative_becomes_an_edit(out: Path) -> None:
    before = (out / "src/ffn.cpp").read_text()
    tuning, written = tune_op(out, "product")
    assert written == ["src/ffn.cpp"]
    best = tuning.found[0]
    assert best.seconds < tuning.current.seconds
    assert all(best.seconds <= each.seconds for each in tuning.found)
    assert best.program is not None
    found = entries(tuned_files(out))["ffn"]
    assert list(found) == ["product"]
    assert found["product"]["program_config"] == best.program.text
    assert found["product"]["memory"] == best.placement.buffer_type
    assert f"{best.seconds * 1e6:.1f} us" in found["product"]["comment"]
    # Nothing but the one statement has changed.
    assert all(file.rest == before for file in tuned_files(out))


def test_an_op_is_tuned_from_what_its_call_is_now(out: Path) -> None:
    first, _ = tune_op(out, "product")
    second, written = tune_op(out, "product")
    assert written == []
    assert second.current.seconds == first.found[0].seconds
    assert second.current.program == first.found[0].program


def test_nothing_is_written_through_a_link(out: Path, tmp_path: Path) -> None:
    code, elsewhere = out / "src/ffn.cpp", tmp_path / "elsewhere.cpp"
    text = code.read_text()
    code.rename(elsewhere)
    code.symlink_to(elsewhere)
    with pytest.raises(CompileError, match="is a link"):
        tune_op(out, "product")
    assert elsewhere.read_text() == text


def test_comments_are_one_line_of_the_report(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, comment = out / "src/ffn.cpp", "/* fits\n   \x1b[2J into L1 */"
    memory = "{.memory_config = ttnn::L1_MEMORY_CONFIG}"
    text = code.read_text().replace("weights.up);", f"weights.up, {memory}); {comment}")
    assert memory in text
    code.write_text(text)
    capsys.readouterr()
    assert main(["--edits", str(out)]) == 0
    above = capsys.readouterr().out.partition("\ndiff ")[0].splitlines()
    assert above
    assert all(line.startswith("# ") for line in above)
    assert any("\\x1b[2J into L1" in line for line in above)


def test_an_edit_of_the_search_survives_the_model(out: Path, tmp_path: Path) -> None:
    tune_op(out, "product")
    tuned = entries(tuned_files(out))
    model = tmp_path / "ffn.mlir"
    model.write_text(MODEL.replace("ttir.silu", "ttir.gelu").replace("%active", "%gated"))
    assert main([str(model), "-o", str(out)]) == 0
    assert entries(tuned_files(out)) == tuned
    assert "ttnn::gelu" in (out / "src/ffn.cpp").read_text()


def test_the_command_prints_the_alternatives(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["--tune", str(out), "--op", "hidden"]) == 0
    printed = capsys.readouterr()
    rows = [line.split() for line in printed.out.splitlines()]
    assert rows[0] == ["us", "L1", "KiB", "result", "program"]
    times = [float(row[0]) for row in rows[1:]]
    assert times == sorted(times)
    assert [row[-1] for row in rows].count("now") == 1
    assert "wrote the fastest to src/ffn.cpp" in printed.err


def test_what_cannot_be_tuned_is_an_error(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tune", str(out), "--op", "prodct"]) == 1
    printed = capsys.readouterr().err
    assert "no op is called 'prodct'" in printed
    assert "did you mean 'product'?" in printed
    assert main(["--tune", str(tmp_path), "--op", "product"]) == 1
    assert "has no program" in capsys.readouterr().err
    assert main(["--tune", str(out)]) == 2
    assert main([str(tmp_path / "ffn.mlir"), "-o", str(out), "--op", "product"]) == 2
