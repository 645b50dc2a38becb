"""All passes and pipelines by name, as `ttcodegen` runs them and `ttcodegen-opt` offers them.

How to add a pass
-----------------
1. Write it as an xDSL `ModulePass`: a frozen dataclass with `name`, whose fields, if it has any,
   are its options with their defaults (`module_name: str = ""` is the option `module-name`).
2. Add one `PassEntry` to a table: `passes.PASSES`, or the table of a module of its own that is
   named in `_TABLES` below. The entry names the class as text, so that it is imported when it runs
   and not when the table is read: `ttcodegen-opt --help` imports no pass.

       PassEntry(
           name="ttir-fusing",                       # what the class calls itself
           group=Group.TTIR,                         # the dialect it is listed under in --help
           implementation="ttcodegen.transforms.ttir.fusing.rules:TTIRFusingPass",
           description="Puts ops together that the library has one op for.",
           aliases=("ttir-fuse",),                   # other names that people know it by
           options=(Option("max-rank", "Largest rank of a fused op.", 8),),
       )

How to add a pipeline
---------------------
Write a function that takes the values of its options, all of them, by name and yields the steps in
order, each the name of a pass or pipeline, or `step(name, option=value, ...)`; then add a
`PipelineEntry` to `pipelines.PIPELINES` or to the table of a module in `_TABLES`. Options of
other compilers that are unsupported here get a `refusal` (see `Option`), so that they are
refused by name and never ignored.

A module in `_TABLES` has `PASSES` or `PIPELINES` or both. Its imports should cost nothing: types of
this module, and functions of pipelines. Tests check that every entry imports, that names and
options agree with the class, and that each pass has a test in tests/lit/.

Options of passes and pipelines
-------------------------------
The syntax is MLIR's: `name=value` separated by blanks, where a value may be in quotes or braces, a
name alone sets a flag, and the whole may be in braces:
`--convert-ttnn-to-emitc='{module-name=mlp release=X.Y.Z}'`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NoReturn

from ttcodegen.compat.refusals import Refused
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.messages import closest

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


OptionValue = bool | int | str | tuple[str, ...]
"""Value of an option, by its kind: boolean, integer, string, or list of strings."""

Kind = Literal["flag", "integer", "text", "texts"]

_NAME = re.compile(r"[A-Za-z][\w-]*")
_CLOSING = {"{": "}", "[": "]", "(": ")"}


class OptionError(CompileError):
    """Invalid use of an option: unknown, malformed, or with an unsupported value."""


@dataclass(frozen=True)
class Option:
    """One option of a pass or pipeline.

    `name` with `_` for `-` is the field of the pass that takes the value. An option with `refusal`
    is one of other TTIR compilers that is unsupported here: only its default is accepted, which is
    the behaviour anyway; any other value is refused with that reason.
    """

    name: str
    description: str
    default: OptionValue = ""
    choices: tuple[str | int, ...] = ()
    """Allowed values of a text or an integer; empty if any."""
    refusal: str | None = None

    @property
    def kind(self) -> Kind:
        match self.default:
            case bool():
                return "flag"
            case int():
                return "integer"
            case str():
                return "text"
            case _:
                return "texts"

    @property
    def field(self) -> str:
        """Field of the pass that takes the value."""
        return self.name.replace("-", "_")

    def decode(self, text: str) -> OptionValue:
        """Parses a value.

        Raises:
            OptionError: if the option cannot have that value.
        """
        value = self._decode(text)
        self.check(value)
        return value

    def check(self, value: OptionValue) -> None:
        """Verifies that the option can have a value.

        Raises:
            OptionError: if it cannot.
        """
        if self.refusal is not None and value != self.default:
            raise OptionError(
                f"the option '{self.name}' cannot be {self._spelled(value)}: {self.refusal}"
            )
        if self.choices and value not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise OptionError(f"the option '{self.name}' is one of {known}, found '{value}'")

    def _decode(self, text: str) -> OptionValue:
        match self.kind:
            case "flag":
                known = {"": True, "true": True, "1": True, "false": False, "0": False}
                if text.lower() not in known:
                    raise OptionError(f"the option '{self.name}' is true or false, found '{text}'")
                return known[text.lower()]
            case "integer":
                try:
                    return int(text)
                except ValueError:
                    raise OptionError(
                        f"the option '{self.name}' is an integer, found '{text}'"
                    ) from None
            case "text":
                return text
            case "texts":
                return tuple(part.strip() for part in text.split(",") if part.strip())

    def _spelled(self, value: OptionValue) -> str:
        return self.encode(value).partition("=")[2] or "empty"

    def encode(self, value: OptionValue) -> str:
        """Returns `name=value` as text, quoted where necessary."""
        match value:
            case bool():
                text = "true" if value else "false"
            case tuple():
                text = ",".join(value)
            case _:
                text = str(value)
        if re.search(r"[\s{}\"']", text):
            quote = "'" if '"' in text else '"'
            text = f"{quote}{text}{quote}"
        return f"{self.name}={text}"


def non_default(
    values: Mapping[str, OptionValue], options: Sequence[Option]
) -> dict[str, OptionValue]:
    """Returns the values of options that differ from their defaults, so that steps print short."""
    return {o.name: values[o.name] for o in options if values[o.name] != o.default}


def fixed(refused: Refused) -> Iterator[Option]:
    """Yields options that accept only the value that describes the behaviour anyway."""
    for reason, options in refused.items():
        for name, value in options.items():
            yield Option(name, "", value, refusal=reason)


def decode_options(owner: str, options: Sequence[Option], text: str) -> Mapping[str, OptionValue]:
    """Parses the options that a text sets for the pass `owner`.

    Raises:
        OptionError: if the text is malformed, or names an unknown option.
    """
    known = {option.name: option for option in options}
    values: dict[str, OptionValue] = {}
    for name, value in split_options(owner, text):
        option = known.get(name) or _refuse_unknown(owner, name, options)
        try:
            values[name] = option.decode(value)
        except OptionError as error:
            raise OptionError(f"--{owner}: {error}") from None
    return values


def check_options(owner: str, options: Sequence[Option], values: Mapping[str, OptionValue]) -> None:
    """Verifies that the pass `owner` takes these values.

    Raises:
        OptionError: if one of them is unknown or has an unsupported value.
    """
    known = {option.name: option for option in options}
    for name, value in values.items():
        option = known.get(name) or _refuse_unknown(owner, name, options)
        try:
            option.check(value)
        except OptionError as error:
            raise OptionError(f"--{owner}: {error}") from None


def _refuse_unknown(owner: str, name: str, options: Sequence[Option]) -> NoReturn:
    close = closest(name, [option.name for option in options], 0.6)
    remedy = f"did you mean '{close}'?" if close else _listed(owner, options)
    raise OptionError(f"--{owner} has no option '{name}'", remedy=remedy)


def _listed(owner: str, options: Sequence[Option]) -> str:
    names = [option.name for option in options if option.refusal is None]
    return f"its options: {', '.join(names)}" if names else "it has no options"


def split_options(owner: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields the names and values in a text of options; a name alone has an empty value.

    Raises:
        OptionError: if a quote or brace is not closed, or a name is malformed.
    """
    text = unbraced(text)
    position = 0
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        if position == len(text):
            return
        match = _NAME.match(text, position)
        if match is None:
            raise OptionError(f"--{owner}: expected the name of an option at '{text[position:]}'")
        position = match.end()
        if position == len(text) or text[position] != "=":
            yield match.group(), ""
            continue
        end = _value_end(owner, text, position + 1)
        yield match.group(), unbraced(text[position + 1 : end])
        position = end


def unbraced(text: str) -> str:
    """Returns the text without surrounding quotes or braces."""
    text = text.strip()
    if len(text) > 1 and text[0] + text[-1] in ('""', "''", "{}"):
        return text[1:-1]
    return text


def _value_end(owner: str, text: str, start: int) -> int:
    """Returns the end of a value: the next blank outside quotes and brackets."""
    expected: list[str] = []
    for position in range(start, len(text)):
        character = text[position]
        if expected and character == expected[-1]:
            expected.pop()
        elif expected and expected[-1] in "\"'":
            continue
        elif character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character in "\"'":
            expected.append(character)
        elif character.isspace() and not expected:
            return position
    if expected:
        raise OptionError(f"--{owner}: '{expected[-1]}' is missing in the options '{text}'")
    return len(text)


_TABLES = (
    "ttcodegen.transforms.passes",
    "ttcodegen.transforms.ttnn.pipelines",
    "ttcodegen.transforms.ttmetal.passes",
)


class Group(Enum):
    """Dialects that passes are listed under, in the order of --help."""

    TTCORE = "TTCore"
    TTIR = "TTIR"
    TTNN = "TTNN"
    TTMETAL = "TTMetal"
    TTKERNEL = "TTKernel"
    EMITC = "EmitC"
    GENERAL = "all dialects"


class UnknownPass(OptionError):
    """Error for a name that no pass or pipeline has."""


@dataclass(frozen=True)
class Step:
    """A pass or pipeline to run, with the options that are set; the others have their defaults."""

    name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])

    def __str__(self) -> str:
        """Returns the step as text of a pipeline."""
        known = {option.name: option for option in find(self.name).options}
        given = [known[name].encode(value) for name, value in self.options.items()]
        return f"{self.name}{{{' '.join(given)}}}" if given else self.name


def step(name: str, **options: OptionValue) -> Step:
    """Creates a step; option names have `_` for `-`."""
    return Step(name, {key.replace("_", "-"): value for key, value in options.items()})


@dataclass(frozen=True)
class PassEntry:
    """Row of the pass table."""

    name: str
    group: Group
    implementation: str
    """`module:class` of the pass."""
    description: str
    aliases: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def load(self) -> type[ModulePass]:
        """Imports and returns the class of the pass."""
        module, _, name = self.implementation.partition(":")
        return getattr(import_module(module), name)

    def make(self, options: Mapping[str, OptionValue]) -> ModulePass:
        """Creates the pass with these options and the defaults of its class for the others."""
        fields = {o.name: o.field for o in self.options if o.refusal is None}
        given = {fields[name]: value for name, value in options.items() if name in fields}
        return self.load()(**given)


Steps = Callable[[Mapping[str, OptionValue]], Iterable[Step | str]]


@dataclass(frozen=True)
class PipelineEntry:
    """A pipeline: steps that depend on its options."""

    name: str
    group: Group
    steps: Steps
    description: str
    aliases: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()

    def expand(self, options: Mapping[str, OptionValue]) -> Iterator[Step]:
        """Yields the steps for these options and the defaults of the others."""
        values = {option.name: option.default for option in self.options} | dict(options)
        for entry in self.steps(values):
            yield Step(entry) if isinstance(entry, str) else entry


Entry = PassEntry | PipelineEntry


@cache
def entries() -> tuple[Entry, ...]:
    """Returns all passes and pipelines in the order of the tables."""
    found: list[Entry] = []
    for table in _TABLES:
        module = import_module(table)
        found += getattr(module, "PASSES", ())
        found += getattr(module, "PIPELINES", ())
    return tuple(found)


@cache
def _by_name() -> Mapping[str, Entry]:
    names: dict[str, Entry] = {}
    for entry in entries():
        for name in (entry.name, *entry.aliases):
            if name in names:
                raise ValueError(f"two passes are called {name}")
            names[name] = entry
    return names


def find(name: str) -> Entry:
    """Returns the pass or pipeline of a name or alias.

    Raises:
        UnknownPass: if there is none; for known passes of other compilers with the reason.
    """
    entry = _by_name().get(name)
    if entry is not None:
        return entry
    from ttcodegen.compat.refusals import reason

    if (why := reason(name)) is not None:
        raise UnknownPass(f"there is no pass '{name}': {why}")
    close = closest(name, _by_name(), 0.6)
    remedy = f"did you mean '{close}'?" if close else "--help lists all passes and pipelines"
    raise UnknownPass(f"there is no pass or pipeline '{name}'", remedy=remedy)


def is_known(name: str) -> bool:
    """Returns whether there is a pass or pipeline of a name or alias."""
    return name in _by_name()


def parse_step(name: str, text: str) -> Step:
    """Parses `--name=text` as a step.

    Raises:
        OptionError: if there is no such pass, or it does not take these options.
    """
    entry = find(name)
    return Step(entry.name, decode_options(name, entry.options, text))


def schedule(steps: Iterable[Step | str]) -> list[tuple[Step, ModulePass]]:
    """Expands steps to passes, in order, each with the step that describes it.

    Raises:
        OptionError: if a step has an option that its pass or pipeline does not take.
    """
    scheduled: list[tuple[Step, ModulePass]] = []
    for given in steps:
        one = Step(given) if isinstance(given, str) else given
        entry = find(one.name)
        check_options(one.name, entry.options, one.options)
        if isinstance(entry, PassEntry):
            scheduled.append((Step(entry.name, one.options), entry.make(one.options)))
        else:
            scheduled += schedule(entry.expand(one.options))
    return scheduled


def passes_of(*steps: Step | str) -> list[ModulePass]:
    """Returns the passes that steps expand to, in order."""
    return [pass_ for _, pass_ in schedule(steps)]


# Textual pipelines

_ANCHORS = ("builtin.module", "func.func", "ttcore.device_module", "any")


def pipeline_text(steps: Iterable[Step]) -> str:
    """Returns steps as a textual pipeline: `builtin.module(a,b{c=d})`."""
    return f"builtin.module({','.join(str(one) for one in steps)})"


def parse_pipeline(text: str) -> list[Step]:
    """Parses a textual pipeline in MLIR's syntax.

    Passes run on the whole module wherever they are named: those nested in `func.func(...)` run on
    all functions either way.

    Raises:
        OptionError: if the text is malformed, or names an unknown pass.
    """
    steps = list(_parse_list(unbraced(text), text))
    if not steps:
        raise OptionError(f"the pipeline '{text}' has no passes")
    return steps


def _parse_list(text: str, whole: str) -> Iterator[Step]:
    for part in _split_top_level(text, whole):
        head, bracket, rest = _head(part)
        if bracket == "(":
            if head not in _ANCHORS:
                raise OptionError(
                    f"'{head}' in the pipeline '{whole}' is no operation that passes run on",
                    remedy=f"they run on {', '.join(_ANCHORS)}",
                )
            yield from _parse_list(rest, whole)
        else:
            yield parse_step(head, rest)


def _head(part: str) -> tuple[str, str, str]:
    """Splits a part into its name, the bracket after it, and the text in the brackets."""
    for position, character in enumerate(part):
        if character in "({":
            closing = ")" if character == "(" else "}"
            if not part.endswith(closing):
                raise OptionError(f"expected '{closing}' at the end of '{part}'")
            return part[:position].strip(), character, part[position + 1 : -1]
    return part, "", ""


def _split_top_level(text: str, whole: str) -> Sequence[str]:
    """Splits a text at the commas outside of brackets and quotes."""
    parts: list[str] = []
    start = 0
    expected: list[str] = []
    for position, character in enumerate(text):
        if expected and character == expected[-1]:
            expected.pop()
        elif expected and expected[-1] in "\"'":
            continue
        elif character in "({\"'":
            expected.append({"(": ")", "{": "}"}.get(character, character))
        elif character in ")}":
            raise OptionError(f"'{character}' in the pipeline '{whole}' closes nothing")
        elif character == "," and not expected:
            parts.append(text[start:position].strip())
            start = position + 1
    if expected:
        raise OptionError(f"'{expected[-1]}' is missing in the pipeline '{whole}'")
    parts.append(text[start:].strip())
    if len(parts) > 1 and "" in parts:
        raise OptionError(f"a name is missing in the pipeline '{whole}'")
    return [part for part in parts if part]
