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
"""Environment variable with the file to which ttnn calls are reported as JSON lines."""
CALL_TENSORS = "TTCODEGEN_CALL_TENSORS"
"""Environment variable with the folder to which results of those calls are written."""
DEVICE_REPORT = "TTCODEGEN_DEVICE_REPORT"
"""Environment variable with the file to which kernel programs are reported."""


class BackendReport:
    """Report that the backend writes while it is open."""

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
        """Stops reporting; the report is readable until it is closed."""
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
    """Result tensor of a call."""

    shape: tuple[int, ...]
    """Shape; on a mesh, of one device."""
    data_type: str
    """Data type, such as `BFLOAT16`."""
    bytes: int
    """Allocated size on all devices."""
    page: str = ""
    """Page layout: `tile` or `row_major`."""
    memory: Mapping[str, Any] | None = None
    """Memory layout, buffer and shards in MLIR's terms; None on the host."""
    devices: int | None = None
    """Number of devices on a mesh."""
    file: Path | None = None
    """File of the elements, if requested, until the report is closed."""

    def elements(self) -> np.ndarray:
        """Elements, floats as float32; on a mesh, of all devices.

        Raises:
            FileNotFoundError: if they were not requested, or were removed.
        """
        if self.file is None:
            raise FileNotFoundError("the results of calls were not requested")
        return np.load(self.file, mmap_mode="r")


@dataclass(frozen=True)
class ReportedCall:
    """Reported ttnn call."""

    name: str
    """Function name without its namespace."""
    begin: float
    seconds: float
    """Begin in seconds of `time.perf_counter`."""
    processor_seconds: float
    """Processor time of all threads of the process."""
    read_bytes: int
    results: tuple[CallResult, ...]

    @property
    def moved_bytes(self) -> int:
        """Size of operands and results."""
        return self.read_bytes + sum(result.bytes for result in self.results)


class CallReport(BackendReport):
    """Collects the ttnn calls that the CPU backend runs.

    Args:
        tensors: whether to collect results as well.
    """

    variable: ClassVar[str] = CALL_REPORT

    def __init__(self, *, tensors: bool = False) -> None:
        self._tensors = tensors
        self._offset = 0

    def _variables(self) -> dict[str, str]:
        more = {CALL_TENSORS: str(self.folder)} if self._tensors else {}
        return {**super()._variables(), **more}

    def take(self) -> list[ReportedCall]:
        """Returns the calls since the last time, in order."""
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
            output["page"],
            output["memory"],
            output.get("devices"),
            file,
        )
