"""Misspelled names, wrong arguments, and versions of language features."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

from ttcodegen.foundation.messages import did_you_mean

PACKAGES = {
    "ttl": "ttcodegen.lang.ttl",
    "ttl.math": "ttcodegen.lang.ttl.math",
    "ttl.block": "ttcodegen.lang.ttl.block",
    "ttnn": "ttcodegen.lang.ttnn",
}
"""Packages of the language, with the modules that implement them."""
_RENAMED = {
    "kernel": "operation",
    "core": "node",
    "buffer_factor": "block_count",
    "make_circular_buffer_like": "make_dataflow_buffer_like",
}
"""Former names, with their replacements."""


_REPRESENTED: dict[str, str] = {}
"""Names of the compiler's classes, with the names of the classes that programs know."""


class Representation:
    """A value of the compiler that programs know as one of `language_class`."""

    __slots__ = ()
    language_class: ClassVar[type]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _REPRESENTED[cls.__name__] = cls.language_class.__name__


def in_language(text: str) -> str:
    """Replaces names of the compiler's classes in an error message by those that programs know."""
    return re.sub(r"\w+", lambda word: _REPRESENTED.get(word[0], word[0]), text)


def language_class(value: object) -> type:
    """Class of a value as programs know it; the compiler represents values by other classes."""
    return getattr(value, "language_class", type(value))


def misspelled(raised: BaseException) -> str | None:
    """Error message for a wrong name or argument of the language; None for other errors."""
    if isinstance(raised, AttributeError) and raised.name is not None:
        owner = _owner(raised.obj)
        if owner is not None:
            of = raised.obj if isinstance(raised.obj, ModuleType) else language_class(raised.obj)
            return f"{owner} has no '{raised.name}'{_suggestion(raised.name, dir(of))}"
    if isinstance(raised, TypeError):
        found = re.match(r"((?:\w+\.)*\w+)\(\) (got|missing|takes) ", str(raised))
        is_own = found is not None and _is_of_program(raised, found[1])
        function = _function(found[1]) if found is not None and not is_own else None
        if found is not None and function is not None:
            return _argument_error(
                found[1].removesuffix(".__init__").rpartition(".")[2],
                function,
                str(raised)[len(found[1]) + 3 :],
            )
    return None


def wrong_arguments(
    name: str,
    function: Callable[..., Any],
    arguments: Sequence[object],
    keywords: Mapping[str, object],
) -> str | None:
    """Error message for the arguments of a call; None if they are valid."""
    try:
        inspect.signature(function).bind(*arguments, **keywords)
    except TypeError as raised:
        return _argument_error(name, function, str(raised))
    except ValueError:
        # Some Python builtins have no signature.
        return None
    return None


def wrong_method_arguments(
    value: object, name: str, arguments: Sequence[object], keywords: Mapping[str, object]
) -> str | None:
    """Error message for the arguments of a language method; None if they are valid."""
    method = getattr(language_class(value), name, None)
    if method is None:
        return None
    return wrong_arguments(name, method, [value, *arguments], keywords)


def _argument_error(name: str, function: Callable[..., Any], text: str) -> str:
    known = [each for each in inspect.signature(function).parameters if each != "self"]
    if (found := re.search(r"unexpected keyword argument '(\w+)'", text)) is not None:
        return f"{name} has no argument '{found[1]}'{_suggestion(found[1], known)}"
    if (found := re.search(r"missing .*?argument.*?: (.*)", text)) is not None:
        return f"{name} is missing the argument {found[1]}"
    if not known and name in ("compute", "datamovement"):
        return f"{name} takes no arguments; the decorator is written @ttl.{name}()"
    return f"{name} takes {'the arguments (' + ', '.join(known) + ')' if known else 'no arguments'}"


def _suggestion(name: str, known: Iterable[str]) -> str:
    public = [each for each in known if not each.startswith("_")]
    renamed = _RENAMED.get(name)
    return f"; it is {renamed} now" if renamed in public else did_you_mean(name, public)


def _owner(value: object) -> str | None:
    """Name of an object of the language, or None for other objects."""
    if isinstance(value, ModuleType):
        names = (name for name, real in PACKAGES.items() if real == value.__name__)
        return next(names, None)
    kind = language_class(value)
    if not kind.__module__.startswith("ttcodegen.lang"):
        return None
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
    return f"a {words}".replace("expr", "expression")


def _is_of_program(raised: BaseException, name: str) -> bool:
    """True if the raising frame knows a user function of that name."""
    trace = raised.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    known = {**trace.tb_frame.f_globals, **trace.tb_frame.f_locals}
    found = known.get(name.partition(".")[0])
    return callable(found) and not getattr(found, "__module__", "").startswith("ttcodegen.")


def _function(name: str) -> Callable[..., Any] | None:
    """Function or method of the language by name; None if there is none."""
    for real in PACKAGES.values():
        found: Any = sys.modules.get(real)
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


VERSION = "0.22"
"""Newest supported version of the language; renamed features are supported in both spellings."""


@dataclass(frozen=True)
class Feature:
    """A feature that was added after version 0.17 of the language."""

    version: str
    """Version that added the feature; the newest one if unknown."""
    name: str
    is_compiled: bool = True
    """True if the compiler supports it in addition to the simulator."""


FEATURES: tuple[Feature, ...] = (
    Feature("0.18", "`ttl.raw_element_read`, `raw_element_write`, `>` and `<` of elements"),
    Feature("0.22", "`ttl.make_dfb`"),
    Feature("0.22", "`ttl.make_tensor_backed_dfb` of whole shards, `publish`"),
    Feature("0.22", "`byte_offset` and parts of shards of `ttl.make_tensor_backed_dfb`", False),
    Feature("0.22", "`ttl.make_dfb_allocation_group`, `allocation_group=`", False),
    Feature("0.22", "`ttl.block.fill(layout=, dtype=, tile=)`"),
    Feature("0.22", "`ttl.math.gt`, `ge`, `lt`, `le`, `eq`, `ne`"),
    Feature("0.19", "operations with one body for all kernels"),
    Feature("0.19", "operations that are made of others"),
    Feature("0.20", "`ttl.math.exp(scale=, approx=, skip_clamp_check=)`"),
    Feature("0.20", "`ttl.math.exp(iterations=)` other than 8", False),
    Feature("0.21", "`ttl.read_index`"),
    Feature("0.22", "replacing a block that was waited for, after reading it"),
    Feature("0.22", "`ttnn.split_work_to_cores`, `num_cores_to_corerangeset`, `TensorSpec`, "
            "`is_sharded`, `get_memory_config`"),
    Feature("0.22", "`ttnn.NdShardSpec`", False),
)  # fmt: skip


def overview() -> str:
    """Table of features by version, with their support by the simulator and the compiler."""
    lines = [
        f"TT-Lang, specification {VERSION}: programs of all versions up to it are read.",
        "",
        "version  simulator  compiler  feature",
        "0.17     yes        yes       all of it, but for grids of several chips",
    ]
    for each in FEATURES:
        made = "yes" if each.is_compiled else "no"
        lines.append(f"{each.version}     yes        {made:<9} {each.name.replace('`', '')}")
    return "\n".join(lines)
