"""The documentation says what is so."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import lang_table, ops_table
from tests.documents import run_document
from ttcodegen.cli.ttcodegen import argument_parser, main
from ttcodegen.opt.command_line import OPTIONS
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.rt.commands.arguments import COMMANDS
from ttcodegen.rt.commands.perf import COLUMNS
from ttcodegen.transforms.registry import is_known
from ttcodegen.translation import TRANSLATIONS

ROOT = Path(__file__).resolve().parent.parent


def commands(text: str) -> list[str]:
    """The commands of the first block of code."""
    match = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert match is not None
    return match.group(1).splitlines()


def test_the_table_of_ops_is_up_to_date() -> None:
    assert (ROOT / "docs" / "ops.md").read_text() == ops_table.table()


def test_the_table_of_tt_lang_is_up_to_date_and_names_tests() -> None:
    assert lang_table.documented() == lang_table.table()
    for test in lang_table.tests():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (lang_table.TESTS / file).read_text(), test


def test_ci_runs_the_commands_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    first, second = commands((ROOT / "README.md").read_text())
    assert script.index(first) < script.index(second)


def test_the_readme_shows_what_is_read_and_written(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    model = ROOT / "examples" / "digits" / "digits.mlir"
    assert main([str(model), "-o", str(tmp_path / "digits"), "-q"]) == 0
    written = (tmp_path / "digits" / "src" / "digits.cpp").read_text()
    for language, text in (("mlir", model.read_text()), ("cpp", written)):
        match = re.search(rf"```{language}\n(.*?)```", readme, re.DOTALL)
        assert match is not None
        for line in match.group(1).splitlines():
            assert line.strip() in text


def test_the_options_of_the_documentation_exist() -> None:
    known = {
        option
        for action in argument_parser()._actions
        if action.help != argparse.SUPPRESS
        for option in action.option_strings
    }
    usage = (ROOT / "docs" / "usage.md").read_text()
    rows = re.findall(r"^\| (`-[^|]*) \|", usage, re.MULTILINE)
    reported = {shlex.split(name)[0] for row in rows for name in re.findall(r"`([^`]*)`", row)}
    assert reported == known - {"-h", "--help", "--version"}


def test_links_between_the_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_site_has_all_documents() -> None:
    listed = set(re.findall(r"- ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")}


def test_the_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs the Python package mkdocs: the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "usage.html").is_file()


def test_the_container_runs_the_commands_of_the_readme() -> None:
    steps = [
        line.removeprefix("RUN ")
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("RUN python3")
    ]
    assert steps == commands((ROOT / "README.md").read_text())


def test_the_options_of_opt_are_documented() -> None:
    text = (ROOT / "docs" / "opt.md").read_text()
    rows = re.findall(r"^\| (`-[^|]*) \|", text, re.MULTILINE)
    reported = {name for row in rows for name in re.findall(r"`--?([\w-]+)", row)}
    pipelines = {name for name in reported if is_known(name)}
    assert reported - pipelines == {option.name for option in OPTIONS}


@pytest.mark.parametrize(
    "name",
    [
        *("opt.md", "translate.md", "rt.md", "explorer.md", "stitching.md", "tt-lang.md"),
        *("optimizer.md", "overrides.md", "tuning.md", "meshes.md"),
    ],
)
def test_examples_of_documents(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_document(ROOT / "docs" / name) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stitching.md", "tuning.md"])
def test_examples_of_documents_that_build(
    name: str, cpu_backend: CPUBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_document(ROOT / "docs" / name, slow=True) > 3


@pytest.mark.slow
def test_examples_of_device_programs(
    cpu_backend: CPUBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Where pip has put cmake.
    scripts = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(scripts), prepend=os.pathsep)
    for path in ROOT.glob("examples/device_programs/*.mlir"):
        shutil.copy(path, tmp_path)
    assert run_document(ROOT / "docs" / "ttmetal.md") > 20


def test_the_options_of_translate_are_documented() -> None:
    text = (ROOT / "docs" / "translate.md").read_text()
    rows = re.findall(r"^\| `--([\w-]+)` \|", text, re.MULTILINE)
    assert rows == [translation.name for translation in TRANSLATIONS]


def test_the_options_of_rt_are_documented() -> None:
    text = (ROOT / "docs" / "rt.md").read_text()
    reported = {name for name in re.findall(r"(--\w[\w-]*)", text)}
    known = {a.name: a for table in COMMANDS.values() for a in table if a.name.startswith("--")}
    others = {"--build", "--embed-goldens", "--help", "--kind", "--target"}
    others |= {option for option in reported if is_known(option.lstrip("-"))}
    others |= {f"--{translation.name}" for translation in TRANSLATIONS}
    refused = {name for name, argument in known.items() if argument.refusal is not None}
    assert reported - others <= known.keys()
    assert known.keys() - refused - {"--host-only"} <= reported


def test_the_columns_of_perf_are_documented() -> None:
    text = (ROOT / "docs" / "rt.md").read_text()
    rows = re.search(r"\| column \| \|\n\|---\|---\|\n((?:\|.*\n)+)", text)
    assert rows is not None
    reported = [
        n for row in rows[1].splitlines() for n in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert reported == list(COLUMNS)


def shell_blocks(text: str) -> list[list[str]]:
    """The lines of each block of commands."""
    return [block.splitlines() for block in re.findall(r"```sh[^\n]*\n(.*?)```", text, re.DOTALL)]


def test_no_command_of_the_documents_is_one_of_lit() -> None:
    for document in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for lines in shell_blocks(document.read_text()):
            assert not [line for line in lines if re.match(r"(\$ )?not ", line)], document


def test_the_page_on_device_programs_names_files_that_exist() -> None:
    """In the folder of the examples, as blocks of the page, or written by a command before."""
    page = (ROOT / "docs" / "ttmetal.md").read_text()
    folder = ROOT / "examples" / "device_programs"
    known = {path.name for path in folder.glob("*.mlir")}
    known |= set(re.findall(r'```mlir title="([^"]+)"', page))
    for lines in shell_blocks(page):
        for line in lines:
            named = re.findall(r"(?<=[ ])[\w./-]+\.mlir\b", line)
            written = re.findall(r"-o ([\w./-]+\.mlir)\b", line)
            missing = [n for n in named if n not in known | set(written)]
            assert not [n for n in missing if not (ROOT / n).exists()], line
            known |= set(written)
    assert "in that folder" in " ".join(page.split()).partition("square.mlir`")[2][:120]


def test_a_function_of_ttnn_without_an_op_needs_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    ops_table.table()
    missing = ops_table.declared_functions() - ops_table.called_functions()
    assert {"erfinv", "add_"} <= missing
    assert not {"round", "isnan", "prepare_conv_weights", "softmax"} & missing
    monkeypatch.setattr(ops_table, "_UNREACHED", ())
    with pytest.raises(SystemExit, match="say why"):
        ops_table.table()
