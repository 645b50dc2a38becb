"""No call in what is written, of any op for any target, has more arguments without their names than
a reader can count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import module_of
from tests.random_programs.recipes import RECIPES
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.core.calls import MOST_UNNAMED

FOLDER = Path(__file__).parent
ALONE = ("empty", "meshes", "without_recipe")
"""Files with the ops that have no recipe, and with others as they are at their edges."""
MOST = 3
"""Cases of an op that are looked at."""
SETTINGS = [("ttnn", 0), ("ttnn", 1), ("ttnn", 2), ("ttmetal", 0)]
PARTS = 8

_TEMPLATE = re.compile(r"<[^<>;{}()]*>")
_CALL = re.compile(r"(?<![\w:~])([A-Za-z_][\w:]*)\(")
_DECLARED = re.compile(r"(?:const )?[\w:]+[&*]?+ [&*]?(?:/\*\w+\*/|\w+)$")


def listed(text: str) -> list[str]:
    """The text between an opening parenthesis, after which the text begins, and its end."""
    found, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [argument.strip() for argument in found if argument.strip()]


def plain(source: str) -> str:
    """C++ without its comments that take lines, its texts, and arguments of templates."""
    text = re.sub(r'//[^\n]*|"(?:[^"\\\\]|\\\\.)*"', lambda m: '""' * (m[0][0] == '"'), source)
    while (shorter := _TEMPLATE.sub("", text)) != text:
        text = shorter
    return text


def unnamed(sources: dict[str, str]) -> Iterator[str]:
    """The calls with too many arguments that have neither a label nor the name of the parameter."""
    texts = [plain(text) for text in sources.values()]
    calls = [(m[1], listed(text[m.end() :])) for text in texts for m in _CALL.finditer(text)]
    parameters: dict[str, list[str]] = {}
    for name, given in calls:
        if given and all(map(_DECLARED.match, given)):
            parameters.setdefault(name, [each.rpartition(" ")[2].strip("&*") for each in given])
    for name, given in calls:
        if name == "std::tie":
            continue  # The variables of an assignment, as those of a structured binding.
        known = parameters.get(name.rpartition("::")[2], [])
        known = known or [""] * len(given)
        bare = [
            argument
            for argument, parameter in zip(given, known, strict=False)
            if "=*/" not in argument and argument != parameter and not _DECLARED.match(argument)
        ]
        if len(bare) > MOST_UNNAMED:
            yield f"{name}({', '.join(given)})"


def written(name: str, text: str, target: str, level: int) -> dict[str, str]:
    """The C++ of a module: host and kernels."""
    options = CompileOptions("m", target=target, optimize=level)
    files = compile_module(Source(f"{name}.mlir", text), options).files
    return {path: text for path, text in files.items() if path.endswith((".cpp", ".hpp"))}


def test_calls_without_names_are_found() -> None:
    call = "f(a, b, c, {1, 2}, g<int, int>(x, y), 5, 6)"
    assert list(unnamed({"a.cpp": f"int x = {call};"})) == [call.replace("<int, int>", "")]
    assert not list(unnamed({"a.cpp": "f(a, b, c, d, e, g, /*last=*/6);"}))
    assert not list(unnamed({"a.cpp": "void f(int a, int b, int c, int d, int e, int g, int h);"}))
    same = "void f(T a, T b, T c, T d, T e, T g, T h) {} void h() { f(a, b, c, d, e, g, 7); }"
    assert not list(unnamed({"a.cpp": same}))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "level"), SETTINGS)
@pytest.mark.parametrize("part", range(PARTS))
def test_long_calls_of_all_ops_name_their_arguments(target: str, level: int, part: int) -> None:
    for name in sorted(RECIPES)[part::PARTS]:
        module = module_of([function_of(name, list(islice(cases(name), MOST)))])
        assert list(unnamed(written(name, module, target, level))) == []


@pytest.mark.parametrize(("target", "level"), SETTINGS)
@pytest.mark.parametrize("name", ALONE)
def test_long_calls_of_other_cases_name_their_arguments(name: str, target: str, level: int) -> None:
    text = (FOLDER / f"{name}.mlir").read_text("utf-8")
    assert list(unnamed(written(name, text, target, level))) == []
