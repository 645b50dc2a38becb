"""The conditions and substitutions of files with RUN lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from ttcodegen.cli.lit import LitError, run_test, unmet

BOOK = """\
// RUN: ttmlir-opt --ttir-to-ttnn-backend-pipeline="system-desc-path=%system_desc_path%" %s > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: ttmlir-translate --ttnn-to-flatbuffer %t.mlir > %t.ttnn
// CHECK: "ttnn.matmul"
module attributes {} {
  func.func @forward(%arg0: tensor<64x128xbf16>, %arg1: tensor<128x96xbf16>) -> tensor<64x96xbf16> {
    %0 = tensor.empty() : tensor<64x96xbf16>
    %1 = "ttir.matmul"(%arg0, %arg1, %0) : (tensor<64x128xbf16>, tensor<128x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
    return %1 : tensor<64x96xbf16>
  }
}
"""  # noqa: E501


def test_a_file_of_the_book_runs_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "simple_matmul.mlir"
    path.write_text(BOOK)
    run_test(path, tmp_path / "out")
    assert (tmp_path / "out" / "simple_matmul.mlir.tmp.ttnn").stat().st_size > 0


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("// REQUIRES: a", None),
        ("// REQUIRES: c", "REQUIRES: c"),
        ("// REQUIRES: a, b", None),
        ("// REQUIRES: a && (c || !d)", None),
        ("// REQUIRES: a && c", "REQUIRES: a && c"),
        ("// UNSUPPORTED: c", None),
        ("// UNSUPPORTED: a", "UNSUPPORTED: a"),
        ("// UNSUPPORTED: c\n// UNSUPPORTED: b || c", "UNSUPPORTED: b || c"),
        ("// REQUIRES: true", None),
        ("// REQUIRES: a && false", "REQUIRES: a && false"),
        ("// UNSUPPORTED: true", "UNSUPPORTED: true"),
        ("func.func @f() { return }", None),
    ],
)
def test_conditions(condition: str, expected: str | None) -> None:
    assert unmet(condition, frozenset("ab")) == expected


def test_what_is_no_condition_is_refused() -> None:
    with pytest.raises(LitError):
        unmet("// REQUIRES: a && && b", frozenset("ab"))
