"""Signposts: parts of kernels whose time is measured on the device. The simulator has no time."""

from __future__ import annotations

from types import TracebackType

from ttcodegen.lang.simulator.context import running_kernel
from ttcodegen.lang.simulator.locations import error, is_dropped

ONLY_WITH = "ttl.signpost can be used with the with statement only"


class signpost:
    """`with ttl.signpost("read a"):` names a part of a kernel."""

    def __init__(self, name: str) -> None:
        running_kernel("ttl.signpost")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise error(f"the name of a signpost is a string, not a {type(name).__name__}")
        if is_dropped():
            raise error(ONLY_WITH)
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass
