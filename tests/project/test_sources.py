"""The files around the module's own sources."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from ttcodegen.compilation import CompiledModule
from ttcodegen.emission.description import ModuleDescription, ProjectKind, StateTensor
from ttcodegen.emission.templates import clang_format_style
from ttcodegen.emitc.formatting import format_files
from ttcodegen.project.sources import (
    render_project_files,
    render_sources,
    support_files,
)

HOSTILE = '"); system("true"); // \\ */ #{ }} ${HOME} | `x` <b>\n#define X'


def _renamed(module: ModuleDescription, name: str) -> ModuleDescription:
    """The module with all names of its source replaced; identifiers stay."""
    functions = tuple(
        dataclasses.replace(
            function,
            name=name,
            arguments=tuple(dataclasses.replace(a, name=name) for a in function.arguments),
            outputs=tuple(dataclasses.replace(o, name=name) for o in function.outputs),
        )
        for function in module.functions
    )
    return dataclasses.replace(module, functions=functions)


def _code(text: str) -> list[str]:
    """The lines without comments and without the text of literals."""
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    return [re.sub(r'"(?:[^"\\]|\\.)*"', '""', line) for line in lines]


def test_names_of_the_input_become_literals_only(compiled: CompiledModule) -> None:
    module = _renamed(compiled.description, HOSTILE)
    plain = _renamed(compiled.description, "x")
    expected = render_sources(plain)
    for path, text in render_sources(module).items():
        assert _code(text) == _code(expected[path]), path
    cmake = [
        render_project_files(m, {"src/tiny.cpp": ""})["CMakeLists.txt"] for m in (module, plain)
    ]
    assert cmake[0] == cmake[1]


def test_names_of_the_input_are_inert_in_the_readme(compiled: CompiledModule) -> None:
    text = render_project_files(_renamed(compiled.description, HOSTILE), {})["README.md"]
    rows = [line for line in text.splitlines() if "system" in line]
    assert rows
    for row in rows:
        assert row.count("|") == 6
        assert "<b>" not in row
        assert "`x`" not in row


def test_sources_are_the_same_each_time(compiled: CompiledModule) -> None:
    module = compiled.description
    assert render_sources(module) == render_sources(module)
    assert render_project_files(module, {"src/b.cpp": "", "src/a.cpp": ""}) == render_project_files(
        module, {"src/a.cpp": "", "src/b.cpp": ""}
    )


def test_cmake_lists_the_compiled_files(compiled: CompiledModule) -> None:
    sources = {**compiled.files, **render_sources(compiled.description)}
    files = render_project_files(compiled.description, sources)
    text = files["CMakeLists.txt"]
    assert "  src/tiny.cpp\n" in text
    assert "tiny.hpp" not in text
    for path in (path for path in files if path.startswith("support/")):
        assert (f"    {path}\n" in text) == path.endswith(".cpp")


MOST_SUPPORT = {
    "both": (19, 3225),
    "exe": (17, 2785),
    "runner": (13, 2565),
    "so": (15, 2570),
    "sources": (9, 1620),
}
"""The most files of support/ and the most lines in them, by what a project is for."""
IMPLEMENTED_IN = {"support/tensor.hpp": "support/tensors.cpp"}
_INCLUDE = re.compile(r'^#include "(support/[\w/]+\.hpp|include/ttcodegen/\w+\.h)"', re.MULTILINE)


@pytest.mark.parametrize("kind", MOST_SUPPORT)
def test_support_is_what_the_kind_of_project_needs(
    compiled: CompiledModule, kind: ProjectKind
) -> None:
    module = dataclasses.replace(compiled.description, kind=kind)
    sources = render_sources(module)
    others = render_project_files(module, {**compiled.files, **sources})
    assert ("src/main.cpp" in sources) == (kind in ("exe", "both", "runner"))
    assert ("src/capi.cpp" in sources) == (kind in ("so", "both"))
    assert any(path.startswith("include/") for path in others) == (kind in ("so", "both"))
    assert bool(sources) == (kind != "sources")
    support = {path: text for path, text in others.items() if path.startswith("support/")}
    # Whatever is there is included by the sources, directly or not, and all of that is there.
    written = [*compiled.files.values(), *sources.values()]
    pending = [header for text in written for header in _INCLUDE.findall(text)]
    reached: set[str] = set()
    while pending:
        header = pending.pop()
        if header not in reached:
            reached.add(header)
            pending += _INCLUDE.findall(others[header])
            source = IMPLEMENTED_IN.get(header, header.replace(".hpp", ".cpp"))
            pending += _INCLUDE.findall(support.get(source, ""))
    assert {path for path in support if path.endswith(".hpp")} == {
        header for header in reached if header.startswith("support/")
    }
    assert ("support/comparison.cpp" in support) == (kind in ("exe", "both"))
    assert ("support/drawing.cpp" in support) == (kind in ("so", "exe", "both"))
    files, lines = MOST_SUPPORT[kind]
    assert len(support) <= files
    assert sum(text.count("\n") for text in support.values()) <= lines


def test_no_path_of_this_machine_is_written(compiled: CompiledModule) -> None:
    files = {
        **render_sources(compiled.description),
        **render_project_files(compiled.description, compiled.files),
    }
    for path, text in files.items():
        assert not re.search(r"/(home|root|work|tmp|usr/lib)/", text), path


def test_presets_are_json(compiled: CompiledModule) -> None:
    presets = json.loads(render_project_files(compiled.description, {})["CMakePresets.json"])
    assert {p["name"] for p in presets["configurePresets"]} == {"cpu", "debug", "tt-metal"}


@pytest.mark.parametrize("target", ["ttnn", "ttmetal"])
def test_support_sources_are_formatted(target: str) -> None:
    files = support_files(target)
    sources = {path: text for path, text in files.items() if path.endswith((".cpp", ".hpp", ".h"))}
    assert format_files(sources, clang_format_style()) == sources


@pytest.mark.parametrize("part", ["arguments", "outputs"])
def test_functions_without_arguments_or_outputs(compiled: CompiledModule, part: str) -> None:
    function = dataclasses.replace(compiled.description.functions[1], **{part: ()})
    module = dataclasses.replace(compiled.description, functions=(function,))
    text = render_sources(module)["src/entry_points.cpp"]
    assert re.search(r'\{"types/of all", "types_of_all", .*\{\}', text)
    assert render_project_files(module, {})["README.md"].count("| output |") == len(
        function.outputs
    )


GENERATION = {
    "prefill": {"8": "forward", "4": "types/of all"},
    "decode": "forward",
    "greedy": "forward",
    "sample": "types/of all",
    "batch": 2,
    "length": 64,
    "vocabulary": 100,
    "stop": [7, 9],
    "pad": 7,
}


@pytest.mark.parametrize("kind", ["exe", "so", "runner"])
def test_executables_of_decoders_generate(compiled: CompiledModule, kind: ProjectKind) -> None:
    keys = StateTensor("keys", np.zeros(1), {"forward": "x"}, {"forward": "y"})
    module = dataclasses.replace(
        compiled.description, kind=kind, generation=GENERATION, state=(keys,)
    )
    sources = render_sources(module)
    others = render_project_files(module, {**compiled.files, **sources})
    generates = kind != "so"
    assert ("src/generate.cpp" in sources) == ("src/generate.hpp" in sources) == generates
    assert ("support/generation_program.cpp" in others) == generates
    assert ("src/main.cpp src/generate.cpp" in others["CMakeLists.txt"]) == generates
    assert ("--tokens prompt.npy" in others["README.md"]) == generates
    if not generates:
        return
    text = format_files(sources, clang_format_style())["src/generate.cpp"]
    for line in (
        "constexpr std::size_t types_of_all = 1;",
        "constexpr support::Bucket buckets[] = {\n"
        "    {.length = 4, .function = types_of_all},\n"
        "    {.length = 8, .function = forward},\n};",
        "constexpr std::array<std::int32_t, 2> stop_tokens = {7, 9};",
        '    {.input = "x", .output = "y"},',
    ):
        assert line in text


def test_the_example_of_the_readme_gives_an_input(compiled: CompiledModule) -> None:
    """Weights have files of their own, wherever they are among the arguments."""
    function = next(f for f in compiled.description.functions if f.inputs and f.weights)
    ordered = sorted(function.arguments, key=lambda tensor: tensor in function.inputs)
    assert ordered[0] not in function.inputs
    changed = dataclasses.replace(function, arguments=tuple(ordered))
    module = dataclasses.replace(compiled.description, functions=(changed,))
    text = render_project_files(module, {})["README.md"]
    names = set(re.findall(r"--input (\w+)=", text))
    assert len(names) == 1
    assert names <= {tensor.field for tensor in function.inputs}
