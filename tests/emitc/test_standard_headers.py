"""The standard headers of the names in a file's C++."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from ttcodegen.emitc.builder import open_file
from ttcodegen.emitc.inlining import standard_headers
from ttcodegen.emitc.spelling import Text


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("std::nullopt", {"optional"}),
        ("std::array<uint32_t, 2>{1, 2}", {"array", "cstdint"}),
        ("ttsl::SmallVector<int64_t>{1}", {"cstdint"}),
        ("-std::numeric_limits<float>::infinity()", {"limits"}),
        ("std::vector<std::optional<float>>{}", {"vector", "optional"}),
        ("ttnn::Shape({1, 2})", set()),
        ("own::array + own::uint32_t", set()),
    ],
)
def test_arguments(text: str, headers: set[str]) -> None:
    assert used_by(text) == headers


def used_by(text: str) -> set[str]:
    file = open_file(ModuleOp([]), "src/model.cpp")
    body = file.function("run", [])
    body.call_void("use", Text(text))
    body.return_()
    return standard_headers(file.block.walk())


def test_types_and_callees() -> None:
    file = open_file(ModuleOp([]), "src/model.cpp")
    body = file.function("run", [("names", "const std::string&")])
    body.call_void("std::move", body.arguments[0])
    body.return_()
    assert standard_headers(file.block.walk()) == {"string", "utility"}
