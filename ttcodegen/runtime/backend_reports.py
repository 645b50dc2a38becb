"""Reports of the CPU backend in this process, to files that environment variables name."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np

CALL_REPORT = "TTCODEGEN_CALL_REPORT"
"""Names the file that calls of ttnn are reported to, a line of JSON for each."""
CALL_TENSORS = "TTCODEGEN_CALL_TENSORS"
"""Names the folder that the results of those calls are written to."""
DEVICE_REPORT = "TTCODEGEN_DEVICE_REPORT"
"""Names the file that what programs of kernels did is counted in."""


class BackendReport:
    """A report that is written as long as this is open."""

    variable: ClassVar[str]

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory(prefix="ttcodegen-report-")
        self.folder = Path(self._temporary.name)
        self.path = self.folder / "report"
        self._before = {name: os.environ.get(name) for name in self._variables()}
        os.environ.update(self._variables())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._temporary.cleanup()

    def stop(self) -> None:
        """Asks for nothing more; what was reported can be read until the report is closed."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()

    def _variables(self) -> dict[str, str]:
        return {self.variable: str(self.path)}


@dataclass(frozen=True)
class CallResult:
    """A tensor that a call gave."""

    shape: tuple[int, ...]
    """On a mesh, that of one device."""
    data_type: str
    """As `BFLOAT16`."""
    bytes: int
    """Its placement, on all devices."""
    devices: int | None = None
    """Of a mesh, how many there are."""
    file: Path | None = None
    """File of the elements, if they were requested, until the report is closed."""

    def elements(self) -> np.ndarray:
        """The elements, floats as float32; of a mesh, those of all devices together.

        Raises:
            FileNotFoundError: if they were not requested, or are gone.
        """
        if self.file is None:
            raise FileNotFoundError("the results of calls were not requested")
        return np.load(self.file, mmap_mode="r")


@dataclass(frozen=True)
class ReportedCall:
    """A call of ttnn."""

    name: str
    """The function, without its namespace."""
    begin: float
    seconds: float
    """On the clock that `time.perf_counter` reads."""
    processor_seconds: float
    """Of all threads of the process."""
    read_bytes: int
    results: tuple[CallResult, ...]

    @property
    def moved_bytes(self) -> int:
        """Bytes of the operands and the results."""
        return self.read_bytes + sum(result.bytes for result in self.results)


class CallReport(BackendReport):
    """Takes the calls of ttnn that the CPU backend runs.

    Args:
        tensors: whether their results are wanted too.
    """

    variable: ClassVar[str] = CALL_REPORT

    def __init__(self, *, tensors: bool = False) -> None:
        self._tensors = tensors
        self._offset = 0

    def _variables(self) -> dict[str, str]:
        more = {CALL_TENSORS: str(self.folder)} if self._tensors else {}
        return {**super()._variables(), **more}

    def take(self) -> list[ReportedCall]:
        """The calls since the last time, in their order."""
        if not self.path.is_file():
            return []
        with self.path.open("rb") as report:
            report.seek(self._offset)
            lines = report.readlines()
            self._offset += sum(map(len, lines))
        return [self._call(json.loads(line)) for line in lines]

    def _call(self, entry: Mapping[str, Any]) -> ReportedCall:
        outputs: Sequence[Mapping[str, Any]] = entry["outputs"]
        return ReportedCall(
            entry["op"],
            entry["begin_us"] / 1e6,
            entry["wall_us"] / 1e6,
            entry["processor_us"] / 1e6,
            entry["read_bytes"],
            tuple(self._result(output) for output in outputs),
        )

    def _result(self, output: Mapping[str, Any]) -> CallResult:
        file = self.folder / output["file"] if "file" in output else None
        return CallResult(
            tuple(output["shape"]),
            output["data_type"],
            output["bytes"],
            output.get("devices"),
            file,
        )
