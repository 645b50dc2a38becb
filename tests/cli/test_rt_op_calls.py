"""Attribution of the calls of a C++ run to the ops of a flatbuffer."""

from __future__ import annotations

import pytest

from ttcodegen.cli.ttcodegen import main as compile_main
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.flatbuffer.reader import read_ttnn_file
from ttcodegen.rt.op_times import ExpectedCall, expected_calls, ops_of_calls
from ttcodegen.runtime.backend_reports import CallReport, CallResult, ReportedCall

SOURCE = """
func.func @f(%x: tensor<1x8x64x32xbf16>, %y: tensor<64x32xbf16>) -> tensor<64x32xbf16> {
  %0 = "ttir.exp"(%y) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %1 = "ttir.sin"(%y) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %3 = "ttir.max"(%x) <{dim_arg = [0 : i32, 1 : i32], keep_dim = false}>
      : (tensor<1x8x64x32xbf16>) -> tensor<64x32xbf16>
  %4 = "ttir.multiply"(%2, %3) : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %4 : tensor<64x32xbf16>
}
"""


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Binary:
    folder = tmp_path_factory.mktemp("calls")
    (folder / "f.mlir").write_text(SOURCE)
    assert compile_main([str(folder / "f.mlir"), "-o", str(folder / "f"), "--no-format"]) == 0
    return read_ttnn_file(folder / "f" / "model.ttnn")


def call(name: str, *shape: int) -> ReportedCall:
    return ReportedCall(name, 0.0, 1e-6, 1e-6, 0, (CallResult(shape, "BFLOAT16", 4096),))


def made(expected: list[ExpectedCall]) -> list[ReportedCall]:
    return [call(each.name, *(each.shape or ())) for each in expected]


def test_each_op_of_a_program_has_its_calls(binary: Binary) -> None:
    expected = expected_calls(binary, ["f"])
    operations = binary.program("f").operations
    named = {operations[each.op].name: each.name for each in expected}
    assert named["ttnn.exp"] == "exp"
    assert named["ttnn.multiply"] == "multiply"
    assert {each.program for each in expected} == {"f"}
    assert ops_of_calls(expected, made(expected)) == expected


def test_arguments_are_evaluated_in_any_order(binary: Binary) -> None:
    expected = expected_calls(binary, ["f"])
    names = [each.name for each in expected]
    first, second = names.index("exp"), names.index("sin")
    calls = made(expected)
    calls[first], calls[second] = calls[second], calls[first]
    found = ops_of_calls(expected, calls)
    assert [None if op is None else op.name for op in found] == [each.name for each in calls]


def test_calls_that_a_person_added_belong_to_no_op(binary: Binary) -> None:
    expected = expected_calls(binary, ["f"])
    calls = made(expected)
    place = [each.name for each in expected].index("add")
    calls[place + 1 : place + 1] = [call("relu", 64, 32), call("add", 64, 32)]
    found = ops_of_calls(expected, calls)
    assert found[place + 1] is None
    assert [op for op in found if op is not None] == expected
    # What was taken out leaves its neighbours alone.
    without = [each for index, each in enumerate(calls) if index != place]
    del without[place : place + 2]
    assert ops_of_calls(expected, without) == expected[:place] + expected[place + 1 :]
    assert ops_of_calls([], calls) == [None] * len(calls)


def test_a_call_that_is_an_argument_belongs_to_the_op_of_the_outer_one() -> None:
    expected = [
        ExpectedCall("f", 3, "neg", (2, 2)),
        ExpectedCall("f", 5, "reshape", (4,), ("permute", "typecast")),
    ]
    calls = [call("neg", 2, 2), call("permute", 2, 2), call("typecast", 2, 2), call("reshape", 4)]
    first, outer = expected
    assert ops_of_calls(expected, calls) == [first, outer, outer, outer]


def test_a_report_is_read_as_far_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TTCODEGEN_CALL_REPORT", raising=False)
    line = (
        '{"op": "add", "begin_us": 2.5, "wall_us": 3, "processor_us": 4, "read_bytes": 10, '
        '"outputs": [{"shape": [2, 3], "data_type": "BFLOAT16", "bytes": 12, "page": 4, '
        '"memory": "dram"}]}\n'
    )
    with CallReport() as report:
        assert report.take() == []
        report.path.write_text(line)
        (found,) = report.take()
        assert (found.name, found.results[0].shape, found.moved_bytes) == ("add", (2, 3), 22)
        assert found.seconds == pytest.approx(3e-6)
        with report.path.open("a") as file:
            file.write(line * 2)
        assert len(report.take()) == 2
        with pytest.raises(FileNotFoundError, match="not requested"):
            found.results[0].elements()
