"""Runtime tool as a Python package: sub-commands as classes.

- `card_report`: Cost estimates of a card in the file formats of tt-metal's profiler
- `commands/`: Sub-commands of `ttcodegen-rt` as callable classes
- `common/`: Modules at the import paths of ttrt, so that its scripts only change the package name
- `device_profile`: Device profile of the emulated device, and traces in the Trace Event Format
- `edit_gains`: Gains of tuning edits: calls before and after, and positions of ops in a project's
  C++
- `judging/`: Comparison of programs on the vendor's simulator with the interpreter
- `op_times`: Op times of flatbuffers and of ttnn calls, in the columns of tt-metal's profiler
- `op_values`: Values of a run's ops, and matching of two runs' ops

from ttcodegen.rt import API

result_code, results = API.Run(args={"binary": "out.ttnn", "--loops": 10})()

Programs that were compiled apart run on each other's tensors: see `ttcodegen.runtime.stitching`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ttcodegen.numerics.interpreter import OpEvent
    from ttcodegen.rt.commands.check import Check, Query
    from ttcodegen.rt.commands.command import Artifacts, Logger
    from ttcodegen.rt.commands.compare import Compare
    from ttcodegen.rt.commands.perf import Perf
    from ttcodegen.rt.commands.read import Read
    from ttcodegen.rt.commands.run import Run
    from ttcodegen.rt.commands.validate import Validate
    from ttcodegen.runtime.stitching import load_binary, open_device, to_layout

__all__ = [
    "API",
    "Artifacts",
    "Check",
    "Compare",
    "Logger",
    "OpEvent",
    "Perf",
    "Query",
    "Read",
    "Run",
    "Validate",
    "load_binary",
    "open_device",
    "to_layout",
]

_MODULES = {
    "Artifacts": "ttcodegen.rt.commands.command",
    "Check": "ttcodegen.rt.commands.check",
    "Compare": "ttcodegen.rt.commands.compare",
    "Logger": "ttcodegen.rt.commands.command",
    "OpEvent": "ttcodegen.numerics.interpreter",
    "Perf": "ttcodegen.rt.commands.perf",
    "Query": "ttcodegen.rt.commands.check",
    "Read": "ttcodegen.rt.commands.read",
    "Run": "ttcodegen.rt.commands.run",
    "Validate": "ttcodegen.rt.commands.validate",
    **dict.fromkeys(["load_binary", "open_device", "to_layout"], "ttcodegen.runtime.stitching"),
}


def __getattr__(name: str) -> Any:
    # Each sub-command imports what it needs when it is called.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'ttcodegen.rt' has no attribute '{name}'")


class _Commands:
    """Sub-commands by name: `API.Read`, `API.Run`, `API.Perf`, `API.Compare`, `API.Check`,
    `API.Query`."""

    if TYPE_CHECKING:
        Read: type[Read]
        Run: type[Run]
        Perf: type[Perf]
        Check: type[Check]
        Compare: type[Compare]
        Query: type[Query]

    def __getattr__(self, name: str) -> Any:
        return __getattr__(name)

    @staticmethod
    def initialize_apis() -> None:
        """No-op for scripts of ttrt, which call it first."""


API = _Commands()
"""All sub-commands."""
