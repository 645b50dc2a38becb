"""Legality of decisions by the library's rules for the shapes of their ops."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    CoreGrid,
    MatmulProgramConfig,
    ProgramConfig,
    config_of_text,
)
from ttcodegen.emission.manifest_entries import LoweredOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.optimizer.call import Candidate, LibraryCall
from ttcodegen.optimizer.candidates import CandidateGenerator
from ttcodegen.optimizer.cost.calls import CostModel
from ttcodegen.optimizer.optimize import placed_calls
from ttcodegen.optimizer.overrides.overrides import place
from ttcodegen.project.tuning.setting_values import override_fields
from ttcodegen.project.tuning.statements import (
    Constant,
)
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE

Refusal = tuple[str, str]
"""Reason for which an op cannot have a decision, and the nearest legal one; empty if unknown."""


@dataclass(frozen=True)
class Legality:
    """Rules for the calls of a program.

    Args:
        flatbuffer: the program; empty if unknown, which makes every decision legal.
        architecture: the card.
        measured: measured times of calls, by key.
    """

    flatbuffer: bytes
    architecture: str = DEFAULT_ARCHITECTURE
    measured: Mapping[str, float] = field(default_factory=dict[str, float])

    @cached_property
    def calls(self) -> Mapping[tuple[str, str], LibraryCall]:
        """Calls by their function and name."""
        from xdsl.dialects.func import FuncOp

        from ttcodegen.dialects.operations.operation import CatalogueOp
        from ttcodegen.flatbuffer.modules import module_of
        from ttcodegen.flatbuffer.reader import read_ttnn
        from ttcodegen.optimizer.call import call_of
        from ttcodegen.optimizer.overrides.overrides import CallNames

        if not self.flatbuffer:
            return {}
        try:
            module = module_of(read_ttnn(self.flatbuffer))
        except CompileError:
            return {}
        found: dict[tuple[str, str], LibraryCall] = {}
        for function in module.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                names = CallNames(function)
                for op in function.body.block.ops:
                    if isinstance(op, CatalogueOp) and op in names:
                        found[names.function, names[op]] = call_of(op)
        return found

    @cached_property
    def generator(self) -> CandidateGenerator:
        """Generator of candidates that the library was measured to accept."""
        chip = default_system(self.architecture).chip
        return CandidateGenerator(CostModel(chip, self.measured), True, placed_calls())

    def misfit(
        self,
        ops: Sequence[LoweredOp],
        parameter: str,
        words: Sequence[str],
        constants: Mapping[str, Constant],
    ) -> Refusal | None:
        """Reason for which ops cannot have a decision, and the nearest legal one; None if legal.

        Args:
            ops: the ops of a call.
            parameter: the decision's parameter.
            words: the value as C++ tokens.
            constants: the constants of tuning.hpp by name.
        """
        entry = override_fields(parameter, words, constants)
        for op in ops if entry.keys() & {"program_config", "memory", "data_type"} else ():
            call = self.calls.get((op.function, op.name))
            if call is None or not call.results:
                continue
            if "memory" in entry:
                refused = self._memory_misfit(call, entry)
            elif "data_type" in entry:
                refused = _type_misfit(call, DataType.from_mlir(entry["data_type"]))
            else:
                refused = self._program_misfit(call, config_of_text(entry["program_config"]))
            if refused is not None:
                return refused
        return None

    def _memory_misfit(self, call: LibraryCall, entry: Mapping[str, Any]) -> Refusal | None:
        if entry["sharding"] != "interleaved":
            grid = entry.get("grid", [1, 1])
            generator = self.generator
            if grid[0] <= generator.model.grid.columns and grid[1] <= generator.model.grid.rows:
                generator = generator.on(CoreGrid(*grid))
            places = [
                place(candidate.results[0])
                for candidate in self._candidates(generator, call)
                if candidate.results
            ]
            if entry in places or not places:
                return None
            alike = [each for each in places if each["sharding"] == entry["sharding"]] or places
            return generator.rule(call), f"the nearest legal one is {json.dumps(alike[0])}"
        placed = call.result.with_(
            buffer_type=entry["memory"], memory_layout="interleaved", shards=None
        )
        return self._room(replace(call, results=(placed, *call.results[1:])))

    def _room(self, call: LibraryCall) -> Refusal | None:
        model = self.generator.model
        taken = model.cost(call).l1_bytes
        if taken <= model.speed.usable_l1 or call.result.buffer_type == "dram":
            return None
        reason = (
            f"it takes {taken // 1024} KiB of the {model.speed.usable_l1 // 1024} KiB of L1 that "
            "each core has"
        )
        return reason, "the nearest legal one is ttnn::DRAM_MEMORY_CONFIG"

    def _program_misfit(self, call: LibraryCall, config: ProgramConfig) -> Refusal | None:
        reason = config.misfit()
        if reason is None:
            interleaved = replace(call, operands=tuple(map(_interleaved, call.operands)))
            reason = self.generator.misfit(interleaved, config)
        if reason is None:
            return None
        nearest = self._nearest_program(call, config)
        if nearest is None:
            return reason, "the library chooses one if none is given"
        changed = [
            f"{nearest.spelled.get(each.name, each.name)} = {getattr(nearest, each.name)}"
            for each in fields(nearest)
            if each.name != "fused_activation"
            and getattr(nearest, each.name) != getattr(config, each.name)
        ]
        return reason, f"the nearest legal one has {', '.join(changed)}"

    def _nearest_program(
        self, call: LibraryCall, config: ProgramConfig
    ) -> MatmulProgramConfig | None:
        """Legal program config of the same type that differs least."""
        found: list[tuple[int, str, MatmulProgramConfig]] = []
        grids = [self.generator]
        grid = getattr(config, "compute_with_storage_grid_size", None)
        whole = self.generator.model.grid
        if isinstance(grid, CoreGrid) and grid.columns <= whole.columns and grid.rows <= whole.rows:
            grids.append(self.generator.on(grid))
        for generator in grids:
            for candidate in self._candidates(generator, call):
                for value in candidate.attributes.values():
                    if isinstance(value, MatmulProgramConfig) and type(value) is type(config):
                        found.append((_distance(value, config), value.text, value))
        return min(found)[2] if found else None

    def _candidates(self, generator: CandidateGenerator, call: LibraryCall) -> list[Candidate]:
        call = replace(call, operands=tuple(map(_interleaved, call.operands)))
        return list(generator.of(call, [False] * len(call.operands)))


def _type_misfit(call: LibraryCall, wanted: DataType) -> Refusal | None:
    """Reason for which a result cannot have a data type, by measurements of the library."""
    if not wanted.is_block_float or call.result.layout is Layout.TILE:
        return None
    nearest = f"the nearest legal one is ttnn::DataType::{call.result.data_type.cpp}"
    return "its result is in rows, and block floats are in tiles alone", nearest


def _interleaved(placement: TensorPlacement) -> TensorPlacement:
    return placement.interleaved()


def _distance(one: ProgramConfig, other: ProgramConfig) -> int:
    """Distance of two configs: differing fields, sizes weighted by their ratio."""
    total = 0
    for each in fields(one):
        left, right = getattr(one, each.name), getattr(other, each.name)
        if left == right:
            continue
        is_size = type(left) is int and type(right) is int and left and right
        total += max(left, right) // min(left, right) if is_size else 8
    return total
