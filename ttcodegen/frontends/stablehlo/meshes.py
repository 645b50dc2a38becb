"""Mesh and shardings of a StableHLO module, and attributes of its arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ttcodegen.dialects.core.datatypes import element_of, shape_of
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, groups_along, require_possible
from ttcodegen.dialects.ttcore.dialect import ArgumentType, ArgumentTypeAttr
from ttcodegen.dialects.ttir.annotations import SHARDING, Sharding, WantedSharding
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.foundation.lazy_numpy import np
from ttcodegen.frontends.stablehlo.reading.names import argument_name, is_meaningful, is_weight_name
from ttcodegen.frontends.stablehlo.reading.operations import StableHLOOp
from ttcodegen.systems.cards import MOST_CHIPS

# The mesh that a module of StableHLO is for, and how its shardings divide tensors among the
# chips.
#
# Shardy names the axes of a mesh (https://openxla.org/shardy/sharding_representation); GSPMD
# gives the number of parts of each dimension, and which device has which. Both are read here as
# the axes of a mesh of rows and columns that each dimension of a tensor is divided along.

_FRONTEND = "mhlo.frontend_attributes"
_DEVICES = re.compile(
    r"devices=\[([\d,]*)\](?:<=\[([\d,]*)\](?:T\(([\d,]*)\))?|([\d,]+))"
    r"(\s*last_tile_dim_replicate)?"
)
_MESH_TEXT = re.compile(r"mesh<\[([^\]]*)\]")
_DEVICE_IDS = re.compile(r"device_ids\s*=\s*\[([^\]]*)\]")
_SHARDING_TEXT = re.compile(r"<\s*@\"?[\w.\-$]+\"?\s*,\s*\[([^\[\]]*)\]([^<>]*)")
_UNREDUCED = re.compile(r"unreduced\s*=\s*\{\s*\"")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


@dataclass(frozen=True)
class NamedMesh:
    """Mesh of a module, with the names of Shardy's axes."""

    shape: MeshShape = ONE_CHIP
    axes: Mapping[str, int] | None = None
    """Mesh axis of each name, -1 for an axis of size 1."""
    replicas: int = 1
    """Number of program replicas; the devices of each share its work."""

    @property
    def chips(self) -> int:
        """Number of devices in the mesh."""
        return prod(self.shape)

    def named(self, text: str, only: Sequence[str] | None = None) -> Sharding:
        """Sharding of a Shardy text such as `{"x"}, {"y", ?}`, restricted to the axes in `only`."""
        dimensions: list[tuple[int, ...]] = []
        for group in re.findall(r"\{([^{}]*)\}", text):
            if re.search(r'"\s*:\s*\(', group):
                raise ValueError("axes that are divided again are not supported")
            names = re.findall(r'"([^"]*)"', group)
            axes = self.axes or {}
            unknown = [name for name in names if name not in axes]
            if unknown:
                raise ValueError(f"the mesh has no axis '{unknown[0]}'")
            chosen = [axes[name] for name in names if only is None or name in only]
            dimensions.append(tuple([axis for axis in chosen if axis >= 0]))
        return tuple(dimensions)

    def wanted(self, attribute: Attribute | None, rank: int) -> WantedSharding | None:
        """Sharding requested by an attribute of Shardy or GSPMD or its text.

        None if it requests none, or one that mesh rows and columns cannot express.
        """
        text = attribute.data if isinstance(attribute, StringAttr) else str(attribute)
        try:
            if (written := _SHARDING_TEXT.search(text)) is not None:
                (listed, *_) = shardings_in(text)
                groups = re.findall(r"\{([^{}]*)\}", written[1])
                found, is_open = self.named(listed), ["?" in group for group in groups]
            elif "manual" in text or not (text.startswith("{replicated}") or "devices=" in text):
                return None
            else:
                found, is_open = self.tiled(text, rank), [False] * rank
        except ValueError:
            return None
        if len(found) != rank:
            return None
        return WantedSharding(found, tuple(is_open))

    def tiled(self, text: str, rank: int) -> Sharding:
        """Sharding of a GSPMD text such as `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`."""
        match = _DEVICES.search(text)
        if match is None or self.chips == 1:
            return ((),) * rank
        if prod(_numbers(match[1])) > MOST_CHIPS or prod(_numbers(match[2] or "")) > MOST_CHIPS:
            raise ValueError(f"the sharding '{text}' divides among more chips than any system has")
        sizes, chips_of_tiles = _assignment(match)
        if len(sizes) < rank:
            raise ValueError(f"the sharding '{text}' divides {len(sizes)} dimensions of {rank}")
        if sorted(chips_of_tiles.flat) != list(range(self.chips)):
            raise ValueError(
                f"the sharding '{text}' does not name each of {self.chips} devices once"
            )
        tile_of_chip = np.empty((self.chips, len(sizes)), dtype=np.int64)
        for tile, chip in np.ndenumerate(chips_of_tiles):
            tile_of_chip[int(chip)] = tile
        dimensions: list[tuple[int, ...]] = []
        for dim in range(rank):
            axes = self._axes_of(tile_of_chip[:, dim].tolist())
            if axes is None:
                raise ValueError(
                    f"the sharding '{text}' does not divide along rows and columns of the mesh of "
                    f"{self.shape[0]}x{self.shape[1]}"
                )
            dimensions.append(axes)
        return tuple(dimensions)

    def _axes_of(self, tiles: list[int]) -> tuple[int, ...] | None:
        """Mesh axes, major first, that assign these tiles of a dimension to the devices."""
        several = [axis for axis in (0, 1) if self.shape[axis] > 1]
        for count in range(len(several) + 1):
            for axes in permutations(several, count):
                found = [_place(place, self.shape, axes) for place in np.ndindex(*self.shape)]
                if found == tiles:
                    return axes
        return None


def _place(place: Sequence[int], shape: MeshShape, axes: Sequence[int]) -> int:
    index = 0
    for axis in axes:
        index = index * shape[axis] + place[axis]
    return index


def _assignment(match: re.Match[str]) -> tuple[list[int], np.ndarray]:
    """Tile counts of each dimension, and the device of each tile."""
    sizes = _numbers(match[1])
    if match[4]:
        order = np.array(_numbers(match[4]))
    else:
        dims = _numbers(match[2])
        order = np.arange(prod(dims)).reshape(dims)
        if match[3]:
            order = order.transpose(_numbers(match[3]))
    return sizes, order.reshape(sizes)


# The mesh of a module


def mesh_of_module(operations: Sequence[Operation]) -> NamedMesh:
    """Returns the mesh that a module is written for.

    Raises:
        CompileError: if it has more than two dimensions or more devices than any system, or if the
            module has meshes of different shapes.
    """
    found: dict[tuple[str, ...], NamedMesh] = {}
    guess, replicas = ONE_CHIP, 1
    for operation in operations:
        for op in operation.walk():
            replicas = max(replicas, _count(op, "mhlo.num_replicas"))
            if isinstance(op, StableHLOOp) and op.name == "sdy.mesh":
                axes = _axes_of_op(op)
                if prod(axes.values()) > 1:
                    _require_order(op)
                    found[tuple(map(str, axes.items()))] = _to_named_mesh(axes, op)
            else:
                guess = max(guess, _implied_mesh(op), key=_preference)
    if len({mesh.shape for mesh in found.values()}) > 1:
        raise CompileError(
            "the module has meshes of several shapes, and a program runs on one",
            operations[0],
            remedy="give all shardings for one mesh",
        )
    names: dict[str, int] = {}
    for mesh in found.values():
        for name, axis in (mesh.axes or {}).items():
            if names.setdefault(name, axis) != axis:
                raise CompileError(
                    f"the axis '{name}' is another one in another mesh", operations[0]
                )
    shape = next(iter(found.values())).shape if found else guess
    for chips in (shape, (1, replicas)):
        require_possible(chips, operations[0] if operations else None)
    return NamedMesh(shape, names, replicas)


def _count(op: Operation, name: str) -> int:
    """Partition or replica count that a module declares, 1 by default."""
    count = op.attributes.get(name)
    return max(count.value.data, 1) if isinstance(count, IntegerAttr) else 1


def _preference(shape: MeshShape) -> tuple[int, int]:
    """Sort key of implied meshes: device count, then two dimensions before one."""
    return prod(shape), min(shape)


def _axes_of_op(op: StableHLOOp) -> dict[str, int]:
    axes = op.given.get("axes")
    if axes is None:
        axes = _axes_in(str(op.properties.get("mesh", op.attributes.get("mesh", ""))))
    return {str(name): int(size) for name, size in cast("dict[str, int]", axes).items()}


def _require_order(op: StableHLOOp) -> None:
    """Raises CompileError if the device ids of a mesh are not 0, 1, 2, ... in order."""
    written = _DEVICE_IDS.search(str(op.properties.get("mesh", op.attributes.get("mesh", ""))))
    ids = op.ints("device_ids", _numbers(written[1]) if written is not None else [])
    if ids != list(range(len(ids))):
        raise CompileError(
            "the mesh has its devices in another order than that of their numbers",
            op,
            remedy="leave device_ids out; the order of chips comes from the mesh device",
        )


def _axes_in(text: str) -> dict[str, int]:
    """Axis sizes by name from `mesh<["x"=2, "y"=4]>`."""
    match = _MESH_TEXT.search(text)
    found = re.findall(r'"?([\w.\-]+)\\?"?\s*=\s*(\d+)', match[1]) if match is not None else []
    return {name: int(size) for name, size in found}


def _to_named_mesh(axes: Mapping[str, int], op: Operation) -> NamedMesh:
    several = [name for name, size in axes.items() if size > 1]
    if len(several) > 2:
        shape = "x".join(str(axes[name]) for name in several)
        raise CompileError(
            f"a mesh of {shape} devices has {len(several)} dimensions, and those of the systems "
            "have two",
            op,
            remedy="join axes, so that the mesh has rows and columns",
        )
    places = {name: -1 for name in axes}
    if len(several) == 2:
        places[several[0]], places[several[1]] = 0, 1
    elif several:
        names = list(axes)
        places[several[0]] = names.index(several[0]) if len(names) == 2 else 1
    rows = prod(axes[name] for name, axis in places.items() if axis == 0)
    columns = prod(axes[name] for name, axis in places.items() if axis == 1)
    require_possible((rows, columns), op)
    return NamedMesh((rows, columns), places)


def _implied_mesh(op: Operation) -> MeshShape:
    """Mesh implied by an operation that names none."""
    if isinstance(op, StableHLOOp):
        groups = op.get("replica_groups")
        if (shape := getattr(groups, "shape", None)) is not None and len(shape) == 2:
            if prod(shape) > MOST_CHIPS:
                # Do not expand a splat that is refused anyway.
                return 1, prod(shape)
            return _mesh_of_groups([[int(chip) for chip in group] for group in groups])
        pairs = op.get("source_target_pairs")
        if getattr(pairs, "size", 0):
            return 1, int(pairs.max()) + 1
    found = ONE_CHIP
    if isinstance(op, ModuleOp):
        found = 1, _count(op, "mhlo.num_partitions") * _count(op, "mhlo.num_replicas")
        for text in _texts(op.attributes.get(_FRONTEND)):
            axes = _axes_in(text.replace("\\", ""))
            found = max(found, _to_named_mesh(axes, op).shape, key=_preference)
    for text in _sharding_texts(op):
        found = max(found, _mesh_of_tiles(text), key=_preference)
    return found


def _mesh_of_groups(groups: list[list[int]]) -> MeshShape:
    """Mesh whose rows or columns the groups are; a single row for other groups."""
    count, size = len(groups), len(groups[0]) if groups else 1
    for shape, axis in (((count, size), 1), ((size, count), 0)):
        if groups_along(shape, axis) == groups:
            return shape if min(shape) > 1 else (1, prod(shape))
    return 1, max((chip for group in groups for chip in group), default=0) + 1


def _mesh_of_tiles(text: str) -> MeshShape:
    """Mesh that a GSPMD sharding divides over."""
    match = _DEVICES.search(text)
    if match is None:
        return ONE_CHIP
    dims = [size for size in _numbers(match[2] or "") if size > 1]
    if len(dims) == 2:
        return dims[0], dims[1]
    tiles = [size for size in _numbers(match[1]) if size > 1]
    chips = prod(_numbers(match[1]))
    if len(tiles) == 2 and not match[3] and not match[4]:
        return tiles[0], tiles[1]
    return 1, chips


def _sharding_texts(op: Operation) -> Iterator[str]:
    sharding = op.attributes.get("mhlo.sharding")
    if isinstance(sharding, StringAttr):
        yield sharding.data
    if isinstance(op, FuncOp):
        for dictionaries in (op.arg_attrs, op.res_attrs):
            yield from _shardings(dictionaries)


def _shardings(attributes: ArrayAttr[DictionaryAttr] | None) -> Iterator[str]:
    for dictionary in attributes.data if attributes is not None else ():
        value = dictionary.data.get("mhlo.sharding")
        if isinstance(value, StringAttr):
            yield value.data


def _texts(attribute: Attribute | None) -> Iterator[str]:
    if isinstance(attribute, DictionaryAttr):
        for value in attribute.data.values():
            if isinstance(value, StringAttr):
                yield value.data


def shardings_in(text: str) -> list[str]:
    """Dimension lists of all Shardy shardings in a text.

    Raises:
        ValueError: for unreduced axes.
    """
    found = _SHARDING_TEXT.findall(text)
    if any(_UNREDUCED.search(rest) for _, rest in found):
        raise ValueError("unreduced axes are not supported: let the chips reduce before")
    return [dimensions for dimensions, _ in found]


# Argument and result attributes of TTIR functions: names and parameter roles.

_NAME = "ttir.name"
ARGUMENT_TYPE = "ttcore.argument_type"
_WEIGHT_TYPE = "ttcore.weight_dtype"
_RESULT = "jax.result_info"


def argument_attributes(
    source: FuncOp,
    arguments: Sequence[SSAValue],
    known: Mapping[SSAValue, Mapping[str, str]],
    mesh: NamedMesh,
) -> list[DictionaryAttr]:
    """Names, kinds and shardings of arguments, from attributes, the program or locations."""
    made: list[DictionaryAttr] = []
    for index, (old, new) in enumerate(zip(source.body.block.args, arguments, strict=True)):
        given = _dictionary(source.arg_attrs, index)
        found: dict[str, Attribute] = {
            name: value
            for name, value in given.items()
            if name in (_NAME, ARGUMENT_TYPE, _WEIGHT_TYPE)
        }
        _add_sharding(found, given, mesh, old.type, new.type)
        for name, text in known.get(new, {}).items():
            kind = _kind(text) if name == ARGUMENT_TYPE else StringAttr(text)
            if kind is not None:
                found.setdefault(name, kind)
        if _NAME not in found and not is_meaningful(old.name_hint):
            name = argument_name(getattr(old, "location", None))
            if name is not None:
                found[_NAME] = StringAttr(name)
        name = found.get(_NAME)
        if (
            ARGUMENT_TYPE not in found
            and isinstance(name, StringAttr)
            and is_weight_name(name.data)
        ):
            if str(element_of(new.type)).startswith(("f", "bf")):
                found[ARGUMENT_TYPE] = ArgumentTypeAttr(ArgumentType.PARAMETER)
        made.append(DictionaryAttr(found))
    return made


def declared_sharding(given: Mapping[str, Attribute]) -> Attribute | None:
    """Sharding declared by a value's attributes, or None."""
    return given.get("sdy.sharding", given.get("mhlo.sharding"))


def _add_sharding(
    found: dict[str, Attribute],
    given: Mapping[str, Attribute],
    mesh: NamedMesh,
    old: Attribute,
    new: Attribute,
) -> None:
    """Records the sharding that a value declares, if any; complex values, stored as parts, have
    none."""
    if mesh.chips > 1 and shape_of(old) == shape_of(new):
        wanted = mesh.wanted(declared_sharding(given), len(shape_of(new)))
        if wanted is not None:
            found[SHARDING] = wanted.attribute()


def donated_arguments(source: FuncOp) -> Iterator[int]:
    """Indices of arguments that jax's caller donates (`donate_argnums`)."""
    for index in range(len(source.body.block.args)):
        given = _dictionary(source.arg_attrs, index)
        donor = given.get("jax.buffer_donor")
        if "tf.aliasing_output" in given or (isinstance(donor, IntegerAttr) and donor.value.data):
            yield index


def _kind(text: str) -> Attribute | None:
    try:
        return ArgumentTypeAttr(ArgumentType(text))
    except ValueError:
        return None


def result_attributes(
    source: FuncOp, results: Sequence[SSAValue], mesh: NamedMesh
) -> list[DictionaryAttr]:
    """Names of results, from attributes or jax's result tree, and their shardings."""
    made: list[DictionaryAttr] = []
    declared = source.function_type.outputs.data
    for index, (old, new) in enumerate(zip(declared, results, strict=False)):
        given = _dictionary(source.res_attrs, index)
        name = given.get(_NAME)
        info = given.get(_RESULT)
        if name is None and isinstance(info, StringAttr):
            name = _result_name(info.data)
        found: dict[str, Attribute] = {} if name is None else {_NAME: name}
        _add_sharding(found, given, mesh, old, new.type)
        made.append(DictionaryAttr(found))
    return made


def _result_name(info: str) -> Attribute | None:
    """Name in jax's result info: `logits` for `result['logits']`; None for a bare index."""
    from xdsl.dialects.builtin import NameLoc, NoneAttr

    name = argument_name(NameLoc(StringAttr(info), NoneAttr()))
    if name is None or "[" not in info:
        return None
    name = name.removeprefix("result").strip(".")
    return StringAttr(name) if name and not name[0].isdigit() else None


def _dictionary(dictionaries: ArrayAttr[DictionaryAttr] | None, index: int) -> dict[str, Attribute]:
    if dictionaries is None or index >= len(dictionaries.data):
        return {}
    return dict(dictionaries.data[index].data)
