"""StableHLO's gather and scatter of slices.

Semantics and dimension names are those of StableHLO's ops of the same names
(https://openxla.org/stablehlo/spec#gather, #scatter). They decompose to gather and scatter along
one dimension: the addressed dimensions are merged to the last one, and each index vector becomes a
linear index into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.core.datatypes import bf16, element_of, shape_of, si32
from ttcodegen.dialects.operations.attribute_kinds import BOOLEAN, INTEGER, INTEGERS
from ttcodegen.dialects.operations.operation import AttributeSpec, Call, CatalogueOp, attribute
from ttcodegen.foundation.lazy_numpy import Array, np
from ttcodegen.ops.core.builder import OpBuilder
from ttcodegen.ops.core.dimensions import expect_shape

GATHER_ATTRIBUTES: tuple[AttributeSpec, ...] = (
    attribute("offset_dims", INTEGERS, []),
    attribute("collapsed_slice_dims", INTEGERS, []),
    attribute("operand_batching_dims", INTEGERS, []),
    attribute("start_indices_batching_dims", INTEGERS, []),
    attribute("start_index_map", INTEGERS, []),
    attribute("index_vector_dim", INTEGER, 0),
    attribute("slice_sizes", INTEGERS, None),
    attribute("indices_are_sorted", BOOLEAN, False),
)
SCATTER_ATTRIBUTES: tuple[AttributeSpec, ...] = (
    attribute("update_window_dims", INTEGERS, []),
    attribute("inserted_window_dims", INTEGERS, []),
    attribute("input_batching_dims", INTEGERS, []),
    attribute("scatter_indices_batching_dims", INTEGERS, []),
    attribute("scatter_dims_to_operand_dims", INTEGERS, None),
    attribute("index_vector_dim", INTEGER, 0),
    attribute("indices_are_sorted", BOOLEAN, False),
    attribute("unique_indices", BOOLEAN, False),
)
GENERAL_GATHER = "slice_sizes"
"""Attribute that only the general form of gather has."""
GENERAL_SCATTER = "scatter_dims_to_operand_dims"
"""Attribute that only the general form of scatter has."""

_LONG_ROW = 32
"""Row length from which rows are fetched whole, by an embedding."""


@dataclass(frozen=True)
class Slices:
    """Slices of a tensor selected by index vectors.

    Dimensions are those of the tensor unless stated otherwise.
    """

    shape: tuple[int, ...]
    indices: tuple[int, ...]
    """Shape of the index tensor."""
    vector_dim: int
    """Dimension of the index tensor that holds index vectors; its rank if none does."""
    addressed: tuple[int, ...]
    """Dimension that each component of an index vector addresses."""
    batching: tuple[int, ...]
    """Batching dimensions, paired with those of the index tensor in `indices_batching`."""
    indices_batching: tuple[int, ...]
    removed: tuple[int, ...]
    """Dimensions of size 1 in slices, which are dropped from the result."""
    sizes: tuple[int, ...]
    """Size of a slice in each dimension."""
    window_dims: tuple[int, ...]
    """Dimensions of the stacked slices that run along a slice."""

    @staticmethod
    def of_gather(
        op: CatalogueOp | Call, shape: tuple[int, ...], indices: tuple[int, ...]
    ) -> Slices:
        """Returns the slices that a verified gather reads."""
        read = op.parameter if isinstance(op, CatalogueOp) else op.attributes.__getitem__
        batching = tuple(read("operand_batching_dims"))
        return Slices(
            shape,
            indices,
            read("index_vector_dim"),
            tuple(read("start_index_map")),
            batching,
            tuple(read("start_indices_batching_dims")),
            (*read("collapsed_slice_dims"), *batching),
            tuple(read("slice_sizes")),
            tuple(read("offset_dims")),
        )

    @staticmethod
    def of_scatter(
        op: CatalogueOp | Call,
        shape: tuple[int, ...],
        indices: tuple[int, ...],
        update: tuple[int, ...],
    ) -> Slices:
        """Returns the slices that a scatter writes; sizes missing in the update are 1."""
        read = op.parameter if isinstance(op, CatalogueOp) else op.attributes.__getitem__
        batching = tuple(read("input_batching_dims"))
        window_dims: tuple[int, ...] = tuple(read("update_window_dims"))
        removed = (*read("inserted_window_dims"), *batching)
        extents = iter([update[dim] for dim in window_dims if 0 <= dim < len(update)])
        sizes = tuple(1 if dim in removed else next(extents, 1) for dim in range(len(shape)))
        return Slices(
            shape,
            indices,
            read("index_vector_dim"),
            tuple(read(GENERAL_SCATTER)),
            batching,
            tuple(read("scatter_indices_batching_dims")),
            removed,
            sizes,
            window_dims,
        )

    @property
    def batch_dims(self) -> list[int]:
        """Dimensions of the index tensor other than that of index vectors."""
        return [dim for dim in range(len(self.indices)) if dim != self.vector_dim]

    @property
    def free_batch_dims(self) -> list[int]:
        """Batch dimensions that are not batching dimensions."""
        return [dim for dim in self.batch_dims if dim not in self.indices_batching]

    @property
    def kept(self) -> list[int]:
        """Dimensions that slices keep in the result."""
        return [dim for dim in range(len(self.shape)) if dim not in self.removed]

    @property
    def labels(self) -> list[tuple[str, int]]:
        """Origin of each dimension of the stacked slices.

        ("slice", dimension of the tensor) or ("index", dimension of the index tensor).
        """
        rank = len(self.batch_dims) + len(self.kept)
        windows, batches = iter(self.kept), iter(self.batch_dims)
        return [
            ("slice", next(windows)) if dim in self.window_dims else ("index", next(batches))
            for dim in range(rank)
        ]

    @property
    def slices_shape(self) -> tuple[int, ...]:
        """Shape of the stacked slices."""
        return tuple(
            self.sizes[dim] if kind == "slice" else self.indices[dim] for kind, dim in self.labels
        )

    @property
    def places(self) -> int:
        """Number of index values from 0 on that are in range in every addressed dimension."""
        return min((self.shape[d] - self.sizes[d] + 1 for d in self.addressed), default=1)

    def verify(self, name: str) -> None:
        """Raises VerifyException, naming the op, if the dimensions contradict each other."""
        rank, indices_rank = len(self.shape), len(self.indices)
        if not 0 <= self.vector_dim <= indices_rank:
            raise VerifyException(
                f"{name}: expected an index_vector_dim from 0 to {indices_rank}, "
                f"found {self.vector_dim}"
            )
        parts = self.indices[self.vector_dim] if self.vector_dim < indices_rank else 1
        if parts != len(self.addressed):
            raise VerifyException(
                f"{name}: indices have {parts} parts, but address {len(self.addressed)} dimensions"
            )
        _expect_different(name, (*self.addressed, *self.batching), rank)
        _expect_different(name, self.removed, rank)
        _expect_different(name, self.indices_batching, indices_rank)
        _expect_different(name, self.window_dims, len(self.batch_dims) + len(self.kept))
        along = [self.indices[dim] for dim in self.indices_batching]
        batches = [self.shape[dim] for dim in self.batching]
        if along != batches or self.vector_dim in self.indices_batching:
            raise VerifyException(
                f"{name}: batching dimensions of sizes {batches} have indices of sizes {along}"
            )
        if len(self.window_dims) != len(self.kept):
            raise VerifyException(
                f"{name}: slices have {len(self.kept)} dimensions, but {len(self.window_dims)} "
                f"dimensions run along them"
            )
        fits = len(self.sizes) == rank and all(
            0 <= size <= (min(limit, 1) if dim in self.removed else limit)
            for dim, (size, limit) in enumerate(zip(self.sizes, self.shape, strict=True))
        )
        if not fits:
            raise VerifyException(
                f"{name}: expected slices that fit into {self.shape} and have one element in the "
                f"dimensions {self.removed}, found {self.sizes}"
            )
        if prod(self.slices_shape) and not prod(self.sizes):
            raise VerifyException(
                f"{name}: slices of sizes {self.sizes} have no elements, but the tensor of all "
                f"slices has {prod(self.slices_shape)}"
            )


def _expect_different(name: str, dims: Sequence[int], rank: int) -> None:
    if len(set(dims)) != len(dims) or any(not 0 <= dim < rank for dim in dims):
        raise VerifyException(
            f"{name}: expected different dimensions from 0 to {rank - 1}, found {tuple(dims)}"
        )


# Numpy semantics


def _addresses(slices: Slices, indices: Array, clamp: bool) -> list[Array]:
    """Returns the positions of all slice elements in each dimension, to be broadcast.

    Their dimensions are the batch dimensions, then those of a slice.
    """
    parts = indices.astype(np.int64)
    if slices.vector_dim == len(slices.indices):
        parts = parts[..., None]
    parts = np.moveaxis(parts, slices.vector_dim, -1)
    batch, rank = parts.shape[:-1], len(slices.shape)
    result: list[Array] = []
    for dim, size in enumerate(slices.sizes):
        start = np.zeros([1] * len(batch), dtype=np.int64)
        if dim in slices.addressed:
            start = parts[..., slices.addressed.index(dim)]
            if clamp:
                start = np.clip(start, 0, slices.shape[dim] - size)
        elif dim in slices.batching:
            along = slices.indices_batching[slices.batching.index(dim)]
            axis = slices.batch_dims.index(along)
            start = np.arange(slices.shape[dim]).reshape(
                [-1 if axis == other else 1 for other in range(len(batch))]
            )
        offsets = np.arange(size).reshape([-1 if dim == other else 1 for other in range(rank)])
        result.append(start.reshape(*start.shape, *[1] * rank) + offsets)
    return result


def _order(slices: Slices) -> list[int]:
    """Returns the permutation from batch and slice dimensions to those of the stacked slices."""
    layout = [("index", dim) for dim in slices.batch_dims]
    layout += [("slice", dim) for dim in slices.kept]
    return [layout.index(label) for label in slices.labels]


def gather_slices(call: Call) -> Array:
    """Gathers slices; their starts are clamped so that they are in bounds."""
    x, indices = call.array("input"), call.array("index")
    slices = Slices.of_gather(call, x.shape, indices.shape)
    batch = [indices.shape[dim] for dim in slices.batch_dims]
    addresses = _addresses(slices, indices, clamp=True)
    found = x[tuple(addresses)] if x.ndim else np.broadcast_to(x, batch)
    found = np.broadcast_to(found, [*batch, *slices.sizes])
    found = found.reshape([*batch, *(slices.sizes[dim] for dim in slices.kept)])
    return found.transpose(_order(slices))


def slices_to_scatter(call: Call) -> tuple[tuple[Array, ...], Array]:
    """Returns the scattered positions and their values.

    Slices that are partly out of bounds are dropped, as by XLA.
    """
    x, indices, update = (call.array(name) for name in ("input", "index", "source"))
    slices = Slices.of_scatter(call, x.shape, indices.shape, update.shape)
    batch = [indices.shape[dim] for dim in slices.batch_dims]
    extents = [*batch, *slices.sizes]
    update = update.transpose(np.argsort(_order(slices))).reshape(extents).astype(x.dtype)
    addresses = [
        np.broadcast_to(address, extents) for address in _addresses(slices, indices, clamp=False)
    ]
    named = np.ones(extents, dtype=bool)
    for address, size in zip(addresses, x.shape, strict=True):
        named &= (address >= 0) & (address < size)
    window = tuple(range(len(batch), len(extents)))
    named = np.broadcast_to(named.all(axis=window, keepdims=True), extents)
    return tuple(address[named] for address in addresses), update[named]


# The decomposition


@dataclass(frozen=True)
class _Folded:
    """Dimensions of the tensor in the order in which they are folded to two.

    These are the batching ones, those that slices take whole, and the addressed ones.
    """

    slices: Slices
    whole: tuple[int, ...]
    addressed: tuple[int, ...]

    @property
    def permutation(self) -> list[int]:
        return [*self.slices.batching, *self.whole, *self.addressed]

    @property
    def batches(self) -> int:
        return prod(self.slices.shape[dim] for dim in self.slices.batching)

    @property
    def lines(self) -> int:
        """Number of slice elements along the dimensions taken whole."""
        return prod(self.slices.sizes[dim] for dim in self.whole)

    @property
    def length(self) -> int:
        """Number of addressable positions."""
        return prod(self.slices.shape[dim] for dim in self.addressed)

    @property
    def window(self) -> list[int]:
        """Sizes of a slice in the addressed dimensions."""
        return [self.slices.sizes[dim] for dim in self.addressed]

    @property
    def strides(self) -> list[int]:
        """Linear stride of each addressed dimension."""
        shape = [self.slices.shape[dim] for dim in self.addressed]
        return [prod(shape[axis + 1 :]) for axis in range(len(shape))]

    @property
    def labels(self) -> list[tuple[str, int]]:
        """Origin of each dimension of the folded slices, in the form of `Slices.labels`."""
        slices = self.slices
        return [
            *(("index", dim) for dim in slices.indices_batching),
            *(("slice", dim) for dim in self.whole if dim in slices.kept),
            *(("index", dim) for dim in slices.free_batch_dims),
            *(("slice", dim) for dim in self.addressed if dim in slices.kept),
        ]


def _parts(builder: OpBuilder, slices: Slices, indices: SSAValue) -> list[SSAValue]:
    """Returns each component of the index vectors, (batches, slices of each, 1) of si32."""
    indices = builder.typecast(indices, si32)
    if slices.vector_dim == len(slices.indices):
        indices = builder.reshape(indices, [*slices.indices, 1])
    dims = [*slices.indices_batching, *slices.free_batch_dims, slices.vector_dim]
    indices = builder.permute(indices, dims)
    batches = prod(slices.indices[dim] for dim in slices.indices_batching)
    count = prod(slices.indices[dim] for dim in slices.free_batch_dims)
    indices = builder.reshape(indices, [batches, count, len(slices.addressed)])
    return [builder.slice_dim(indices, 2, part, part + 1) for part in range(len(slices.addressed))]


def _sum(builder: OpBuilder, values: Sequence[SSAValue]) -> SSAValue:
    total = values[0]
    for value in values[1:]:
        total = builder.broadcasting("add", total, value)
    return total


def _times(builder: OpBuilder, value: SSAValue, factor: int) -> SSAValue:
    if factor == 1:
        return value
    return builder.broadcasting("multiply", value, builder.full([1, 1, 1], factor, si32))


def _constant(builder: OpBuilder, numbers: Array) -> SSAValue:
    """Returns the numbers as a constant (1, 1, count) of si32."""
    type_ = TensorType(si32, [1, 1, numbers.size])
    value = DenseIntOrFPElementsAttr.from_list(type_, [int(number) for number in numbers.flat])
    return builder.emit("constant", [], type_, value=value)


def _steps(folded: _Folded, axis: int) -> Array:
    """Returns the offset of each slice element from the slice's start along a dimension."""
    grid = np.indices(folded.window).reshape(len(folded.window), -1)
    return grid[axis]


def _emit_linear_indices(builder: OpBuilder, folded: _Folded, indices: SSAValue) -> SSAValue:
    """Emits the linear indices of slice elements, (batches, slices of each, elements).

    Slice starts are clamped so that slices are in bounds.
    """
    slices = folded.slices
    terms: list[SSAValue] = []
    for part, dim in zip(_parts(builder, slices, indices), slices.addressed, strict=True):
        if dim in folded.addressed:
            last = slices.shape[dim] - slices.sizes[dim]
            start = builder.like("clamp_scalar", part, min=0, max=last)
            terms.append(_times(builder, start, folded.strides[folded.addressed.index(dim)]))
    elements = prod(folded.window)
    if elements > 1 or not terms:
        steps = [_steps(folded, axis) * stride for axis, stride in enumerate(folded.strides)]
        terms.append(_constant(builder, np.sum(steps, axis=0).reshape(-1)))
    return _sum(builder, terms)


def decompose_gather(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decomposes to a gather along one dimension.

    Long rows of bf16 are fetched whole by an embedding, which does not round them.
    """
    value = builder.operand(op, "input")
    slices = slices_of(op)
    if prod(op.result_shape) == 0:
        return builder.full(op.result_shape, 0, element_of(op.result_type))
    addressed = tuple(d for d in slices.addressed if slices.sizes[d] < slices.shape[d])
    whole = tuple(d for d in range(len(slices.shape)) if d not in (*slices.batching, *addressed))
    folded = _Folded(slices, whole, addressed)
    ends = [slices.sizes[dim] if dim in whole else size for dim, size in enumerate(slices.shape)]
    value = builder.slice(value, [0] * len(ends), ends)
    if not addressed and not slices.batching:
        return _repeated_slice(builder, op, folded, value)
    places = _emit_linear_indices(builder, folded, builder.operand(op, "index"))
    batches, lines = folded.batches, folded.lines
    free = [slices.indices[dim] for dim in slices.free_batch_dims]
    count = prod(free) * prod(folded.window)
    if shape_of(places.type) != (batches, prod(free), prod(folded.window)):
        places = _broadcast_to(builder, places, [batches, prod(free), prod(folded.window)])
    labels = folded.labels
    element = element_of(value.type)
    if batches == 1 and element == bf16 and lines >= _LONG_ROW:
        table = builder.permute(value, [*slices.batching, *addressed, *whole])
        table = builder.reshape(table, [folded.length, lines])
        found = builder.emit(
            "embedding",
            [builder.reshape(places, [count]), table],
            TensorType(element, [count, lines]),
        )
        row = [label for label in labels if label[0] == "slice" and label[1] in whole]
        labels = [label for label in labels if label not in row] + row
    else:
        value = builder.reshape(
            builder.permute(value, folded.permutation), [batches * lines, folded.length]
        )
        places = builder.reshape(places, [batches, 1, count])
        places = _broadcast_to(builder, places, [batches, lines, count])
        places = builder.reshape(places, [batches * lines, count])
        result = TensorType(element, [batches * lines, count])
        found = builder.emit("gather", [value, places], result, dim=1)
    sizes = [slices.sizes[d] if kind == "slice" else slices.indices[d] for kind, d in labels]
    found = builder.reshape(found, sizes)
    return builder.permute(found, [labels.index(label) for label in slices.labels])


def _repeated_slice(
    builder: OpBuilder, op: CatalogueOp, folded: _Folded, value: SSAValue
) -> SSAValue:
    """Broadcasts the only slice that fits, where slices can begin only at zero."""
    slices = folded.slices
    shape = [slices.sizes[d] if kind == "slice" else 1 for kind, d in slices.labels]
    return _broadcast_to(builder, builder.reshape(value, shape), op.result_shape)


def _broadcast_to(builder: OpBuilder, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Broadcasts a value to that shape; returns it unchanged if it has it."""
    found = shape_of(value.type)
    if found == tuple(shape):
        return value
    factors = [wanted // size for wanted, size in zip(shape, found, strict=True)]
    type_ = TensorType(element_of(value.type), list(shape))
    return builder.emit("broadcast", [value], type_, broadcast_dimensions=factors)


def _emit_linear_targets(builder: OpBuilder, folded: _Folded, indices: SSAValue) -> SSAValue:
    """Like `_emit_linear_indices`, with an index past the end for slices partly out of bounds."""
    slices = folded.slices
    parts = _parts(builder, slices, indices)
    inside: list[SSAValue] = []
    terms: list[SSAValue] = []
    for axis, dim in enumerate(folded.addressed):
        stride, last = folded.strides[axis], slices.shape[dim] - folded.window[axis]
        if dim in slices.addressed:
            part = parts[slices.addressed.index(dim)]
            clamped = builder.like("clamp_scalar", part, min=0, max=last)
            inside.append(builder.like("eq", part, clamped))
            terms.append(_times(builder, clamped, stride))
        if folded.window[axis] > 1 or dim not in slices.addressed:
            steps = _constant(builder, _steps(folded, axis))
            terms.append(_times(builder, steps, stride))
    place = _sum(builder, terms)
    if not inside:
        return place
    all_inside = inside[0]
    for value in inside[1:]:
        all_inside = builder.broadcasting("multiply", all_inside, value)
    past_end = builder.full([1, 1, 1], folded.length, si32)
    place = builder.broadcasting("subtract", place, past_end)
    place = builder.broadcasting("multiply", place, all_inside)
    return builder.broadcasting("add", place, past_end)


def decompose_scatter(builder: OpBuilder, op: CatalogueOp) -> SSAValue:
    """Decomposes to a scatter along one dimension."""
    value, update = builder.operand(op, "input"), builder.operand(op, "source")
    slices = slices_of(op)
    if prod(op.shape("source")) == 0:
        return value
    taken = (*slices.batching, *slices.addressed)
    whole = tuple(
        dim
        for dim, (size, limit) in enumerate(zip(slices.sizes, slices.shape, strict=True))
        if dim not in taken and size == limit
    )
    addressed = tuple(
        dim for dim in range(len(slices.shape)) if dim not in (*slices.batching, *whole)
    )
    folded = _Folded(slices, whole, addressed)
    batches, lines = folded.batches, folded.lines
    count = prod(slices.indices[d] for d in slices.free_batch_dims) * prod(folded.window)
    if addressed:
        places = _emit_linear_targets(builder, folded, builder.operand(op, "index"))
    else:
        places = builder.full([1, 1, 1], 0, si32)
    shape = [batches, count // prod(folded.window), prod(folded.window)]
    places = builder.reshape(_broadcast_to(builder, places, shape), [batches, 1, count])
    places = builder.reshape(
        _broadcast_to(builder, places, [batches, lines, count]), [batches * lines, count]
    )
    update = builder.permute(update, [slices.labels.index(label) for label in folded.labels])
    update = builder.reshape(update, [batches * lines, count])
    folded_value = builder.permute(value, folded.permutation)
    permuted = shape_of(folded_value.type)
    folded_value = builder.reshape(folded_value, [batches * lines, folded.length])
    result = builder.emit(
        "scatter",
        [folded_value, places, builder.typecast(update, element_of(value.type))],
        folded_value.type,
        dim=1,
        scatter_reduce_type=op.parameter("scatter_reduce_type"),
    )
    result = builder.reshape(result, permuted)
    inverse = [folded.permutation.index(dim) for dim in range(len(slices.shape))]
    return builder.typecast(builder.permute(result, inverse), element_of(op.result_type))


def is_general(op: CatalogueOp) -> bool:
    """True if a TTIR gather or scatter has the general form."""
    name = GENERAL_GATHER if op.definition.short_name == "gather" else GENERAL_SCATTER
    known = any(spec.name == name for spec in op.definition.attributes)
    return known and op.parameter(name) is not None


def slices_of(op: CatalogueOp) -> Slices:
    """Returns the slices of a gather or scatter of the general form."""
    shape, indices = op.shape("input"), op.shape("index")
    if op.definition.short_name == "gather":
        return Slices.of_gather(op, shape, indices)
    return Slices.of_scatter(op, shape, indices, op.shape("source"))


def verify_gather(op: CatalogueOp) -> None:
    """The dimensions are consistent; the result holds a slice for each index vector."""
    slices = slices_of(op)
    slices.verify(op.name)
    expect_shape(op, slices.slices_shape)


def verify_scatter(op: CatalogueOp) -> None:
    """The dimensions are consistent; the source has a slice for each index vector; the result has
    the shape of the input.
    """
    update = op.shape("source")
    slices = slices_of(op)
    slices.verify(op.name)
    if update != slices.slices_shape:
        raise VerifyException(
            f"{op.name}: expected a source of shape {slices.slices_shape}, found {update}"
        )
    expect_shape(op, op.shape("input"))
