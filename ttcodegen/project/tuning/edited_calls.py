"""Calls of a program as generated and as edited in its C++."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, given_placement
from ttcodegen.dialects.ttnn.program_configs import PROGRAM_CONFIGS, CoreGrid, config_of_text
from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.optimizer.call import COMPUTE_CONFIG, LibraryCall, call_of
from ttcodegen.optimizer.candidates import sharded_as
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.project.manifest import CodeLines, Node
from ttcodegen.project.tuning.edited_files import EditedFile
from ttcodegen.project.tuning.report import described, parameters_of, rearranged
from ttcodegen.project.tuning.setting_values import override_fields, program_summary
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    NOTHING,
    TUNING,
    activation_named,
    joined,
)

TEXT = "text"
"""Mark of an op with an edit that is no decision."""


@dataclass
class _Edit:
    """User's decisions for one op."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields as in the overrides file."""
    activation: str | None = None
    left: list[str] = field(default_factory=list[str])
    """Removed parameters."""
    words: list[str] = field(default_factory=list[str])


def words_of(files: Iterable[EditedFile]) -> dict[Node, str]:
    """Describes the user's decisions, by op."""
    edits, _ = _edits(files)
    return {node: ", ".join(edit.words) for node, edit in edits.items()}


def with_moved_lines(
    lines: Mapping[Node, Sequence[CodeLines]], files: Iterable[EditedFile]
) -> dict[Node, list[CodeLines]]:
    """Lines of ops, with those where a person's calls are, in place of others or moved.

    Args:
        lines: the lines that are left of what was generated.
        files: the edited files.
    """
    found = {node: list(places) for node, places in lines.items()}
    for file in files:
        for _, decided in rearranged(file):
            for op in decided.ops:
                place = CodeLines(file.path, decided.line, decided.line)
                found[op.function, op.name] = [place]
    return found


@dataclass(frozen=True)
class Gain:
    """Estimated time of a call before and after edits, by the cost model."""

    op: str
    before: float
    """Seconds."""
    now: float
    """Seconds; zero if the op was fused into another call."""


@dataclass
class EditedCalls:
    """Library calls of a program, by function and name of the op.

    Args:
        binary: the generated program.
        files: the edited files of its project.
        grid: worker cores of the card.
    """

    binary: Binary
    files: Sequence[EditedFile]
    grid: CoreGrid
    generated: dict[Node, LibraryCall] = field(default_factory=dict[Node, LibraryCall])
    now: dict[Node, LibraryCall] = field(default_factory=dict[Node, LibraryCall])
    """Calls after the edits, without fused ones."""
    ops: dict[Node, CatalogueOp] = field(default_factory=dict[Node, CatalogueOp])
    names: list[CallNames] = field(default_factory=list[CallNames])
    """Op names of each function."""
    words: dict[Node, str] = field(default_factory=dict[Node, str])
    """Descriptions of the edits of each op; `text` for edits that are no decisions."""

    def __post_init__(self) -> None:
        edits, gone = _edits(self.files)
        for function in module_of(self.binary).walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                self._collect(function, edits, gone)
        for node, edit in edits.items():
            self.words[node] = ", ".join(edit.words)
        for op in (op for file in self.files for edit in file.text_edits for op in edit.ops):
            self.words.setdefault((op.function, op.name), TEXT)

    @property
    def gone(self) -> set[Node]:
        """Ops that the edits fused into other calls."""
        return self.generated.keys() - self.now.keys()

    def gains(self, model: CostModel) -> dict[Node, Gain]:
        """Times of the calls that are edited, or affected by edits of others."""
        found: dict[Node, Gain] = {}
        for node, call in self.generated.items():
            now = self.now.get(node)
            if now != call or node in self.words:
                seconds = 0.0 if now is None else model.seconds(now)
                found[node] = Gain(self.ops[node].name, model.seconds(call), seconds)
        return found

    def _collect(
        self, function: FuncOp, edits: Mapping[Node, _Edit], gone: Mapping[Node, Node]
    ) -> None:
        names = CallNames(function)
        self.names.append(names)
        placed: dict[SSAValue, TensorPlacement] = {}
        for op in function.body.block.ops:
            if not isinstance(op, CatalogueOp) or op not in names:
                continue
            node = names.function, names[op]
            self.ops[node] = op
            call = self.generated[node] = call_of(op)
            values = [value for value in op.operands if given_placement(value) is not None]
            operands = tuple(
                placed.get(value, was) for value, was in zip(values, call.operands, strict=True)
            )
            changed = replace(call, operands=operands)
            if node in edits:
                changed = self._edited(changed, edits[node])
            results = [value for value in op.results if given_placement(value) is not None]
            if node in gone:
                # Its readers take the result of the call which applies it.
                applied = self.now.get(gone[node])
                if applied is not None and results:
                    placed[results[0]] = applied.result
                continue
            self.now[node] = changed
            for value, was, result in zip(results, call.results, changed.results, strict=True):
                if was != result:
                    placed[value] = result

    def _edited(self, call: LibraryCall, edit: _Edit) -> LibraryCall:
        """Applies the user's decisions to a call."""
        fields = edit.fields
        attributes = dict(call.attributes)
        result = call.result
        if "data_type" in fields:
            result = result.with_(data_type=DataType.from_mlir(fields["data_type"]))
        if fields.get("sharding") == "interleaved":
            result = result.with_(
                buffer_type=fields["memory"], memory_layout="interleaved", shards=None
            )
        elif "sharding" in fields:
            kind, grid, shard = fields["sharding"], fields.get("grid"), fields.get("shard")
            result = sharded_as(result, kind, self.grid, grid, shard) or result
        if "program_config" in fields:
            attributes[_config_name(call)] = config_of_text(fields["program_config"])
        elif "program_config" in edit.left:
            attributes.pop(_config_name(call), None)
        if "math_fidelity" in fields:
            fidelity = MathFidelity(fields["math_fidelity"])
            known = call.compute_config or ComputeConfig()
            attributes[COMPUTE_CONFIG] = replace(known, math_fidelity=fidelity)
        if edit.activation is not None:
            attributes["activation"] = edit.activation
        results = (result, *call.results[1:]) if call.results else ()
        return replace(call, results=results, attributes=attributes)


def _edits(
    files: Iterable[EditedFile],
) -> tuple[dict[Node, _Edit], dict[Node, Node]]:
    """Decisions by op, and fused ops with the ops that apply them."""
    known = list(files)
    edits: dict[Node, _Edit] = {}
    gone: dict[Node, Node] = {}
    for op, parameter, words, file, said in _decided(known):
        edit = edits.setdefault((op.function, op.name), _Edit())
        if said not in edit.words:
            edit.words.append(said)
        if parameter in ACTIVATIONS:
            edit.activation = activation_named(words)
        elif joined(words) in NOTHING:
            edit.left.append(parameter)
        else:
            edit.fields.update(override_fields(parameter, words, file.constants_known))
    for words, decided in (pair for file in known for pair in rearranged(file)):
        for op in decided.ops:
            edits.setdefault((op.function, op.name), _Edit()).words.append(words)
    for call in (call for file in known for call in file.calls):
        for fused, by in zip(call.fused_ops, call.ops, strict=False):
            gone[fused.function, fused.name] = (by.function, by.name)
            edit = edits.setdefault((fused.function, fused.name), _Edit())
            edit.words.append(f"applied by {by.name}")
    return edits, gone


def _config_name(call: LibraryCall) -> str:
    """Attribute of a call's program config."""
    given = [name for name in PROGRAM_CONFIGS if call.attributes.get(name) is not None]
    return given[0] if given else "matmul_program_config"


def _decided(
    files: Iterable[EditedFile],
) -> Iterator[tuple[LoweredOp, str, Sequence[str], EditedFile, str]]:
    """Yields each decision of an op: parameter, value, file and short description.

    Constants precede calls, which may override them.
    """
    known = list(files)
    for file in known:
        for constant in file.constants:
            words = (f"{TUNING}{constant.constant.name}",)
            for parameter in parameters_of(constant):
                fields = override_fields(parameter, words, file.constants_known)
                said = _short_description(parameter, constant.constant.value, fields)
                for op in constant.ops:
                    yield op, parameter, words, file, said
    for file in known:
        for call in file.calls:
            for change in call.changes:
                fields = override_fields(change.parameter, change.words, file.constants_known)
                said = _short_description(change.parameter, change.words, fields)
                for op in call.ops:
                    yield op, change.parameter, change.words, file, said


def _short_description(parameter: str, words: Sequence[str], fields: Mapping[str, Any]) -> str:
    """Short description of a decision for a table."""
    if "math_fidelity" in fields:
        return f"fidelity {MathFidelity(fields['math_fidelity']).cpp}"
    if fields.get("sharding") == "interleaved":
        return f"memory {fields['memory']}"
    if "program_config" in fields:
        return f"program {program_summary(config_of_text(fields['program_config']))}"
    return described(parameter, words)
