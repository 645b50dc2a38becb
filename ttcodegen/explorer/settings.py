"""The settings that come with a command, as options of a compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ttcodegen.compilation import PIPELINES, WEIGHT_TYPES
from ttcodegen.flatbuffer.system import other_architecture
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest, did_you_mean
from ttcodegen.optimizer.overrides.overrides import OPTIONS as OVERRIDE_OPTIONS
from ttcodegen.systems.cards import NAMES, machine
from ttcodegen.systems.description import ARCHITECTURES, SystemDescription
from ttcodegen.transforms.pipelines import TTNN_OPTIONS, optimization_level

_MOST_ELEMENTS = 1024
_PIPELINE_OPTIONS = ("optimization-level", "enable-optimizer", "memory-layout-analysis-enabled")


@dataclass(frozen=True)
class Settings:
    """Settings of a model's display, compile and run."""

    target: str = "ttnn"
    arch: str = ""
    """Empty for that of the module, or wormhole_b0."""
    optimize: int = 2
    """The level of the optimizer, which decides on calls of ttnn: no other target has one."""
    weights: str = ""
    seed: int = 0
    """Of the inputs of a run."""
    const_element_count_limit: int = 16
    """Largest number of listed elements of a constant; the page of Model Explorer has it, too."""
    stages: bool | None = None
    """True if there are graphs of the stages of a compile; None for small models only."""
    artifact_dir: str = ""
    """Folder of results; empty for a folder that ends with the session."""
    override_options: str = ""
    """Overrides as options of tt-mlir."""
    system: SystemDescription | None = None
    """The system; None for the default one of the architecture."""


def _of(kind: type) -> Callable[[object], bool]:
    # A boolean is an integer to Python, and none to people.
    return lambda value: isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _between(least: int, most: int) -> Callable[[object], bool]:
    return lambda value: type(value) is int and least <= value <= most


_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "target": (
        lambda value: isinstance(value, str) and value in PIPELINES,
        f"one of {', '.join(PIPELINES)}",
    ),
    "arch": (
        lambda value: isinstance(value, str) and value in ("", *ARCHITECTURES),
        f"one of {', '.join(ARCHITECTURES)}",
    ),
    "machine": (_of(str), f"one of {', '.join(NAMES)}"),
    "optimize": (_between(0, 2), "0, 1 or 2"),
    "weights": (lambda value: value in ("", *WEIGHT_TYPES), " or ".join(WEIGHT_TYPES)),
    "seed": (_between(0, 2**32 - 1), "a number that is not negative"),
    "const_element_count_limit": (_between(0, _MOST_ELEMENTS), f"0 to {_MOST_ELEMENTS}"),
    "stages": (_of(bool), "true or false"),
    "artifact_dir": (_of(str), "the path of a folder"),
}

_NUMBERS = ("optimize", "seed", "const_element_count_limit")


def read_settings(given: Mapping[str, Any], default: Settings) -> Settings:
    """The settings of a command. What the page sends for itself (fonts and the like) is no concern
    of ours.

    Raises:
        CompileError: if a value is none that the setting can have.
    """
    found: dict[str, Any] = {}
    for name, (is_right, expected) in _RULES.items():
        if name not in given:
            continue
        value = given[name]
        # The fields of Model Explorer's own page are texts.
        if name in _NUMBERS and isinstance(value, str) and value.isdecimal():
            value = int(value)
        if not is_right(value):
            raise CompileError(f"the setting '{name}' is {given[name]!r}", remedy=expected)
        found[name] = value
    settings = _on_machine(default, found.pop("machine", ""), found)
    options = given.get("ttir_to_ttnn_options")
    return settings if options is None else _with_pipeline_options(settings, options)


def _on_machine(default: Settings, named: str, found: Mapping[str, Any]) -> Settings:
    """The settings with what was found, and with the system of a machine if one is named."""
    settings = replace(default, **found)
    if not named:
        # An architecture takes the place of a system of another one.
        other = settings.system is not None and settings.arch not in ("", settings.system.arch)
        return replace(settings, system=None) if other else settings
    known = machine(named)
    if known is None:
        raise CompileError(
            f"the setting 'machine' is {named!r}{did_you_mean(named, NAMES)}",
            remedy=f"one of {', '.join(NAMES)}",
        )
    if settings.arch not in ("", known.arch):
        raise other_architecture(known.system(), settings.arch)
    return replace(settings, system=known.system())


@dataclass
class _PipelineOptions:
    """Options of tt-mlir's pipeline as they were given."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    overrides: list[str] = field(default_factory=list[str])


def _with_pipeline_options(settings: Settings, options: object) -> Settings:
    """The settings with `ttir_to_ttnn_options`, a list of options of tt-mlir's pipeline."""
    texts = cast("list[Any]", options) if isinstance(options, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise CompileError("'ttir_to_ttnn_options' is no list of texts")
    read = _PipelineOptions()
    for option in cast("list[str]", texts):
        name, _, value = option.lstrip("-").partition("=")
        if name in OVERRIDE_OPTIONS:
            read.overrides.append(option)
        elif name in _PIPELINE_OPTIONS:
            read.values[name] = value or "true"
        else:
            known = (*_PIPELINE_OPTIONS, *OVERRIDE_OPTIONS)
            close = closest(name, known)
            raise CompileError(
                f"the pipeline has no option '{name}'",
                remedy=f"did you mean '{close}'?" if close else f"there are {', '.join(known)}",
            )
    level = _level(read, settings.optimize)
    return replace(settings, optimize=level, override_options=" ".join(read.overrides))


def _level(read: _PipelineOptions, default: int) -> int:
    """The level that the pipeline's options come to, as in `ttcodegen-opt`."""
    values = read.values
    given = values.get("optimization-level")
    if given is not None and given not in ("0", "1", "2"):
        raise CompileError(f"'optimization-level' is '{given}'", remedy="0, 1 or 2")
    flags: dict[str, bool] = {}
    for name in _PIPELINE_OPTIONS[1:]:
        value = values.get(name)
        if value not in (None, "true", "false", "1", "0"):
            raise CompileError(f"'{name}' is '{value}'", remedy="true or false")
        if value is not None:
            flags[name] = value in ("true", "1")
    if given is None:
        # That the optimizer is on or off takes the place of a level that was not given.
        given = 0 if "enable-optimizer" in flags else default
    decisions = {each.lstrip("-").partition("=")[0]: each for each in read.overrides}
    defaults = {option.name: option.default for option in TTNN_OPTIONS}
    return optimization_level({**defaults, **flags, **decisions, "optimization-level": int(given)})
