"""Many programs that one process of the library judges."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.optimizer.modules import CHAIN, OTHERS, compiled
from ttcodegen.cli.rt import main
from ttcodegen.judging.library import Library
from ttcodegen.systems.releases import DEFAULT_RELEASE

PYTHON = f"""\
#!{sys.executable}
import json, os, signal, sys
from pathlib import Path

if "-c" in sys.argv:
    sys.exit(1)
log = Path(__file__).parent
(log / "started").open("a").write("start\\n")
seen = 0
path = sys.argv[-1]
while path:
    for index, step in enumerate(json.loads(Path(path).read_text())):
        answer = {{"index": index}}
        if step["callee"] == "relu" and seen:
            answer["refused"] = "no memory is left"
        elif step["callee"] == "ends":
            os.kill(os.getpid(), signal.SIGFPE)
        elif step["callee"] == "wrong":
            answer["refused"] = "no such call"
        else:
            answer["results"] = []
        print(json.dumps(answer), flush=True)
    seen += 1
    print(json.dumps({{"done": True}}), flush=True)
    path = sys.stdin.readline().strip()
"""
"""A library that takes no `wrong`, ends at `ends`, and takes `relu` as long as it is new."""


def calls(*names: str) -> list[dict[str, object]]:
    return [{"callee": name, "results": []} for name in names]


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(PYTHON)
    path.chmod(0o755)
    return path


def starts(python: Path) -> int:
    return len((python.parent / "started").read_text().splitlines())


def test_lists_of_calls_share_a_process(python: Path) -> None:
    with closing(Library([str(python)])) as library:
        for _ in range(5):
            assert [each["index"] for each in library.answers(calls("add", "exp"))] == [0, 1]
    assert starts(python) == 1


def test_a_refusal_counts_only_if_a_new_process_repeats_it(python: Path) -> None:
    with closing(Library([str(python)])) as library:
        library.answers(calls("add"))
        assert library.answers(calls("relu")) == [{"index": 0, "results": []}]
        (answer,) = library.answers(calls("wrong"))
        assert answer["refused"] == "no such call"
    assert starts(python) == 3


def test_a_call_that_ends_the_process_takes_no_other_list_with_it(python: Path) -> None:
    with closing(Library([str(python)])) as library:
        library.answers(calls("add"))
        _, ended, after = library.answers(calls("add", "ends", "exp"))
        assert ended["refused"] == "the library ended with SIGFPE"
        assert after == {"index": 2, "results": []}
        assert library.answers(calls("add")) == [{"index": 0, "results": []}]


def test_nothing_is_left_running(python: Path) -> None:
    library = Library([str(python)])
    library.answers(calls("add"))
    process = library._process
    assert process is not None
    library.close()
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_files_and_folders_are_judged_together(
    python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a", CHAIN), ("b", OTHERS), ("c", CHAIN)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.ttnn").write_bytes(compiled(text, 0).flatbuffer)
    given = [str(tmp_path / "a" / "model.ttnn"), str(tmp_path / "b"), str(tmp_path / "c")]
    main(["validate", *given, str(tmp_path / "b"), "--python", str(python)])
    said = capsys.readouterr()
    named = [line.split(":")[0] for line in said.out.splitlines() if "calls accepted" in line]
    assert list(dict.fromkeys(named)) == [str(tmp_path / name / "model.ttnn") for name in "abc"]
    assert starts(python) == 1
    # A path that is not there is said before anything is judged.
    assert main(["validate", given[0], str(tmp_path / "d"), "--python", str(python)]) == 1
    said = capsys.readouterr()
    assert "accepted" not in said.out
    assert f"cannot read '{tmp_path / 'd'}'" in said.err


@pytest.mark.slow
def test_the_library_answers_in_one_process_as_in_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ttnn_pythons: Callable[[str], str]
) -> None:
    paths: list[str] = []
    for name, text in (("a", CHAIN), ("b", OTHERS)):
        path = tmp_path / f"{name}.ttnn"
        path.write_bytes(compiled(text, 2).flatbuffer)
        paths.append(str(path))
    python = ["--python", ttnn_pythons(DEFAULT_RELEASE)]
    alone = [(main(["validate", path, *python]), capsys.readouterr().out) for path in paths]
    together = (main(["validate", *paths, *python]), capsys.readouterr().out)
    assert together == (max(code for code, _ in alone), "".join(out for _, out in alone))
