"""Edits of ops that a model has no longer are conflicts, however cleanly their lines merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.project.edits import lost_ops

SOURCE = """func.func @forward(
    %x: tensor<32x32xbf16>, %y: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %gate = "ttir.silu"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %scaled = "ttir.exp"(%y) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %0 = "ttir.multiply"(%gate, %scaled)
      : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
"""


def test_an_edited_op_that_is_gone_is_a_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "m.mlir", tmp_path / "out"
    model.write_text(SOURCE)
    command = [str(model), "-o", str(out), "-q"]
    assert main(command) == 0
    code = out / "src" / "m.cpp"
    lines = code.read_text().split("\n")
    (silu,) = [number for number, line in enumerate(lines) if "ttnn::silu(" in line]
    lines[silu] = lines[silu].replace("ttnn::silu(", "mine(")
    code.write_text("\n".join(lines))
    # The op is still there: the edit stays, without a word.
    model.write_text(SOURCE + "// another text\n")
    assert main(command) == 0
    assert "mine(" in code.read_text()
    model.write_text(SOURCE.replace("ttir.silu", "ttir.relu"))
    assert main(command) == 5
    message = capsys.readouterr().err
    assert "which the model no longer has in that form" in message
    assert "'gate'" in message or "'silu'" in message
    assert "<<<<<<< edited" in code.read_text()


BEFORE = "a = silu(x);\nb = mul(a,\n    y);\nc = exp(b);\n"
OPS = [
    OpLines(LoweredOp("f", "silu", None), "f.cpp", 1, 1),
    OpLines(LoweredOp("f", "mul", None), "f.cpp", 2, 3),
    OpLines(LoweredOp("f", "exp", None), "f.cpp", 4, 4),
]


@pytest.mark.parametrize(
    ("edited", "new", "lost"),
    [
        # Removed by both: the person has put it elsewhere.
        (BEFORE.replace("a = silu(x);\n", ""), BEFORE.replace("a = silu(x);\n", ""), ["silu"]),
        # Edited in one line, with another operand in the other.
        (BEFORE.replace("mul(a,", "mul(q,"), BEFORE.replace("    y", "    z"), ["mul"]),
        # Only laid out otherwise, or not edited, or added between ops.
        (BEFORE.replace("mul(a,", "mul(q,"), BEFORE.replace("\n    y", " y"), []),
        (BEFORE.replace("exp", "log"), BEFORE.replace("silu", "relu"), []),
        (BEFORE.replace("c =", "print();\nc ="), BEFORE.replace("exp", "log"), []),
        # Added inside of one.
        (BEFORE.replace("a,\n", "a,\n  /*it*/\n"), BEFORE.replace("    y", "    z"), ["mul"]),
    ],
)
def test_ops_that_were_edited_and_changed(edited: str, new: str, lost: list[str]) -> None:
    assert lost_ops(OPS, BEFORE, edited, new) == lost
