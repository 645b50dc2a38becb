"""Decisions for the optimizer that options of pipelines give, and the level that they mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.transforms.pass_options import OptionError, OptionValue

REFERENCE_OVERRIDES = ("override-output-layout", "override-conv2d-config", "insert-memreconfig")
"""The options that give decisions to the reference compiler."""
LEVELS = (1, 2)

Values = Mapping[str, OptionValue]


def level_of(overrides: str) -> int:
    """The level that decisions were taken at, by the text of their file; 1 if it says none.

    Raises:
        CompileError: if it says another level.
    """
    try:
        content: Any = json.loads(overrides)
    except (ValueError, RecursionError):
        return LEVELS[0]  # Options of the reference, or what the reader of decisions refuses.
    level = cast("dict[str, Any]", content).get("level") if isinstance(content, dict) else None
    if level is not None and (type(level) is not int or level not in LEVELS):
        raise CompileError(f"the overrides have the level {json.dumps(level)}", remedy="1 or 2")
    return LEVELS[0] if level is None else level


def optimization_level(options: Values) -> int:
    """Optimization level: 0 nothing, 1 local choices, 2 a search over layouts.

    Decisions given from outside apply at level 0, too: at the level that their file was written at,
    or else 1.

    Decisions that are given are applied at level 0, too: at the level that their file was written
    at, or else 1.
    """
    level = options["optimization-level"]
    assert isinstance(level, int)
    if level == 0 and options["enable-optimizer"]:
        level = 1
    if level == 0 and (given := given_decisions(options)):
        level = level_of(str(given["overrides"]))
    if level == 0 and options["record-decisions"]:
        raise OptionError("nothing is decided at level 0: 'record-decisions' needs level 1 or 2")
    return 2 if level == 1 and options["memory-layout-analysis-enabled"] else level


def given_decisions(options: Values) -> dict[str, OptionValue]:
    """Overrides given as text or as a file.

    Raises:
        OptionError: if it is given in both.
    """
    given = [f"{name}={options[name]}" for name in REFERENCE_OVERRIDES if options[name]]
    if options["overrides"]:
        if given:
            name = given[0].partition("=")[0]
            raise OptionError(f"decisions are given twice: by 'overrides' and by '{name}'")
        return {"overrides": options["overrides"]}
    return {"overrides": " ".join(given)} if given else {}
