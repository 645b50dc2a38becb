"""Worker processes and results that are kept: limits, sharing, and that nothing is left."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.explorer.conftest import processes_below
from tests.explorer.test_graphs import MODEL
from ttcodegen.compilation import CompileOptions
from ttcodegen.explorer import workers as workers_module
from ttcodegen.explorer.execution import ResultsCache
from ttcodegen.explorer.requests import Request, perform
from ttcodegen.explorer.session import Session
from ttcodegen.explorer.workers import Workers
from ttcodegen.foundation.diagnostics import CompileError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


@pytest.fixture
def workers() -> Generator[Workers]:
    made = Workers(2)
    made.warm_up()
    yield made
    made.close()


def request_of(path: Path, **options: object) -> Request:
    return Request("convert", path, CompileOptions("model"), stages=False, **options)  # type: ignore[arg-type]


def children() -> set[int]:
    """The processes below this one, but for those that have ended since they were listed."""
    return set(processes_below(os.getpid()))


def test_a_worker_computes_what_a_thread_would(workers: Workers, model: Path) -> None:
    assert workers.perform(request_of(model)) == perform(request_of(model))
    assert json.loads(workers.perform(request_of(model)))[0]["id"] == "model"


def test_errors_come_back_with_their_location(workers: Workers, model: Path) -> None:
    model.write_text("func.func @f(%x: tensor<4xf32> {\n")
    with pytest.raises(CompileError) as raised:
        workers.perform(request_of(model))
    assert "model.mlir:2:1: error" in raised.value.render()
    # The worker goes on.
    model.write_text(MODEL)
    assert workers.perform(request_of(model))


def test_a_request_that_takes_too_long_is_ended(model: Path) -> None:
    workers = Workers(2, seconds=0.01)
    workers.warm_up()
    before = children()
    try:
        with pytest.raises(CompileError, match=r"takes longer than 0\.01 s"):
            workers.perform(request_of(model))
        assert children() <= before
    finally:
        workers.close()


def test_a_request_that_takes_too_much_memory_is_ended(model: Path) -> None:
    tensor = "tensor<32x32xf32>"
    ops = "".join(f'%v{n + 1} = "ttir.exp"(%v{n}) : ({tensor}) -> {tensor}\n' for n in range(2000))
    model.write_text(
        f"func.func @f(%v0: {tensor}) -> {tensor} {{\n{ops}return %v0 : {tensor}\n}}\n"
    )
    workers = Workers(2, mebibytes=16)
    try:
        with pytest.raises(CompileError, match=r"ended the process|takes more memory"):
            workers.perform(request_of(model))
    finally:
        workers.close()


def test_workers_end_after_a_number_of_requests(
    workers: Workers, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_MOST_REQUESTS", 1)
    before = children()
    assert workers.perform(request_of(model))
    assert workers.perform(request_of(model))
    assert children() <= before


def test_closing_ends_workers_in_the_middle_of_a_request(model: Path) -> None:
    workers = Workers(2)
    workers.warm_up()
    before = children()
    failed: list[CompileError] = []

    def ask() -> None:
        try:
            for _ in range(1000):
                workers.perform(request_of(model))
        except CompileError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not children() - before:
        time.sleep(0.01)
    workers.close()
    asking.join(30)
    assert failed
    assert children() <= before


def test_results_are_computed_once_for_all_that_wait() -> None:
    results, computed = ResultsCache(), list[int]()
    begun, go_on = threading.Event(), threading.Event()

    def compute() -> bytes:
        computed.append(1)
        begun.set()
        go_on.wait(30)
        return b"x"

    found: list[bytes] = []
    asking = [
        threading.Thread(target=lambda: found.append(results.get("key", compute))) for _ in range(8)
    ]
    for each in asking:
        each.start()
    begun.wait(30)
    go_on.set()
    for each in asking:
        each.join(30)
    assert (found, len(computed)) == ([b"x"] * 8, 1)
    assert results.get("key", lambda: b"another") == b"x"


def test_results_are_kept_up_to_a_number_of_bytes() -> None:
    results = ResultsCache(most_kept=100)
    for number in range(10):
        results.get(str(number), lambda: b"." * 20)
    assert results.get("9", lambda: b"new") == b"." * 20
    assert results.get("0", lambda: b"new") == b"new"
    # One that is large against the whole is not kept.
    results.get("large", lambda: b"." * 90)
    assert results.get("large", lambda: b"new") == b"new"


def test_a_failure_is_not_kept() -> None:
    results = ResultsCache()

    def fail() -> bytes:
        raise CompileError("no")

    with pytest.raises(CompileError):
        results.get("key", fail)
    assert results.get("key", lambda: b"x") == b"x"


def test_the_content_of_a_model_decides_and_not_its_date(model: Path) -> None:
    request = request_of(model)
    before = request.digest()
    stamp = model.stat().st_mtime_ns
    model.write_text(MODEL.replace("scores", "points"))
    os.utime(model, ns=(stamp, stamp))
    assert request.digest() != before
    assert request_of(model, elements=3).digest() != request.digest()
    assert request_of(model.parent).digest() is None


def test_a_worker_need_not_import_and_compute_what_all_need(workers: Workers, model: Path) -> None:
    workers.wait_until_warm()
    before = children()
    workers.perform(request_of(model))
    (worker,) = children() - before
    fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    # Imports alone take 0.9 s.
    assert seconds < 0.4


def test_kept_results_are_answered_at_once(model: Path) -> None:
    session = Session([model.parent])
    command = {"cmdId": "convert", "extensionId": "ttcodegen", "modelPath": str(model)}
    command |= {"settings": {"stages": False}, "deleteAfterConversion": False}
    assert session.kept_text(command) is None
    answer = session.answer_text(command)
    assert b"error" not in answer
    assert session.kept_text(command) == answer
    assert session.of_another_user().kept_text(command) == answer
    # Another question, one that does more than answer, and another content are no kept results.
    assert session.kept_text({**command, "settings": {"stages": True}}) is None
    assert session.kept_text({**command, "deleteAfterConversion": True}) is None
    assert session.kept_text({**command, "modelPath": "/etc/passwd"}) is None
    assert session.kept_text({"cmdId": "convert"}) is None
    model.write_text(model.read_text().replace("exp", "tanh") + "// changed\n")
    assert session.kept_text(command) is None
    session.close()
