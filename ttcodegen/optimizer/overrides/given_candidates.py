"""Candidates and data types that follow overrides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig, MathFidelity
from ttcodegen.dialects.operations.operation import CatalogueOp
from ttcodegen.dialects.ttcore.shards import SHARDED, CoreRange, Layout, Memory
from ttcodegen.dialects.ttcore.tile import TILE_SIDE
from ttcodegen.dialects.ttnn.placement import (
    TensorPlacement,
    given_placement,
    placed_type,
    placement_of,
)
from ttcodegen.dialects.ttnn.program_configs import (
    PROGRAM_CONFIGS,
    Conv2dConfig,
    CoreGrid,
    CoreSet,
    LayerNormSharded,
    MatmulProgramConfig,
    ProgramConfig,
    Word,
    config_of_text,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.definition import TTNNDefinition, has_trait
from ttcodegen.ops.core.traits import Trait
from ttcodegen.ops.dialects import ttnn_op_classes
from ttcodegen.ops.elementwise.activations import activation_name
from ttcodegen.optimizer.call import COMPUTE_CONFIG, Candidate, LibraryCall, interleaved
from ttcodegen.optimizer.candidates import CandidateGenerator, sharded_as
from ttcodegen.optimizer.overrides.overrides import (
    PLACES,
    Entry,
    FunctionOverrides,
    is_fused,
    place,
    refused_entry,
)
from ttcodegen.optimizer.overrides.refusals import Refusals
from ttcodegen.optimizer.programs.attention_and_norms import norm_misfit
from ttcodegen.optimizer.rewrites import TYPES, narrow
from ttcodegen.transforms.const_eval import constant_values
from ttcodegen.transforms.rewriting import body_of, set_type


class GivenChoices:
    """Overrides of a function, matched against the available candidates."""

    def __init__(
        self, overrides: FunctionOverrides, generator: CandidateGenerator, refusals: Refusals
    ) -> None:
        self._overrides = overrides
        self._refusals = refusals
        self._generator = generator
        """Generator of all candidates, sharded ones also at level 1: overrides may request them."""

    def concern(self, op: CatalogueOp) -> bool:
        """Returns whether there is an override of the call that is not refused."""
        return self._overrides[op] is not None

    def refuse(self, op: CatalogueOp, error: CompileError) -> None:
        """Records the refusal of a call's override, which no longer concerns it."""
        self._refusals.add(error, self._overrides.entries_of(op))
        self._overrides.drop(op)

    def candidates(
        self, op: CatalogueOp, call: LibraryCall, fixed: Sequence[bool]
    ) -> list[Candidate]:
        """Returns the candidates that follow the override, from the operand placements of `call`.

        Raises:
            CompileError: if there are none, with ttnn's rule and the legal placements; or if the
                entry names another op or an invalid program config.
        """
        entry = self._overrides[op]
        assert entry is not None
        self._check(op, entry)
        config = self._config(op, entry)
        placed_operands = list(self._operand_placements(op, call, entry, fixed, config))
        # A convolution reshards its image itself, and sharded operands determine the placements of
        # others: operands are resharded only if no candidate follows the override without that.
        sharded = any(operand.shards is not None for operand in call.operands)
        first = [placed_operands[:1]] if call.name == "conv2d" or sharded else []
        refused: CompileError | None = None
        for operands in (*first, placed_operands):
            try:
                following_candidates = self._following(op, call, entry, fixed, config, operands)
            except CompileError as error:
                refused = error
            else:
                return [
                    _with_override(op, candidate, entry, config)
                    for candidate in following_candidates
                ]
        assert refused is not None
        raise refused

    def _following(
        self,
        op: CatalogueOp,
        call: LibraryCall,
        entry: Entry,
        fixed: Sequence[bool],
        config: ProgramConfig | None,
        placed_operands: Sequence[tuple[TensorPlacement, ...]],
    ) -> list[Candidate]:
        """Returns the candidates that follow an entry, with one of these operand placements."""
        offered: list[Candidate] = []
        misfit = self._generator.misfit(call, config) if config is not None else None
        if config is not None and self._generator.keeps_configuration(call):
            if config not in op.parameters().values():
                raise self._refusal(op, "its configuration follows from its shapes", call, [])
            config = None
        for operands in placed_operands:
            variant = replace(call, operands=operands)
            for candidate in self._candidates(variant, fixed, entry, config):
                if isinstance(config, LayerNormSharded):
                    misfit = norm_misfit(candidate.operands[0], config)
                    if misfit is not None:
                        continue
                if (
                    self._keeps_operands(candidate, call, fixed, operands, entry)
                    and candidate not in offered
                ):
                    offered.append(candidate)
        impossible = self._impossible_reason(entry)
        if not offered:
            of_operands = (
                self._impossible_reason(each) for each in entry.get("operands", {}).values()
            )
            reason = misfit or next(filter(None, (*of_operands, impossible)), None)
            raise self._refusal(op, reason or "its operands cannot be brought there", call, [])
        following_candidates = offered
        for field in PLACES:
            if field not in entry or not op.results:
                continue
            kept = [
                candidate
                for candidate in following_candidates
                if _result_fields(candidate).get(field) == entry[field]
            ]
            if not kept:
                reason = f"its result has no '{field}': {json.dumps(entry[field])}"
                raise self._refusal(op, impossible or reason, call, following_candidates)
            following_candidates = kept
        return following_candidates

    def _impossible_reason(self, entry: Entry) -> str | None:
        """Returns why no tensor can have the placement of an entry, or None."""
        shard, grid = entry.get("shard"), entry.get("grid")
        sharding, cores = entry.get("sharding"), self._generator.model.grid
        if sharding == "interleaved":
            for field in ("shard", "grid"):
                if field in entry:
                    return f"'{field}' is given for an interleaved tensor, which has no shards"
        elif sharding is not None and entry.get("memory") == "dram":
            return "shards are in L1, but for those of weights"
        in_tiles = entry.get("layout", "tile") == "tile"
        if shard is not None and in_tiles and any(size % TILE_SIDE for size in shard):
            return (
                f"'shard': {json.dumps(shard)} is no multiple of {TILE_SIDE}x{TILE_SIDE}, and "
                "shards hold whole tiles"
            )
        if grid is not None and (grid[0] > cores.columns or grid[1] > cores.rows):
            return (
                f"'grid': {json.dumps(grid)} is more than the {cores.columns}x{cores.rows} cores "
                "of the chip"
            )
        return None

    def left_alone(self, op: CatalogueOp, call: LibraryCall) -> None:
        """Raises CompileError if the override of a call without candidates would change it."""
        entry = self._overrides[op]
        if entry is None or not call.results:
            return
        self._check(op, entry)
        placed = _result_fields(Candidate((), call.results))
        if any(entry.get(field, placed.get(field)) != placed.get(field) for field in PLACES):
            raise CompileError(
                f"'{self._overrides.names[op]}' ({op.definition.short_name}) stays as it is: it is "
                "computed once, of weights alone, or on the host",
                op,
                remedy=f"its result is at {json.dumps(placed)}",
            )

    def no_room(self, op: CatalogueOp, room: int) -> CompileError:
        """Returns the error if no requested candidate fits into L1."""
        return CompileError(
            f"'{self._overrides.names[op]}' ({op.definition.short_name}) cannot be made as its "
            f"override says: its tensors and circular buffers take more than the {room // 1024} "
            "KiB of L1 that each core has",
            op,
            remedy="keep its result or its operands in DRAM, or distribute them over more cores",
        )

    def _check(self, op: CatalogueOp, entry: Entry) -> None:
        name, made = self._overrides.names[op], op.definition.short_name
        if entry.get("op", made) != made:
            raise CompileError(f"'{name}' is made by '{made}', not '{entry['op']}'", op)
        if entry.get("fuse") is True and not is_fused(op):
            raise CompileError(
                f"'{name}' ({made}) has nothing fused into it",
                op,
                remedy="matmuls and convolutions take relu, gelu, silu or sigmoid, where their "
                "result has no other use",
            )
        takes = {spec.name for spec in op.definition.attributes}
        if "math_fidelity" in entry and COMPUTE_CONFIG not in takes:
            raise CompileError(
                f"'{name}' ({made}) takes no fidelity",
                op,
                remedy="products, convolutions, normalisations, softmax and attention do",
            )
        for index in entry.get("operands", {}):
            if int(index) >= len(op.operands):
                raise CompileError(
                    f"'{name}' ({made}) has no operand {index}",
                    op,
                    remedy=f"there are 0 to {len(op.operands) - 1}",
                )

    def _config(self, op: CatalogueOp, entry: Entry) -> ProgramConfig | None:
        name = self._overrides.names[op]
        attribute_names = [
            spec for spec in op.definition.attributes if spec.name in PROGRAM_CONFIGS
        ]
        text, of_convolution = entry.get("program_config"), entry.get("conv2d_config")
        if text is None and of_convolution is None:
            return None
        if not attribute_names:
            made = op.definition.short_name
            raise CompileError(f"'{name}' ({made}) takes no program configuration", op)
        (spec,) = attribute_names
        if text is None and spec.name != "conv2d_config":
            raise CompileError(
                f"'{name}' ({op.definition.short_name}) is no convolution, and has no "
                "'conv2d_config'",
                op,
                remedy="'program_config' has its program configuration",
            )
        try:
            if text is not None:
                config = config_of_text(text)
            else:
                grid = self._generator.model.grid
                config = _changed_conv2d_config(op.parameter(spec.name), of_convolution or {}, grid)
            spec.kind.decode(spec.kind.encode(config))
        except (ValueError, TypeError) as error:
            reason = str(error) or (
                f"it should be {spec.kind.expected}, not {text or 'that of a convolution'}"
            )
            raise CompileError(f"the override of '{name}': {reason}", op) from error
        own = activation_name(op.parameters())
        named = config.activation.op_type if config.activation is not None else None
        # A matmul keeps its activation if the config names none.
        if named != own and (named is not None or isinstance(config, Conv2dConfig)):
            raise CompileError(
                f"the override of '{name}' changes what the program computes: its activation",
                op,
                remedy='"fuse": false keeps an activation apart',
            )
        return config

    def _operand_placements(
        self,
        op: CatalogueOp,
        call: LibraryCall,
        entry: Entry,
        fixed: Sequence[bool],
        config: ProgramConfig | None,
    ) -> Iterator[tuple[TensorPlacement, ...]]:
        """Yields placements of the operands: their own, requested ones, or that of the result.

        A sharded result or a sharded norm config may require operands with the same shards."""
        requested = {int(index): wanted for index, wanted in entry.get("operands", {}).items()}
        # A value that occurs twice as an operand has one placement.
        values = [value for value in op.operands if given_placement(value) is not None]
        first = [values.index(value) for value in values]
        for index in list(requested):
            requested.update(
                {i: requested[index] for i, f in enumerate(first) if f == first[index]}
            )
        sharding = entry.get("sharding", "interleaved")
        choices: list[list[TensorPlacement]] = []
        for index, operand in enumerate(call.operands):
            if index in requested:
                choices.append(self._matching_placements(operand, requested[index]))
            elif sharding != "interleaved" and not fixed[index] and op.results:
                beside = self._matching_placements(
                    operand, {f: entry[f] for f in PLACES if f in entry}
                )
                alike = operand.shape == call.result.shape
                choices.append([operand, *(beside if alike else [])])
            elif isinstance(config, LayerNormSharded) and index == 0 and not fixed[index]:
                sharded = self._matching_placements(operand, {})
                choices.append([operand, *(p for p in sharded if p.shards is not None)])
            else:
                choices.append([operand])
        for operands in product(*choices):
            if all(operands[i] == operands[f] for i, f in enumerate(first)):
                yield operands

    def _matching_placements(
        self, operand: TensorPlacement, wanted: Entry
    ) -> list[TensorPlacement]:
        """Returns the placements that an entry allows; for an empty entry, all but the current."""
        grid = self._generator.model.grid
        if operand.memory is Memory.HOST:
            return [operand]
        places = [interleaved(operand, buffer) for buffer in ("dram", "l1")]
        # A grid may be the bounding box of cores that fill it row by row, the last row partly.
        boxes = dict.fromkeys((wanted.get("grid") and tuple(wanted["grid"]), None))
        for kind, box in product(SHARDED, boxes):
            found = sharded_as(operand, kind, grid, box, wanted.get("shard"))
            if found is not None and found not in places:
                places.append(found)
        kept = [
            found
            for found in places
            if all(place(found).get(field) == value for field, value in wanted.items())
        ]
        return kept if wanted else [found for found in kept if found != operand]

    def _candidates(
        self,
        call: LibraryCall,
        fixed: Sequence[bool],
        entry: Entry,
        config: ProgramConfig | None,
    ) -> Iterator[Candidate]:
        generator, whole = self._generator, self._generator.model.grid
        if "grid" in entry:
            columns, rows = entry["grid"]
            if columns <= whole.columns and rows <= whole.rows:
                generator = generator.on(CoreGrid(columns, rows))
        if isinstance(config, MatmulProgramConfig):
            yield from generator.configured(call, config)
        else:
            yield from generator.of(call, fixed)

    def _keeps_operands(
        self,
        candidate: Candidate,
        call: LibraryCall,
        fixed: Sequence[bool],
        operands: Sequence[TensorPlacement],
        entry: Entry,
    ) -> bool:
        """Returns whether a candidate keeps the placements of fixed and requested operands."""
        for index, (wanted, found) in enumerate(
            zip(candidate.operands, call.operands, strict=True)
        ):
            # Const-eval weights may move to DRAM shards: that runs once.
            to_banks = wanted.buffer_type == found.buffer_type == "dram" and wanted.shards
            if fixed[index] and wanted != found and not to_banks:
                return False
            if str(index) in entry.get("operands", {}) and wanted != operands[index]:
                return False
        return True

    def _refusal(
        self, op: CatalogueOp, reason: str, call: LibraryCall, candidates: Sequence[Candidate]
    ) -> CompileError:
        legal = [
            json.dumps(_result_fields(candidate)) for candidate in candidates if candidate.results
        ]
        return CompileError(
            f"'{self._overrides.names[op]}' ({op.definition.short_name}) cannot be made as its "
            f"override says: {reason}; {self._generator.rule(call)}",
            op,
            remedy="the library takes " + "; ".join(dict.fromkeys(legal)) if legal else None,
        )


def _result_fields(candidate: Candidate) -> dict[str, Any]:
    if not candidate.results:
        return {}
    return {**place(candidate.results[0]), "layout": candidate.results[0].layout.value}


def _changed_conv2d_config(
    current: ProgramConfig | None, given: Entry, cores: CoreGrid
) -> Conv2dConfig:
    """Returns the conv2d config with the fields of an override.

    Raises ValueError for another activation, too large grids and configs the library refuses."""
    config = current if isinstance(current, Conv2dConfig) else Conv2dConfig()
    changes: dict[str, Any] = {}
    for field, value in given.items():
        if field == "activation":
            own = config.activation.op_type if config.activation is not None else None
            if value != own:
                raise ValueError(f"its activation is {own or 'none'}, not {value or 'none'}")
        elif field == "core_grid":
            columns, rows = value
            if columns > cores.columns or rows > cores.rows:
                raise ValueError(f"the chip has {cores.columns}x{cores.rows} cores")
            changes[field] = CoreSet((CoreRange(0, 0, columns - 1, rows - 1),))
        else:
            changes[field] = Word(value) if isinstance(value, str) else value
    made = replace(config, **changes)
    if (misfit := made.misfit()) is not None:
        raise ValueError(misfit)
    return made


def _with_override(
    op: CatalogueOp, candidate: Candidate, entry: Entry, config: ProgramConfig | None
) -> Candidate:
    """Returns a candidate with the config and the math fidelity of an override."""
    attributes = dict(candidate.attributes)
    attribute_names = {spec.name for spec in op.definition.attributes}
    if config is not None and not isinstance(config, MatmulProgramConfig):
        (name,) = attribute_names & set(PROGRAM_CONFIGS)
        attributes[name] = config
    fidelity = entry.get("math_fidelity")
    if fidelity is not None and COMPUTE_CONFIG in attribute_names:
        compute = attributes.get("compute_config") or op.parameter("compute_config")
        compute = compute or ComputeConfig(math_approx_mode=False)
        attributes["compute_config"] = replace(compute, math_fidelity=MathFidelity(fidelity))
    return replace(candidate, attributes=attributes)


# Data types of results and weights in overrides.

_FLOATS = ("bf16", "f32", "bfp_bf8", "bfp_bf4")


def give_data_types(function: FuncOp, overrides: FunctionOverrides, refusals: Refusals) -> None:
    """Sets the result data types of overrides; those that a ttnn call does not support are refused.

    Matmuls use the new data type; other users get the previous one by a cast.
    """
    for op, entry in overrides.items():
        if (name := entry.get("data_type")) is None:
            continue
        placement = placement_of(op.results[0])
        if placement.data_type.mlir != name:
            with refused_entry(overrides, op, refusals):
                _check(overrides.names[op], op, name)
                _set_data_type(body_of(function), op, DataType.from_mlir(name))


def give_weight_types(function: FuncOp, overrides: FunctionOverrides, refusals: Refusals) -> None:
    """Converts weights of matmuls to the block floats of overrides.

    Other calls than matmuls with const-eval weights are refused.
    """
    requested = [(op, entry["weights"]) for op, entry in overrides.items() if "weights" in entry]
    constants = constant_values(function) if requested else set[SSAValue]()
    made: dict[str, dict[SSAValue, SSAValue]] = {name: {} for name in TYPES}
    for op, name in requested:
        is_matmul = has_trait(op, Trait.MATRIX_PRODUCT)
        if is_matmul and narrow(op, TYPES[name], constants, made[name]):
            continue
        with refused_entry(overrides, op, refusals):
            raise CompileError(
                f"'{overrides.names[op]}' ({op.definition.short_name}) has no weights that could "
                f"become {name}",
                op,
                remedy="products have them whose right factor depends on weights alone, of bf16 "
                "or f32, in tiles",
            )


def _check(called: str, op: CatalogueOp, name: str) -> None:
    made, placement = op.definition.short_name, placement_of(op.results[0])
    definition, current = op.definition, placement.data_type.mlir
    takes = isinstance(definition, TTNNDefinition) and any(
        rule.data_type == "attribute" for rule in definition.result_rules
    )
    legal = _FLOATS if takes and placement.data_type.is_float else (current,)
    if placement.layout is not Layout.TILE:
        legal = tuple(word for word in legal if not word.startswith("bfp"))
    if name not in legal:
        rule = (
            "the library's call takes no data type: it follows from its operands"
            if not takes
            else "numbers stay floats or integers, and block floats need tiles"
        )
        raise CompileError(
            f"'{called}' ({made}) cannot give {name}: {rule}",
            op,
            remedy=f"it gives {', '.join(legal)}",
        )


def _set_data_type(block: Block, op: CatalogueOp, data_type: DataType) -> None:
    result = op.results[0]
    before = placement_of(result)
    uses = list(result.uses)
    set_type(result, placed_type(before.with_(data_type=data_type)))
    op.properties["dtype"] = op.definition.attribute("dtype").kind.encode(data_type)
    others = [use for use in uses if not _is_matmul_operand(use.operation, use.index)]
    if not others:
        return
    following = op.next_op
    assert following is not None

    builder = OpBuilder(ttnn_op_classes(), lambda made: block.insert_op_before(made, following))
    builder.origin = op
    restored = builder.emit("composite_to_layout", [result], placed_type(before))
    for use in others:
        use.operation.operands[use.index] = restored


def _is_matmul_operand(op: object, index: int) -> bool:
    return isinstance(op, CatalogueOp) and has_trait(op, Trait.MATRIX_PRODUCT) and index in (0, 1)
