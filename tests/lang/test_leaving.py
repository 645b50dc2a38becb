"""Errors for requests that no device supports, and for exits of kernels."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import MethodType

import numpy as np
import pytest

from tests.lang.running import failure, operation, run_text
from ttcodegen.cli.lang import main
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.lang.compiler.operations import compile_operation
from ttcodegen.lang.projects import programs
from ttcodegen.lang.projects.programs import run_program_text
from ttcodegen.lang.projects.projects import OutputComparison, Projects
from ttcodegen.lang.simulator.context import Launch
from ttcodegen.numerics.comparison import Agreement

BODY = """
@ttl.datamovement()
def read():
    with x_dfb.reserve() as x_blk:
        ttl.copy(x[0, 0], x_blk).wait()
@ttl.compute()
def compute():
    {statement}
    with x_dfb.wait() as x_blk, y_dfb.reserve() as y_blk:
        y_blk.store(ttl.math.exp(x_blk))
@ttl.datamovement()
def write():
    with y_dfb.wait() as y_blk:
        ttl.copy(y_blk, y[0, 0]).wait()
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import sys; sys.exit(0)", "ends the program; a kernel ends by return"),
        ("exit()", "ends the program; a kernel ends by return"),
        ("import os; os._exit(0)", "ends the process in an operation, by os._exit"),
        ("import posix; posix._exit(0)", "ends the process in an operation, by os._exit"),
        ("import os; os.execl('/bin/true', 'true')", "in an operation, by os.execv"),
        ("import os; os.execvpe('true', ['true'], {})", "in an operation, by os.execve"),
        ("import os; os.fork()", "divides the process, by os.fork, in an operation"),
        ("import time; time.sleep(10**6)", "sleeps, and all kernels with it, in an operation"),
        (
            "from threading import Thread; Thread(target=print).start()",
            "starts a thread, which no kernel waits for",
        ),
        ("for _ in range(10**12): pass", "more than the 1,000,000 iterations"),
        ("x_dfb.wiat()", "has no 'wiat'; did you mean wait?"),
        ("ttl.math.sqrtt(1)", "ttl.math has no 'sqrtt'; did you mean sqrt?"),
        (
            "ttl.block.fill(0, shpae=(1, 1))",
            "fill has no argument 'shpae'; did you mean shape?",
        ),
    ],
)
def test_a_kernel_is_told_what_it_cannot_do(statement: str, message: str) -> None:
    assert message in failure(operation(BODY.format(statement=statement)))


@pytest.mark.parametrize(
    ("ending", "status", "message"),
    [
        ("import sys; sys.exit(0)", 0, "nothing was checked: the program called no operation"),
        ("import sys; sys.exit(3)", 3, "nothing was checked: the program called no operation"),
        ("import sys; sys.exit('no device')", 1, "no device"),
        ("import os; os._exit(0)", 1, "error: the program ends the process, by os._exit"),
        ("import os; os.execv('/bin/true', ['true'])", 1, "ends the process, by os.execv"),
    ],
)
def test_a_program_that_ends_itself_is_not_taken_for_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str, status: int, message: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{ending}\n")
    assert main([str(program), "--check"]) == status
    assert message in capsys.readouterr().err


def test_a_program_without_an_operation_is_not_taken_for_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, out = tmp_path / "program.py", tmp_path / "out"
    program.write_text("import ttl\n")
    assert main([str(program), "-o", str(out)]) == 0
    assert "nothing was written: the program called no operation" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "stopped its process"),
        ("import os; os.abort()", "the program ended its process: Aborted"),
        ("import ctypes; ctypes.string_at(0)", "ended its process: Segmentation fault"),
        (
            "import signal; signal.signal(14, signal.SIG_IGN); signal.pause()",
            "the program took longer than 5 s",
        ),
        ("import os; os.closerange(3, 99); os.system('sleep 99')", "took longer than 5 s"),
        ("import resource; x = bytearray(10**15)", "the program raised MemoryError"),
        (
            "import atexit, os; atexit.register(os.abort); raise ValueError('no')",
            "the program raised ValueError: no",
        ),
    ],
)
def test_what_a_program_does_to_its_process_is_said(
    tmp_path: Path, statement: str, message: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(operation(BODY.format(statement=statement)))
    start = "import sys; from ttcodegen.cli.lang import main; sys.exit(main())"
    command = [sys.executable, "-c", start, str(program)]
    command += ["--seconds", "5" if "longer" in message else "100"]
    # What is left of what a kernel started would hold the streams.
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["ttcodegen", "opt", "rt"])
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "stopped its process"),
        ("import os; os.abort()", "the program ended its process: Aborted"),
        ("import ctypes; ctypes.CDLL(None)._exit(0)", "ended its process before it was done"),
        ("import os; os._exit(0)", "the program ends the process, by os._exit"),
        ("import sys; sys.exit(0)", "ends itself (SystemExit: 0) when it is imported"),
        ("import signal; signal.pause()", "the program took longer than 3 s"),
        ("x = bytearray(10**15)", "the program raised MemoryError"),
    ],
)
def test_programs_with_operations_of_a_model_are_watched_too(
    tmp_path: Path, tool: str, statement: str, message: str
) -> None:
    program, model = tmp_path / "program.py", tmp_path / "model.mlir"
    program.write_text(f"{statement}\n")
    model.write_text(
        "func.func @f(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n"
    )
    start = (
        "import sys; from ttcodegen.lang.projects import supervision; supervision.SECONDS = 3.0; "
        f"from ttcodegen.cli.{tool} import main; sys.exit(main())"
    )
    given = {
        "ttcodegen": [str(model), "-o", str(tmp_path / "out")],
        "opt": [str(model)],
        "rt": ["run", str(tmp_path)],
    }
    command = [sys.executable, "-c", start, *given[tool], f"--tt-lang={program}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_signals_reach_the_program(tmp_path: Path, number: signal.Signals, status: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(operation(BODY.format(statement="print('here', flush=True); input()")))
    # Tests that run in the background of a shell ignore interrupts, and so would their processes.
    start = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from ttcodegen.cli.lang import main; sys.exit(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", start, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        time.sleep(0.5)  # Until it waits for its input.
        process.send_signal(number)
        # Its standard input stays open: it would wait for it.
        assert process.wait(30) == status


def test_what_was_compared_is_said_where_a_program_ends_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agreement = Agreement(False, "correlation", 0.5, 1.0, "the correlation is 0.5")
    differing = OutputComparison("op", "y", agreement, np.zeros(1))

    def run(source: Source, arguments: object, watch: MethodType, **options: object) -> None:
        assert isinstance(watch.__self__, Projects)
        watch.__self__.comparisons.append(differing)
        raise SystemExit(0)

    monkeypatch.setattr(programs, "run_program_text", run)
    program = tmp_path / "program.py"
    program.write_text("")
    assert main([str(program), "--check"]) == 4
    assert "error: op, y: the correlation is 0.5" in capsys.readouterr().err


def test_an_endless_recursion_is_one_message() -> None:
    text = operation(BODY.format(statement="def f(n): return f(n + 1)\n    f(0)"))
    found = failure(text)
    assert "the function 'f' calls itself without an end" in found
    assert len(found.splitlines()) < 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("gird=(1, 1)", "ttl.operation has no option 'gird'; did you mean grid?"),
        ("grid=(20, 20)", "a grid of 20x20 nodes is larger than the device, which has 8x8 cores"),
        ("grid=(100000, 100000)", "a grid of 100000x100000 nodes is larger than the device"),
    ],
)
def test_an_operation_is_told_what_no_device_has(options: str, message: str) -> None:
    text = operation(BODY.format(statement="pass"))
    plain = "@ttl.operation(grid=(1, 1))"
    assert plain in text
    assert message in failure(text.replace(plain, f"@ttl.operation({options})"))


def test_options_of_other_compilers_are_taken() -> None:
    text = operation(BODY.format(statement="pass"))
    given = "@ttl.operation(grid=(1, 1), fp32_dest_acc_en=True, dst_full_sync_en=False)"
    run_text(text.replace("@ttl.operation(grid=(1, 1))", given))


CARRIED = """
@ttl.datamovement()
def read():
    for i in range(3):
        with x_dfb.reserve() as x_blk:
            ttl.copy(x[0, 0], x_blk).wait()
@ttl.compute()
def compute():
    with x_dfb.wait() as x_blk:
        total = ttl.block.fill(0, shape=(1, 1)) + x_blk
        with y_dfb.reserve() as y_blk:
            y_blk.store(x_blk)
    for step in range(2):
        with x_dfb.wait() as x_blk:
            total += x_blk
            if step < 1:
                with y_dfb.reserve() as y_blk:
                    y_blk.store(x_blk)
    with y_dfb.reserve() as last:
        last.store(total)
@ttl.datamovement()
def write():
    for i in range(3):
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[0, 0]).wait()
"""


def test_a_name_may_be_bound_again_under_a_condition_in_a_loop() -> None:
    compiled: list[str] = []

    def watch(launch: Launch) -> Callable[[], None]:
        compile_operation(launch)
        compiled.append(launch.name)
        return lambda: None

    run_program_text(Source("program.py", operation(CARRIED)), [], watch)
    assert compiled == ["op"]
