"""The alternatives of one op under the model of cost, and the fastest as an edit of the C++."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ttcodegen.cli.ttcodegen import main
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.program_configs import MatmulProgramConfig
from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.judging.programs import harvesting
from ttcodegen.optimizer.cost.measurements import call_key, read_measured, write_measured
from ttcodegen.project.edits import read_pristine, tune_ops, tuned_files
from ttcodegen.project.tuning.legality import Legality
from ttcodegen.project.tuning.override_entries import entries
from ttcodegen.project.tuning.search import Trial, Tuning, Verdict, table
from ttcodegen.rt.commands.validate import LibraryJudge
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.releases import DEFAULT_RELEASE

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


def tune_op(out: Path, name: str) -> tuple[Tuning, list[str]]:
    (tuning,), written = tune_ops(out, [name])
    return tuning, written


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


def test_all_ops_are_tuned_within_a_budget(out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(out, other)
    few, _ = tune_ops(out, budget=1)
    assert len(few) == 1
    tunings, written = tune_ops(other)
    assert written == ["src/ffn.cpp"]
    # From the longest on, and beside what was chosen before.
    times = [each.current.own_seconds for each in tunings]
    assert times == sorted(times, reverse=True)
    assert {each.op for each in tunings if each.is_better} == {"hidden", "product"}
    found = entries(tuned_files(other))["ffn"]
    assert set(found) == {"hidden", "product"}
    for tuning in tunings:
        if tuning.is_better:
            assert found[tuning.op]["memory"] == tuning.best.placement.buffer_type
    assert tune_ops(other)[1] == []


def test_what_the_library_refuses_is_not_taken(out: Path) -> None:
    asked: list[Trial] = []

    def judge(trials: Sequence[Trial]) -> list[Verdict]:
        asked.extend(trials)
        # The first is the call as it is, the second the fastest.
        return [Verdict("no room" if number == 1 else None) for number in range(len(trials))]

    free, _ = tune_ops(out, ["product"], judge=lambda trials: [Verdict() for _ in trials])
    (out / "src/ffn.cpp").write_text(read_pristine_code(out))
    (tuning,), _ = tune_ops(out, ["product"], judge=judge)
    assert {each.node for each in asked} == {("ffn", "product")}
    assert asked[1].call == free[0].found[0].call
    assert [reason for _, reason in tuning.refused] == ["no room"]
    assert tuning.found[0].call == free[0].found[1].call
    assert "refused: no room" in table(tuning)
    assert tuning.found[0].program is not None
    assert entries(tuned_files(out))["ffn"]["product"]["program_config"] == (
        tuning.found[0].program.text
    )


def read_pristine_code(out: Path) -> str:
    texts = read_pristine(out)
    assert texts is not None
    return texts["src/ffn.cpp"]


def test_measured_times_count(out: Path, tmp_path: Path) -> None:
    times: dict[str, float] = {}

    def judge(trials: Sequence[Trial]) -> list[Verdict]:
        # The slower a call is estimated, the faster it is here.
        seconds = [1e-6 * (len(trials) - number) for number in range(len(trials))]
        times.update({call_key(t.call): s for t, s in zip(trials, seconds, strict=True)})
        return [Verdict(None, each) for each in seconds]

    (tuning,), _ = tune_ops(out, ["product"], judge=judge)
    assert tuning.found[0].is_measured
    own = [each.own_seconds for each in (tuning.current, *tuning.found)]
    assert sorted(own) == sorted(times.values())
    comment = entries(tuned_files(out))["ffn"]["product"]["comment"]
    assert f"--tune: measured {tuning.found[0].seconds * 1e6:.1f} us" in comment
    # A table keeps them; without a card the next search reads it.
    table = tmp_path / "times.tsv"
    write_measured(table, "wormhole_b0", times)
    write_measured(table, "blackhole", {"matmul-0": 2e-6})
    assert read_measured(table, "wormhole_b0") == pytest.approx(times)
    assert read_measured(table, "blackhole") == {"matmul-0": 2e-6}
    (out / "src/ffn.cpp").write_text(read_pristine_code(out))
    (again,), _ = tune_ops(out, ["product"], measured=read_measured(table, "wormhole_b0"))
    assert again.found[0].call == tuning.found[0].call
    assert again.found[0].own_seconds == pytest.approx(tuning.found[0].own_seconds)


STAND_IN = """\
#!{python}
import json, sys
from pathlib import Path

if sys.argv[1] == "-c":
    print("{release}")
    sys.exit()
assert "--card" in sys.argv and sys.argv[sys.argv.index("--repeat") + 1].isdecimal()
steps = json.loads(Path(sys.argv[-1]).read_text())
for index, step in enumerate(steps):
    answer = {{"index": index, "results": None}}
    if step["callee"] not in (None, "deallocate", "take"):
        # The later a form of the call comes, the faster it is.
        answer["seconds"] = 1e-6 * (len(steps) - index)
    print(json.dumps(answer), flush=True)
"""
"""A Python whose package answers as one on a card would."""


def test_times_of_a_card_are_kept_and_read(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command measures, keeps a table, and without a card reads it."""
    python, table = tmp_path / "python", tmp_path / "times.tsv"
    python.write_text(STAND_IN.format(python=sys.executable, release=DEFAULT_RELEASE))
    python.chmod(0o755)
    estimated, _ = tune_op(out, "product")
    fastest = estimated.found[0]
    (out / "src/ffn.cpp").write_text(read_pristine_code(out))
    command = ["tune", str(out), "--op", "product", "--measured", str(table)]
    assert main([*command, "--card", "--python", str(python)]) == 0
    printed = capsys.readouterr()
    assert "measured" in printed.out
    times = read_measured(table, "wormhole_b0")
    assert len(times) == len(estimated.found) + 1
    entry = entries(tuned_files(out))["ffn"]["product"]
    assert entry["comment"].startswith("--tune: measured ")
    edited = (out / "src/ffn.cpp").read_text()
    # The last form is the fastest on the card, and is not by the estimates.
    slowest = max(estimated.found, key=lambda each: times[call_key(each.call)])
    assert times[call_key(slowest.call)] > min(times.values())
    assert times[call_key(fastest.call)] > min(times.values())
    (out / "src/ffn.cpp").write_text(read_pristine_code(out))
    assert main(command) == 0
    assert entries(tuned_files(out))["ffn"]["product"] | {"comment": ""} == entry | {"comment": ""}
    assert edited.count("ReuseMultiCast1D") == (out / "src/ffn.cpp").read_text().count(
        "ReuseMultiCast1D"
    )


@pytest.mark.slow
def test_the_loop_of_a_card_measures_calls_of_the_library(
    out: Path, tmp_path: Path, ttnn_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no card: the released package makes the calls on a device that it mocks, and the
    clock is the same."""
    library = ttnn_python.partition(":")[0]
    python, table = tmp_path / "python", tmp_path / "times.tsv"
    mocked = json.dumps(harvesting(default_system("wormhole_b0").chip))
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"mocked = ['--mocked', {mocked!r}]\n"
        "given = [each for word in sys.argv[1:]\n"
        "         for each in (mocked if word == '--card' else [word])]\n"
        f"os.execv({library!r}, [{library!r}, *given])\n"
    )
    python.chmod(0o755)
    command = ["tune", str(out), "--op", "product", "--measured", str(table)]
    assert main([*command, "--card", "--python", str(python)]) == 0
    times = read_measured(table, "wormhole_b0")
    assert len(times) > 2
    assert all(0 < seconds < 10 for seconds in times.values())
    printed = capsys.readouterr().out
    assert "measured" in printed
    # The next search needs no card.
    (out / "src/ffn.cpp").write_text(read_pristine_code(out))
    (again,), _ = tune_ops(out, ["product"], measured=times)
    known = {call_key(each.call): each.own_seconds for each in (again.current, *again.found)}
    assert {key: known[key] for key in times} == pytest.approx(times)


def test_a_table_that_is_none_is_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "times.tsv"
    table.write_text("matmul 3\n")
    assert main(["tune", str(out), "--measured", str(table)]) == 1
    assert "is no table of measured times" in capsys.readouterr().err
    assert main(["tune", str(out), "--budget", "0"]) == 2
    assert main(["tune", str(out), "--python", "python3"]) == 2


@pytest.mark.slow
def test_the_library_judges_alternatives(out: Path, ttnn_python: str) -> None:
    judge = LibraryJudge(out / "model.ttnn", ttnn_python)
    (tuning,), _ = tune_ops(out, ["product"])
    config = tuning.found[0].program
    assert isinstance(config, MatmulProgramConfig)
    call = tuning.found[0].call
    wrong = {**call.attributes, "matmul_program_config": replace(config, in0_block_w=5)}
    node = ("ffn", "product")
    trials = [Trial(node, call), Trial(node, replace(call, attributes=wrong))]
    taken, refused = judge(trials)
    assert taken == Verdict()
    assert refused.refused is not None


def test_block_floats_in_rows_are_illegal(tmp_path: Path) -> None:
    model, folder = tmp_path / "table.mlir", tmp_path / "table"
    model.write_text("""
func.func @look(%ids: tensor<32xui32>, %table: tensor<64x128xbf16>) -> tensor<32x128xbf16> {
  %found = "ttir.embedding"(%ids, %table)
      : (tensor<32xui32>, tensor<64x128xbf16>) -> tensor<32x128xbf16>
  %shown = "ttir.exp"(%found) : (tensor<32x128xbf16>) -> tensor<32x128xbf16>
  return %shown : tensor<32x128xbf16>
}
""")
    assert main([str(model), "-o", str(folder), "--no-format"]) == 0
    legality = Legality((folder / "model.ttnn").read_bytes())
    layouts = {node[1]: call.result.layout for node, call in legality.calls.items()}
    rows = next(name for name, layout in layouts.items() if layout is not Layout.TILE)
    words = ("ttnn::DataType::BFLOAT8_B",)

    def misfit(name: str, value: tuple[str, ...]) -> tuple[str, str] | None:
        return legality.misfit((LoweredOp("look", name, None),), "dtype", value, {})

    refused = misfit(rows, words)
    assert refused is not None
    assert "in tiles alone" in refused[0]
    assert legality.calls["look", rows].result.data_type.cpp in refused[1]
    assert misfit("shown", words) is None
    assert misfit(rows, ("ttnn::DataType::FLOAT32",)) is None


def test_alternatives_keep_the_activation_of_a_configuration(tmp_path: Path) -> None:
    model, folder = tmp_path / "ffn.mlir", tmp_path / "placed"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(folder), "--optimize", "1", "--no-format"]) == 0
    (tuning,), _ = tune_ops(folder, ["active"])
    known = tuning.current.program
    assert known is not None
    assert known.activation is not None
    assert tuning.found
    programs = [each.program for each in tuning.found if each.program is not None]
    assert {each.activation for each in programs} == {known.activation}
