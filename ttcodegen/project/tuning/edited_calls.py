"""The calls of a program as its edited C++ makes them, beside those that were generated."""

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
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.project.manifest import Node
from ttcodegen.project.tuning.decisions import EditedFile, activation_named
from ttcodegen.project.tuning.report import described, parameters_of
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    NOTHING,
    TUNING,
    joined,
    override_fields,
    program_summary,
)

TEXT = "text"
"""Mark of an op whose C++ has an edit that is no decision."""


@dataclass
class _Edit:
    """Decisions of the user for one op."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """As those of the overrides file."""
    activation: str | None = None
    left: list[str] = field(default_factory=list[str])
    """Parameters that were taken out."""
    words: list[str] = field(default_factory=list[str])


def words_of(files: Iterable[EditedFile]) -> dict[Node, str]:
    """The decisions of the user by op, in words."""
    edits, _ = _edits(files)
    return {node: ", ".join(edit.words) for node, edit in edits.items()}


@dataclass
class EditedCalls:
    """Library calls of a program, by function and name of the op.

    Args:
        binary: the program as it was generated.
        files: the edited files of its project.
        grid: the cores of the card.
    """

    binary: Binary
    files: Sequence[EditedFile]
    grid: CoreGrid
    generated: dict[Node, LibraryCall] = field(default_factory=dict[Node, LibraryCall])
    now: dict[Node, LibraryCall] = field(default_factory=dict[Node, LibraryCall])
    """Without those that another call applies."""
    ops: dict[Node, CatalogueOp] = field(default_factory=dict[Node, CatalogueOp])
    names: list[CallNames] = field(default_factory=list[CallNames])
    """The names of the ops of each function."""
    words: dict[Node, str] = field(default_factory=dict[Node, str])
    """Edits of each op that a person changed, in words; those that are no decisions as `text`."""

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
        """Ops that other calls apply now."""
        return self.generated.keys() - self.now.keys()

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
        """A call with the decisions of the user."""
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
    """The decisions by op, and the ops that are applied by others, with these."""
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
    for call in (call for file in known for call in file.calls):
        for fused, by in zip(call.fused_ops, call.ops, strict=False):
            gone[fused.function, fused.name] = (by.function, by.name)
            edit = edits.setdefault((fused.function, fused.name), _Edit())
            edit.words.append(f"applied by {by.name}")
    return edits, gone


def _config_name(call: LibraryCall) -> str:
    """The attribute that holds the program configuration of a call."""
    given = [name for name in PROGRAM_CONFIGS if call.attributes.get(name) is not None]
    return given[0] if given else "matmul_program_config"


def _decided(
    files: Iterable[EditedFile],
) -> Iterator[tuple[LoweredOp, str, Sequence[str], EditedFile, str]]:
    """Each decision of an op: its parameter, its value, the file, and both in words; those of
    constants first, for a call may say otherwise."""
    known = list(files)
    for file in known:
        for constant in file.constants:
            words = (f"{TUNING}{constant.constant.name}",)
            for parameter in parameters_of(constant):
                fields = override_fields(parameter, words, file.constants_known)
                said = _said(parameter, constant.constant.value, fields)
                for op in constant.ops:
                    yield op, parameter, words, file, said
    for file in known:
        for call in file.calls:
            for change in call.changes:
                fields = override_fields(change.parameter, change.words, file.constants_known)
                said = _said(change.parameter, change.words, fields)
                for op in call.ops:
                    yield op, change.parameter, change.words, file, said


def _said(parameter: str, words: Sequence[str], fields: Mapping[str, Any]) -> str:
    """A decision in as few words as a table has room for."""
    if "math_fidelity" in fields:
        return f"fidelity {MathFidelity(fields['math_fidelity']).cpp}"
    if fields.get("sharding") == "interleaved":
        return f"memory {fields['memory']}"
    if "program_config" in fields:
        return f"program {program_summary(config_of_text(fields['program_config']))}"
    return described(parameter, words)
