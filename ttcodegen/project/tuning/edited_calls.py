"""Calls of a program as generated and as edited in its C++."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import REQUIRED, CatalogueOp
from ttcodegen.dialects.ttnn.placement import TensorPlacement, given_placement
from ttcodegen.dialects.ttnn.program_configs import (
    PROGRAM_CONFIGS,
    CoreGrid,
    ProgramConfig,
    config_of_text,
)
from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.naming.modules import PRODUCT_WEIGHTS
from ttcodegen.optimizer.call import COMPUTE_CONFIG, LibraryCall, call_of
from ttcodegen.optimizer.candidates import sharded_as
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.overrides.meanings import TRANSPOSED, KnownCall, swapped
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.optimizer.overrides.replaced_calls import result_shape
from ttcodegen.project.manifest import CodeLines, Node
from ttcodegen.project.tuning.edited_files import EditedFile, MovedCall, ReplacedCalls
from ttcodegen.project.tuning.meanings import ACTIVATION_ATTRIBUTES, known_calls
from ttcodegen.project.tuning.override_entries import settings_of
from ttcodegen.project.tuning.report import described, parameters_of, rearranged
from ttcodegen.project.tuning.setting_values import override_fields, program_summary
from ttcodegen.project.tuning.statements import (
    ACTIVATIONS,
    NOTHING,
    TUNING,
    Constant,
    activation_named,
    joined,
)

_WEIGHTS = "weights"
"""Field of the data type of weights."""
TEXT = "text"
"""Mark of an op with an edit that is no decision."""


@dataclass
class _Edit:
    """User's decisions for one op."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields as in the overrides file."""
    activations: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Activations by attribute of the catalogue."""
    left: list[str] = field(default_factory=list[str])
    """Removed parameters."""
    words: list[str] = field(default_factory=list[str])


def words_of(files: Iterable[EditedFile]) -> dict[Node, str]:
    """Describes the user's decisions, by op."""
    known = list(files)
    edits, _ = _edits(known, _replaced(known))
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
    """Calls after the edits, without fused ones; of calls in place of others, the last one."""
    inner: dict[Node, tuple[LibraryCall, ...]] = field(
        default_factory=dict[Node, tuple[LibraryCall, ...]]
    )
    """Calls before the last one of those in place of others."""
    ops: dict[Node, CatalogueOp] = field(default_factory=dict[Node, CatalogueOp])
    names: list[CallNames] = field(default_factory=list[CallNames])
    """Op names of each function."""
    words: dict[Node, str] = field(default_factory=dict[Node, str])
    """Descriptions of the edits of each op; `text` for edits that are no decisions."""

    def __post_init__(self) -> None:
        replaced = _replaced(self.files)
        edits, gone = _edits(self.files, replaced)
        for function in module_of(self.binary).walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                self._collect(function, edits, gone, replaced)
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
                made = (*self.inner.get(node, ()), *([] if now is None else [now]))
                seconds = sum(map(model.seconds, made))
                found[node] = Gain(self.ops[node].name, model.seconds(call), seconds)
        return found

    def _collect(
        self,
        function: FuncOp,
        edits: Mapping[Node, _Edit],
        gone: Mapping[Node, Node],
        replaced: Mapping[Node, tuple[EditedFile, ReplacedCalls, int]],
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
            if node in replaced:
                calls = self._in_place(changed, *replaced[node])
                changed = calls[-1]
                self.inner[node] = tuple(calls[:-1])
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

    def _in_place(
        self, last: LibraryCall, file: EditedFile, group: ReplacedCalls, layer: int
    ) -> list[LibraryCall]:
        """Calls in place of others, for the cost model.

        Args:
            last: the generated call that gives the result.
            file: the file of the calls.
            group: the calls.
            layer: index of the layer, if several share them.
        """
        constants = file.constants_known
        nodes = [(ops[layer].function, ops[layer].name) for ops in group.ops_before]
        generated = [self.now.get(node) or self.generated.get(node) for node in nodes]
        generated[-1] = last
        if group.apart:
            return _taken_out(last, group.apart)
        before, after = known_calls(group.before, constants), known_calls(group.after, constants)
        if before is None or after is None or len(before) != len(generated):
            return [last]
        placed: dict[str, TensorPlacement] = {}
        for known, call in zip(before, generated, strict=True):
            names = [name for name in known.operands if name is not None]
            if call is None or len(names) != len(call.operands):
                return [last]
            for name, operand in zip(names, call.operands, strict=True):
                placed.setdefault(name, operand)
        attributes = {call.name: call.attributes for call in generated if call is not None}
        settings = {each.target or "": settings_of(each, constants) for each in group.after}
        found: list[LibraryCall] = []
        for number, known in enumerate(after):
            operands = tuple(placed[n] for n in known.operands if n is not None and n in placed)
            name = known.definition.short_name
            given = _attributes(known, operands, attributes.get(name, {}))
            is_last = number == len(after) - 1
            result = last.result
            if not is_last:
                shape = result_shape(known.definition, [o.shape for o in operands], given)
                result = result.interleaved().with_(shape=shape or result.shape)
            call = LibraryCall(name, operands, (result,), given)
            said = settings.get(known.result, {})
            found.append(self._edited(call, _Edit(fields=dict(said))))
            placed[known.result] = found[-1].result
        return found

    def _edited(self, call: LibraryCall, edit: _Edit) -> LibraryCall:
        """Applies the user's decisions to a call."""
        fields = edit.fields
        attributes = dict(call.attributes)
        result = call.result
        if "data_type" in fields:
            result = result.with_(data_type=DataType.from_mlir(fields["data_type"]))
        operands = call.operands
        if _WEIGHTS in fields and len(operands) > 1:
            weights = operands[1].with_(data_type=DataType.from_mlir(fields[_WEIGHTS]))
            operands = (operands[0], weights, *operands[2:])
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
        attributes.update(edit.activations)
        results = (result, *call.results[1:]) if call.results else ()
        return replace(call, operands=operands, results=results, attributes=attributes)


def _taken_out(call: LibraryCall, activation: str) -> list[LibraryCall]:
    """A call that no longer applies an activation, and the call of that."""
    attributes = {**call.attributes, "activation": None}
    for name in PROGRAM_CONFIGS:
        config = attributes.get(name)
        if isinstance(config, ProgramConfig) and config.activation is not None:
            attributes[name] = replace(config, **{"fused_activation": None})
    own = LibraryCall(activation, (call.result,), (call.result,), {})
    return [replace(call, attributes=attributes), own]


def _attributes(
    known: KnownCall, operands: Sequence[TensorPlacement], generated: Mapping[str, Any]
) -> dict[str, Any]:
    """Attributes of a call; settings of the generated call of the same op stay."""
    defaults = {
        spec.name: spec.default
        for spec in known.definition.attributes
        if spec.default is not REQUIRED
    }
    meaning = {name for name in defaults if name in ACTIVATION_ATTRIBUTES.values()}
    kept = {name: value for name, value in generated.items() if name not in meaning}
    given = {**defaults, **kept, **known.attributes}
    if TRANSPOSED in given:
        given["permutation"] = swapped(len(operands[0].shape), given[TRANSPOSED])
    return given


def _replaced(
    files: Iterable[EditedFile],
) -> dict[Node, tuple[EditedFile, ReplacedCalls, int]]:
    """Calls in place of others, by the op whose result they give, with the index of its layer."""
    found: dict[Node, tuple[EditedFile, ReplacedCalls, int]] = {}
    for file in files:
        for group in file.replaced:
            for layer, op in enumerate(group.ops_before[-1] if group.ops_before else ()):
                if all(len(ops) > layer for ops in group.ops_before):
                    found[op.function, op.name] = file, group, layer
    return found


def _edits(
    known: Sequence[EditedFile],
    replaced_calls: Mapping[Node, tuple[EditedFile, ReplacedCalls, int]],
) -> tuple[dict[Node, _Edit], dict[Node, Node]]:
    """Decisions by op, and ops without a call with those that do their work."""
    edits: dict[Node, _Edit] = {}
    gone: dict[Node, Node] = {}
    for op, parameter, words, file, said in _decided(known):
        edit = edits.setdefault((op.function, op.name), _Edit())
        if said not in edit.words:
            edit.words.append(said)
        if parameter == _WEIGHTS:
            edit.fields.update(_weights_of(words, file.constants_known))
        elif parameter in ACTIVATIONS:
            edit.activations[ACTIVATION_ATTRIBUTES[parameter]] = activation_named(words)
        elif joined(words) in NOTHING:
            edit.left.append(parameter)
        else:
            edit.fields.update(override_fields(parameter, words, file.constants_known))
    found = [pair for file in known for pair in rearranged(file)]
    replaced = {op for _, each in found if not isinstance(each, MovedCall) for op in each.ops}
    for said, decided in found:
        for op in decided.ops:
            is_moved_alone = isinstance(decided, MovedCall) and op not in replaced
            words = f"{said}, at the same cost" if is_moved_alone else said
            edits.setdefault((op.function, op.name), _Edit()).words.append(words)
    for (function, name), (_, group, layer) in replaced_calls.items():
        for op in (ops[layer] for ops in group.ops_before[:-1]):
            gone[op.function, op.name] = (function, name)
    for call in (call for file in known for call in file.calls):
        for fused, by in zip(call.fused_ops, call.ops, strict=False):
            gone[fused.function, fused.name] = (by.function, by.name)
            edit = edits.setdefault((fused.function, fused.name), _Edit())
            edit.words.append(f"applied by {by.name}")
    return edits, gone


def _weights_of(words: Sequence[str], constants: Mapping[str, Constant]) -> dict[str, Any]:
    """Data type that the weights of products have."""
    found = override_fields("dtype", words, constants).get("data_type")
    return {} if found is None else {_WEIGHTS: found}


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
            if constant.constant.name == PRODUCT_WEIGHTS:
                said = f"data type of weights {joined(constant.constant.value)}"
                for op in constant.ops:
                    yield op, _WEIGHTS, words, file, said
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
