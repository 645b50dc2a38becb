"""The lines of ops in the C++, and which of them a person has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.explorer.test_graphs import MODEL
from ttcodegen.cli.ttcodegen import main
from ttcodegen.emission.manifest_entries import LoweredOp, OpLines
from ttcodegen.explorer.session import Command, Session
from ttcodegen.explorer.stages import Settings
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.project.edits import LINES, formatted_lines, lines_archive, packed, read_lines
from ttcodegen.project.manifest import CodeLines, Edits

EXAMPLES = Path(__file__).parents[2] / "examples"
CALLED = {
    "attention_norm": "ttnn::rms_norm(",
    "reshape": "ttnn::reshape(",
    "attention_output": "matmul(",
    "feed_forward_down": "matmul(",
}


def command(name: str, path: Path) -> Command:
    return Command(name, str(path), {}, delete=False)


def test_nodes_say_their_lines() -> None:
    model = EXAMPLES / "transformer" / "transformer.mlir"
    session = Session([model.parent], Settings(optimize=1))
    graphs = {graph["id"]: graph for graph in as_json(session, "convert", model)}
    files = {file["path"]: file for file in as_json(session, "code", model)}
    lines = files["src/transformer.cpp"]["text"].split("\n")
    for name, callee in CALLED.items():
        for graph in ("optimized: block", "lowered: block"):
            (node,) = (each for each in graphs[graph]["nodes"] if each["id"] == name)
            reported = {each["key"]: each["value"] for each in node["attrs"]}["C++"]
            path, _, numbers = reported.split(", ")[0].partition(":")
            assert path == "src/transformer.cpp"
            first, _, last = numbers.partition("-")
            statement = " ".join(lines[int(first) - 1 : int(last or first)])
            assert callee in statement, (graph, name)
            assert statement.rstrip().endswith(";")
    # No op of the program is without a line.
    known = {each["node"] for each in files["src/transformer.cpp"]["lines"]}
    calls = [n["id"] for n in graphs["optimized: block"]["nodes"] if ":" not in n["id"]]
    assert set(calls) - known == set()
    session.close()


def as_json(session: Session, name: str, path: Path) -> list:
    answer = session.answer(
        {
            "cmdId": name,
            "extensionId": "ttcodegen",
            "modelPath": str(path),
            "settings": {},
            "deleteAfterConversion": False,
        }
    )
    assert "error" not in answer, answer["error"]
    return answer["graphs"]


def test_lines_are_found_in_what_clang_format_made_of_them() -> None:
    printed = (
        '#include <b>\n#include <a>\n// A long comment.\nint f() {\n    return g(1, "ab");\n}\n'
    )
    written = (
        "#include <a>\n#include <b>\n// A long\n// comment.\nint f() {\n    return g(1,\n"
        '             "a"\n             "b");\n}  // f\n'
    )
    op = LoweredOp("f", "x", None)
    lines = [OpLines(op, "a.cpp", 5, 5)]
    assert list(formatted_lines(lines, {"a.cpp": printed}, {"a.cpp": written})) == [
        OpLines(op, "a.cpp", 6, 8)
    ]
    # Another text has no lines, rather than wrong ones.
    other = {"a.cpp": written + "int a;\n"}
    assert list(formatted_lines(lines, {"a.cpp": printed}, other)) == []
    assert str(CodeLines("a.cpp", 6, 8)) == "a.cpp:6-8"
    assert str(CodeLines("a.cpp", 6, 6)) == "a.cpp:6"


def at(first: int, last: int) -> OpLines:
    return OpLines(LoweredOp("f", "x", None), "a.cpp", first, last)


def test_edits_move_lines_and_touch_those_that_they_change() -> None:
    edits = Edits("a\nb\nc\nd\ne", "new\na\nB\nB2\nc\ne")
    assert edits.written == [1, 3, 4]
    touched = [line for line in range(1, 6) if edits.touch(at(line, line))]
    assert touched == [2, 4]
    now = [edits.now(at(line, line)) for line in range(1, 6)]
    assert [None if each is None else (each.first, each.last) for each in now] == [
        (2, 2), (3, 4), (5, 5), None, (6, 6)
    ]  # fmt: skip
    # What is written between the lines of a statement changes it, what precedes it does not.
    inserted = Edits("a\nb\nc", "a\nnew\nb\nc")
    assert inserted.touch(at(1, 2))
    assert not inserted.touch(at(2, 3))
    assert inserted.now(at(1, 2)) == CodeLines("a.cpp", 1, 3)
    # Of equal lines it does not matter which one is gone.
    fewer = Edits("{\n}\n{\n}\n{\n}", "{\n}\n{\n}")
    assert fewer.written == []
    assert [fewer.now(at(line, line)) is None for line in range(1, 7)].count(True) == 2


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = [at(1, 2), OpLines(LoweredOp("g", "y", 17), "b.cpp", 3, 3), at(5, 5)]
    path = tmp_path / LINES
    path.parent.mkdir()
    path.write_bytes(lines_archive(lines))
    assert read_lines(tmp_path) == sorted(lines, key=lambda each: each.path)
    others = ([], {"ops": []}, {"ops": [], "files": []}, {"ops": [[1]], "files": {}})
    for damaged in (b"", b"no gzip", lines_archive(lines)[:40], *map(packed, others)):
        path.write_bytes(damaged)
        assert read_lines(tmp_path) == []


LAYERS = """
func.func @model(%x: tensor<32x64xbf16>, WEIGHTS) -> tensor<32x64xbf16> {
BODY
}
"""


def layers(count: int) -> str:
    """Equal layers, which share a function of the C++."""
    tensor = "tensor<32x64xbf16>"
    body: list[str] = []
    last = "%x"
    for number in range(count):
        for op, operands in (
            ("matmul", f"{last}, %w{number}"),
            ("gelu", f"%matmul_{number}"),
            ("add", f"%gelu_{number}, {last}"),
            ("tanh", f"%add_{number}"),
            ("exp", f"%tanh_{number}"),
            ("sigmoid", f"%exp_{number}"),
            ("neg", f"%sigmoid_{number}"),
        ):
            types = "tensor<32x64xbf16>, tensor<64x64xbf16>" if op == "matmul" else tensor
            types += f", {tensor}" if op == "add" else ""
            body.append(
                f'  %{op}_{number} = "ttir.{op}"({operands}) : ({types}) -> {tensor}'
                f' loc("layer{number}/{op}")'
            )
        last = f"%neg_{number}"
    kind = "ttcore.argument_type = #ttcore.argument_type<parameter>"
    weights = ", ".join(
        f'%w{number}: tensor<64x64xbf16> {{{kind}, ttir.name = "layer{number}.w"}}'
        for number in range(count)
    )
    body.append(f"  return {last} : {tensor}")
    return LAYERS.replace("WEIGHTS", weights).replace("BODY", "\n".join(body))


def test_layers_that_share_a_function_are_changed_together(tmp_path: Path) -> None:
    model, out = tmp_path / "model.mlir", tmp_path / "out"
    model.write_text(layers(4))
    assert main([str(model), "-o", str(out), "-q"]) == 0
    source = out / "src" / "model.cpp"
    text = source.read_text()
    assert text.count("ttnn::gelu(") == 1
    source.write_text(text.replace("ttnn::gelu(", "ttnn::gelu(/*mine*/ "))
    session = Session([tmp_path])
    (graph, *_) = as_json(session, "convert", out)
    edited = graph["groupNodeAttributes"][""]["edited_ops"].split(", ")
    assert edited == ["gelu", "gelu#2", "gelu#3", "gelu#4"]
    (place,) = (
        number
        for number, line in enumerate(source.read_text().split("\n"), start=1)
        if "/*mine*/" in line
    )
    for node in graph["nodes"]:
        if node["id"] in edited:
            reported = {each["key"]: each["value"] for each in node["attrs"]}["C++"]
            assert f"src/model.cpp:{place}" in reported
    session.close()


def test_programs_of_the_device_say_their_kernels(tmp_path: Path) -> None:
    model, out = tmp_path / "model.mlir", tmp_path / "out"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(out), "-q", "--target", "ttmetal"]) == 0
    session = Session([tmp_path], Settings(target="ttmetal"))
    graphs = {graph["id"]: graph for graph in as_json(session, "convert", model)}
    reported = {
        node["id"]: {each["key"]: each["value"] for each in node["attrs"]}.get("C++", "")
        for graph in ("model", "TTMetal: model")
        for node in graphs[graph]["nodes"]
        if "attrs" in node
    }
    assert "kernels/" in reported["head/scaled"]
    assert "src/model.cpp:" in reported["run_program:1"]
    kernel = next(out.glob("kernels/compute_*exp*.cpp"))
    kernel.write_text(kernel.read_text() + "// Mine.\n")
    (graph, *_) = (g for g in as_json(session, "convert", out) if g["id"] == "model")
    assert "edited_ops" not in graph["groupNodeAttributes"][""]
    kernel.write_text(kernel.read_text().replace("exp_tile(", "exp_tile(/*mine*/ "))
    (graph, *_) = (g for g in as_json(session, "convert", out) if g["id"] == "model")
    assert graph["groupNodeAttributes"][""]["edited_ops"].startswith("run_program:")
    session.close()


def test_a_project_says_which_ops_were_changed(tmp_path: Path) -> None:
    model, out = tmp_path / "model.mlir", tmp_path / "out"
    model.write_text(MODEL)
    assert main([str(model), "-o", str(out), "-q"]) == 0
    session = Session([tmp_path])
    (graph, *_) = as_json(session, "convert", out)
    assert "edited_ops" not in graph["groupNodeAttributes"][""]
    source = out / "src" / "model.cpp"
    text = source.read_text()
    assert text.count("ttnn::exp(") == 1
    # A comment in front moves the lines; it changes no op.
    source.write_text("// Mine.\n" + text.replace("ttnn::exp(", "ttnn::exp(/*mine*/ "))
    (graph, *_) = as_json(session, "convert", out)
    assert graph["groupNodeAttributes"][""]["edited_files"] == "src/model.cpp"
    assert graph["groupNodeAttributes"][""]["edited_ops"] == "head/scaled"
    edited = {
        node["id"]: node
        for node in graph["nodes"]
        if any(each["key"] == "edited" for each in node.get("attrs", []))
    }
    assert edited.keys() == {"head/scaled"}
    assert edited["head/scaled"]["style"]["backgroundColor"]
    files = {file["path"]: file for file in as_json(session, "code", out)}
    place = next(
        number
        for number, line in enumerate(source.read_text().split("\n"), start=1)
        if "/*mine*/" in line
    )
    assert files["src/model.cpp"]["changed"] == [1, place]
    assert [each["node"] for each in files["src/model.cpp"]["edited"]] == ["head/scaled"]
    assert files["src/capi.cpp"]["changed"] == []
    with pytest.raises(CompileError, match=r"has no C\+\+"):
        session.run(command("code", out / "model.ttnn"))
    session.close()


def test_ops_that_the_library_calls_otherwise_are_named_as_well(tmp_path: Path) -> None:
    model, out = tmp_path / "model.mlir", tmp_path / "out"
    floats, integers, part = "tensor<32x32xbf16>", "tensor<32x32xi32>", "tensor<16x32xbf16>"
    flat = "tensor<1024xi32>"
    model.write_text(
        f"func.func @model(%x: {floats}, %i: {integers}) -> ({part}, {flat}) {{\n"
        '  %0 = "ttir.clamp_scalar"(%x) <{min = 0.0 : f32, max = 2.0 : f32}> '
        f': ({floats}) -> {floats} loc("clamped")\n'
        '  %1 = "ttir.slice_static"(%0) <{begins = [0 : i32, 0 : i32], '
        f"ends = [16 : i32, 32 : i32], step = [1 : i32, 1 : i32]}}> : ({floats}) -> {part} "
        'loc("half")\n'
        f'  %2 = "ttir.div"(%i, %i) : ({integers}, {integers}) -> {integers} loc("share")\n'
        f'  %3 = "ttir.reshape"(%2) <{{shape = [1024 : i32]}}> : ({integers}) -> {flat} '
        'loc("flat")\n'
        f"  return %1, %3 : {part}, {flat}\n}}\n"
    )
    assert main([str(model), "-o", str(out), "-q"]) == 0
    source = out / "src" / "model.cpp"
    text = source.read_text()
    for call in ("ttnn::clamp(", "ttnn::slice(", "ttnn::div(", "ttnn::reshape("):
        assert text.count(call) == 1
        text = text.replace(call, f"{call}/*mine*/ ")
    source.write_text(text)
    session = Session([tmp_path])
    (graph, *_) = as_json(session, "convert", out)
    assert graph["groupNodeAttributes"][""]["edited_ops"] == "clamped, half, share, flat"
    session.close()


def test_decisions_of_a_person_are_on_the_graph_and_in_the_file(tmp_path: Path) -> None:
    source = tmp_path / "model.mlir"
    source.write_text(MODEL)
    out = tmp_path / "out"
    assert main([str(source), "-o", str(out)]) == 0
    session = Session([tmp_path], Settings())
    assert as_json(session, "overrides", out) == [{"version": 1, "functions": {}}]
    code = out / "src/model.cpp"
    lines = code.read_text().split("\n")
    (place,) = (index for index, line in enumerate(lines) if "call::matmul(" in line)
    lines[place] = lines[place].replace(");", ", {.memory_config = ttnn::L1_MEMORY_CONFIG});")
    code.write_text("\n".join(lines))
    listed = [each for file in as_json(session, "code", out) for each in file["edited"]]
    (edited,) = (each for each in listed if each["edit"])
    assert edited["edit"] == "memory l1"
    assert edited["op"] == "ttnn.matmul"
    assert edited["estimated_us"] > 0
    # The calls that read the result change with it.
    assert all(each["before_us"] > 0 for each in listed)
    graphs = as_json(session, "convert", out)
    said = {
        node["id"]: each["value"]
        for graph in graphs
        for node in graph["nodes"]
        for each in node["attrs"]
        if each["key"] == "edited"
    }
    assert said == {edited["node"]: "by a person: memory l1"}
    # The same file as that of the command line.
    written = tmp_path / "overrides.json"
    assert main(["--edits", str(out), "--write-overrides", str(written)]) == 0
    assert as_json(session, "overrides", out) == [json.loads(written.read_text())]
    session.close()


def test_calls_that_a_person_moved_or_replaced_are_on_the_graph_and_in_the_file(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "model.mlir", tmp_path / "out"
    kind = "tensor<32x64xbf16>"
    source.write_text(
        f"func.func @model(%x: {kind}, %y: {kind}) -> ({kind}, {kind}) {{\n"
        f'  %active = "ttir.silu"(%x) : ({kind}) -> {kind}\n'
        f'  %turned = "ttir.sin"(%y) : ({kind}) -> {kind}\n'
        f"  return %active, %turned : {kind}, {kind}\n}}\n"
    )
    assert main([str(source), "-o", str(out), "-q"]) == 0
    code = out / "src/model.cpp"
    text = code.read_text()
    silu = next(line for line in text.splitlines(True) if "ttnn::silu(" in line)
    turned = next(line for line in text.splitlines(True) if "ttnn::sin(" in line)
    opened = (
        "    // on both engines\n    ttnn::Tensor opened = ttnn::sigmoid(inputs.x);\n"
        "    ttnn::Tensor active = ttnn::multiply(inputs.x, opened);\n"
    )
    code.write_text(text.replace(turned, "").replace(silu, turned + opened))
    session = Session([tmp_path], Settings())
    listed = {e["node"]: e["edit"] for f in as_json(session, "code", out) for e in f["edited"]}
    assert listed == {
        "active": "ttnn::sigmoid, ttnn::multiply instead of ttnn::silu, called after 'turned'"
    }
    # Its line has the call which makes the result now.
    (place,) = [
        (each["first"], each["last"])
        for file in as_json(session, "code", out)
        for each in file["lines"]
        if each["node"] == "active"
    ]
    line = code.read_text()[: code.read_text().index("ttnn::Tensor active")].count("\n") + 1
    assert place == (line, line)
    said = {
        node["id"]: each["value"]
        for graph in as_json(session, "convert", out)
        for node in graph["nodes"]
        for each in node["attrs"]
        if each["key"] == "edited"
    }
    assert said["active"] == f"by a person: {listed['active']}"
    written = tmp_path / "overrides.json"
    assert main(["--edits", str(out), "--write-overrides", str(written)]) == 0
    (overrides,) = as_json(session, "overrides", out)
    assert overrides == json.loads(written.read_text())
    entries = overrides["functions"]["model"]
    assert [call["op"] for call in entries["active"]["calls"]] == ["sigmoid", "multiply"]
    assert entries["active"]["comment"] == "on both engines"
    assert entries["active"]["after"] == "turned"
    session.close()
