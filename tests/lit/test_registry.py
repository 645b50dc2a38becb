"""The table of passes is true: names, options, and a test for each."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from ttcodegen.cli.lit import lit_files, run_lines
from ttcodegen.compat.refusals import _REASONS
from ttcodegen.transforms.registry import (
    Entry,
    Option,
    OptionError,
    PassEntry,
    PipelineEntry,
    Step,
    decode_options,
    entries,
    find,
    is_known,
    parse_pipeline,
    parse_step,
    pipeline_text,
    schedule,
    split_options,
    step,
)

FOLDER = Path(__file__).parent
PASSES = [entry for entry in entries() if isinstance(entry, PassEntry)]
PIPELINES = [entry for entry in entries() if isinstance(entry, PipelineEntry)]


def by_name(entry: Entry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", PASSES, ids=by_name)
def test_passes_are_what_the_table_says(entry: PassEntry) -> None:
    pass_ = entry.make({})
    assert pass_.name == entry.name
    # What the compiler hands over, and no user, is left out where passes are compared.
    own = {
        field.name: field.default
        for field in fields(type(pass_))
        if field.name != "name" and field.compare
    }
    assert {option.field: option.default for option in entry.options} == own


@pytest.mark.parametrize("entry", PIPELINES, ids=by_name)
def test_pipelines_can_be_scheduled(entry: PipelineEntry) -> None:
    assert schedule([entry.name])
    for option in entry.options:
        assert option.decode(option.encode(option.default).partition("=")[2]) == option.default


@pytest.mark.parametrize("entry", PASSES, ids=by_name)
def test_every_pass_has_a_test_of_its_name(entry: PassEntry) -> None:
    found = [path for path in lit_files(FOLDER) if path.stem == entry.name]
    assert found, f"there is no tests/lit/**/{entry.name}.mlir"
    lines = "\n".join(run_lines(found[0].read_text()))
    assert f"--{entry.name}" in lines


def test_no_pass_is_said_to_be_missing_that_is_there() -> None:
    assert not [name for names in _REASONS.values() for name in names if is_known(name)]


def test_names_of_the_documents_are_known() -> None:
    for name in (
        "ttir-to-ttnn-backend-pipeline",
        "ttir-to-emitc-pipeline",
        "ttir-layout",
        "ttir-load-system-desc",
        "ttir-implicit-device",
        "convert-ttir-to-ttnn",
        "convert-ttnn-to-emitc",
        "ttnn-modify-signatures-for-dylib",
        "ttir-to-ttnn-common-pipeline",
        "ttnn-common-to-emitc-pipeline",
        "ttnn-common-to-runtime-pipeline",
        "ttcore-register-device",
    ):
        assert is_known(name), name


def test_steps_of_pipelines_pass_their_options_on() -> None:
    text = "enable-const-eval=false mock-system-desc-arch=blackhole module-name=net"
    steps = [one for one, _ in schedule([parse_step("ttir-to-emitc-pipeline", text)])]
    assert steps[0] == step("ttcore-imply-mesh")
    assert steps[1] == step("ttcore-register-device", mock_system_desc_arch="blackhole")
    assert steps[-1] == step("convert-ttnn-to-emitc", module_name="net")
    assert "const-eval-hoist-transform" not in [one.name for one in steps]
    assert parse_pipeline(pipeline_text(steps)) == steps


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("a", [("a", "")]),
        ("a=1 b=x,y", [("a", "1"), ("b", "x,y")]),
        ("{a=1 b}", [("a", "1"), ("b", "")]),
        ("a='x y' b=\"p q\"", [("a", "x y"), ("b", "p q")]),
        ("a={x y} b", [("a", "x y"), ("b", "")]),
        ("a=f=input,parameter;g=input", [("a", "f=input,parameter;g=input")]),
    ],
)
def test_options_are_split(text: str, found: list[tuple[str, str]]) -> None:
    assert list(split_options("pass", text)) == found


@pytest.mark.parametrize("text", ["a='x", "a={x", "=3", "a=(1"])
def test_malformed_options_are_refused(text: str) -> None:
    with pytest.raises(OptionError):
        list(split_options("pass", text))


def test_values_of_options() -> None:
    options = (
        Option("flag", "", False),
        Option("count", "", 3),
        Option("names", "", ("a",)),
        Option("kind", "", "x", choices=("x", "y")),
        Option("fixed", "", 0, refusal="it is so"),
    )
    given = decode_options("p", options, "flag count=7 names=b,c kind=y fixed=0")
    assert given == {"flag": True, "count": 7, "names": ("b", "c"), "kind": "y", "fixed": 0}
    for text, message in (
        ("count=x", "--p: the option 'count' is an integer, found 'x'"),
        ("kind=z", "--p: the option 'kind' is one of x, y, found 'z'"),
        ("fixed=1", "--p: the option 'fixed' cannot be 1: it is so"),
        ("flagg", "--p has no option 'flagg'"),
    ):
        with pytest.raises(OptionError) as error:
            decode_options("p", options, text)
        assert str(error.value) == message


@pytest.mark.parametrize("text", ["", "builtin.module()", "a,", "builtin.module(cse))", "(cse)"])
def test_malformed_pipelines_are_refused(text: str) -> None:
    with pytest.raises(OptionError):
        parse_pipeline(text)


def test_steps_are_written_as_they_are_read() -> None:
    given = Step("populate-argument-types", {"argument-types": "f=input,parameter; g=input"})
    assert parse_pipeline(f"any({given})") == [given]
    assert str(find("canonicalize").name) == "ttir-canonicalize"


def test_help_imports_neither_passes_nor_dialects() -> None:
    script = (
        "import sys; from ttcodegen.cli.opt import main; main(['--help']);"
        "slow = [m for m in sys.modules if m.split('.')[0] in ('xdsl', 'numpy')];"
        "sys.exit(str(slow) if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
