"""Standard streams that are closed, full or read by nobody, and processes that may have little
memory: a message and a status that says so, in every tool."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.flatbuffer.programs import adding_program, binary, tensor
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.schema import load_schema

TOOLS = ("ttcodegen", "opt", "translate", "rt")
MODULE = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : tensor<4xf32>\n}\n"


def shell(
    tool: str, arguments: str, folder: Path, *, unbuffered: bool = False, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a tool as a shell line does, redirections included; `limit` bounds its addresses."""
    code = f"import sys; from ttcodegen.cli.{tool} import main; sys.exit(main())"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    if unbuffered:
        environment["PYTHONUNBUFFERED"] = "1"

    def bound() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run(
        ["bash", "-c", f'"$0" -c "$1" {arguments}', sys.executable, code],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=bound,
    )


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_full_standard_output(tool: str, option: str, unbuffered: bool, tmp_path: Path) -> None:
    done = shell(tool, f"{option} >/dev/full", tmp_path, unbuffered=unbuffered)
    expected = "error: cannot write the standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_closed_standard_output(tool: str, tmp_path: Path) -> None:
    done = shell(tool, "--help >&-", tmp_path)
    expected = "error: cannot write the standard output: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (1, expected)
    done = shell(tool, "--help >&- 2>&-", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("tool", TOOLS)
def test_help_that_nobody_reads(tool: str, tmp_path: Path) -> None:
    done = shell(tool, "--help | true; exit ${PIPESTATUS[0]}", tmp_path, unbuffered=True)
    # The reader may be gone before anything is written, or only after that.
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("ttcodegen", "- -o out"), ("opt", "-"), ("translate", "-mlir-to-cpp -")],
)
def test_a_closed_standard_input(tool: str, arguments: str, tmp_path: Path) -> None:
    done = shell(tool, f"{arguments} <&-", tmp_path)
    expected = "error: cannot read the standard input: it is closed\n"
    assert (done.returncode, done.stderr) == (1, expected)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_that_are_not_needed(streams: str, tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(MODULE)
    done = shell("ttcodegen", f"f.mlir -o out -q {streams}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "manifest.json").exists()


def test_what_is_printed_to_a_full_output(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(MODULE)
    done = shell("opt", "f.mlir >/dev/full", tmp_path)
    assert done.returncode == 1
    assert "cannot write the standard output: No space left on device" in done.stderr


@pytest.mark.parametrize(("command", "status"), [("read", {0}), ("check", {0, 4}), ("run", {1})])
@pytest.mark.parametrize("shape", [(2**14, 2**14), (2**29,), (2**31 - 1, 8)])
def test_files_that_declare_more_than_may_be_had(
    command: str, status: set[int], shape: tuple[int, ...], tmp_path: Path
) -> None:
    adding = adding_program()
    program = replace(adding, tensors=tuple(tensor(*shape) for _ in adding.tensors))
    (tmp_path / "large.ttnn").write_bytes(encode(load_schema("ttnn.fbs"), binary(program)))
    done = shell("rt", f"{command} large.ttnn >/dev/null", tmp_path, limit=3 << 29)
    assert done.returncode in status, done.stderr
    if command == "run":
        assert "GiB for its tensors, there are" in done.stderr


_WAITS = """
import subprocess, sys, threading
from ttcodegen.cli.entry import run_program

def command(_):
    child = subprocess.Popen(["sleep", "60"])
    print(child.pid, flush=True)
    threading.Thread(target=child.wait, daemon=True).start()
    threading.Event().wait()

sys.exit(run_program("ttcodegen", command, None))
"""


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupt_ends_what_the_program_started(
    sent: signal.Signals, status: int, message: str
) -> None:
    """Sent to the program alone, as a supervisor does; the child is in no thread that notices."""
    # What is started in the background of a shell ignores interrupts, and so do its children.
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        program.send_signal(sent)
        try:
            _, said = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == status
    assert said == f"ttcodegen: {message}\n"
    state = Path(f"/proc/{child}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child runs on")


_WAITS_FOR_A_THREAD = """
import sys, threading, time
from ttcodegen.cli.entry import run_program

def command(invocation):
    threading.Thread(target=time.sleep, args=(600,)).start()
    print(flush=True)
    time.sleep(600)

sys.exit(run_program("ttcodegen", command, None))
"""


def test_a_second_interrupt_ends_a_program_that_waits_for_a_thread() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WAITS_FOR_A_THREAD],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.readline()
        program.send_signal(signal.SIGTERM)
        said = program.stderr.readline()
        for _ in range(600):
            if program.poll() is not None:
                break
            program.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        program.kill()
        said += program.stderr.read()
    assert said == "ttcodegen: terminated\n"
    assert program.returncode == 143
