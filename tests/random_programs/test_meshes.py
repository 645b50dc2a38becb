"""Random programs whose arguments are divided among the chips of a mesh: collectives and all, they
compute what one chip computes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp

from tests.random_programs.checking import failures_built_together, failures_in_numpy, generate
from tests.random_programs.choices import SeededChoices, pick
from tests.random_programs.recipes import RECIPES
from ttcodegen.dialects.core.datatypes import shape_of
from ttcodegen.dialects.ttcore.device import MeshShape, set_mesh
from ttcodegen.dialects.ttir.annotations import SHARDING, WantedSharding
from ttcodegen.ops.collectives.collectives import collectives
from ttcodegen.project.cpu_backend import CPUBackend
from ttcodegen.project.toolchain import Toolchain

MESHES: Sequence[MeshShape] = ((1, 2), (2, 2), (2, 4))
_RECIPES = RECIPES.keys() - collectives()
"""Ops between chips are random on one chip only: here the compiler makes them."""
_AXES = ((), (0,), (1,), (0, 1), (1, 0))


def divided(function: FuncOp, choices: SeededChoices) -> None:
    """Says of each argument how it is divided; what does not divide evenly stays whole."""
    assert function.arg_attrs is not None
    attributes: list[DictionaryAttr] = []
    for argument, given in zip(function.args, function.arg_attrs.data, strict=True):
        used: set[int] = set()
        sharding: list[tuple[int, ...]] = []
        for _ in shape_of(argument.type):
            axes = pick(choices, [axes for axes in _AXES if not used & set(axes)])
            used |= set(axes)
            sharding.append(axes)
        rank = len(sharding)
        is_open = tuple(choices.integer(0, 3) == 0 for _ in range(rank))
        wanted = WantedSharding(tuple(sharding), is_open).attribute()
        attributes.append(DictionaryAttr({**given.data, SHARDING: wanted}))
    function.arg_attrs = ArrayAttr(attributes)


def divided_module(seeds: Sequence[int], mesh: MeshShape) -> str:
    """The text of a module for a mesh with a random function for each seed."""
    functions: list[FuncOp] = []
    for seed in seeds:
        choices = SeededChoices(seed)
        functions.append(generate(choices, f"f{seed}", recipes=_RECIPES))
        divided(functions[-1], choices)
    module = ModuleOp(functions)
    set_mesh(module, mesh)
    return str(module) + "\n"


@pytest.mark.parametrize("seed", range(30))
def test_flatbuffer_agrees_with_one_chip(seed: int) -> None:
    assert failures_in_numpy(divided_module([seed], MESHES[seed % len(MESHES)])) == []


@pytest.mark.slow
def test_cpp_agrees_with_one_chip(toolchain: Toolchain, cpu_backend: CPUBackend) -> None:
    assert failures_built_together(divided_module(range(24), (2, 4)), toolchain) == {}
