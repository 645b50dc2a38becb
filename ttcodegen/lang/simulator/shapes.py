"""Shapes and positions of dimensions, and shape rules of operators and functions.

The simulator and the compiler share these rules, which raise ProgramError if a program breaks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeGuard

from ttcodegen.lang.simulator.locations import error

Shape = tuple[int, ...]


def shape_text(shape: Sequence[int]) -> str:
    """Source spelling of a shape, such as `(2, 1)`."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def checked_shape(what: str, shape: object) -> Shape:
    """Validates a shape, given as a size or as a tuple of sizes; raises ProgramError if invalid."""
    values = sequence_of(shape)
    sizes = tuple(int(value) for value in values if is_integer(value) and int(value) > 0)
    if len(sizes) != len(values) or not sizes:
        raise error(f"the shape of {what} is a tuple of positive integers, not {shape!r}")
    return sizes


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """True if a value is a tuple or a list."""
    return isinstance(value, tuple | list)


def sequence_of(value: object) -> tuple[Any, ...]:
    """Elements of a tuple or list; any other value is a single element."""
    return tuple(value) if is_sequence(value) else (value,)


def is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """True if a value is a Python or numpy integer, but not a bool."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_range(value: object) -> TypeGuard[slice[Any, Any, Any]]:
    """True if a value is a slice."""
    return isinstance(value, slice)


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """True if a value is a tuple."""
    return isinstance(value, tuple)


def checked_dims(what: str, dims: object, rank: int) -> tuple[int, ...]:
    """Validates and sorts dimensions; negative ones are counted from the innermost.

    Raises:
        ProgramError: if one is out of range or given twice.
    """
    found: list[int] = []
    for value in sequence_of(dims):
        if not is_integer(value) or not -rank <= int(value) < rank:
            raise error(f"{what} has the dimension {value!r}, but there are {rank}")
        found.append(int(value) % rank)
    if len(set(found)) != len(found) or not found:
        raise error(f"the dims of {what} are a list of different dimensions, not {dims!r}")
    return tuple(sorted(found))


def same_shapes(what: str, shapes: Sequence[Shape]) -> None:
    """Raises ProgramError unless the operands of `what` have the same shape."""
    for shape in shapes[1:]:
        if shape != shapes[0]:
            raise error(
                f"operands of {what} have the shapes {shape_text(shapes[0])} and "
                f"{shape_text(shape)}",
                remedy="ttl.block.broadcast gives a block the shape of another",
            )


def same_layouts(what: str, are_tiled: Sequence[bool]) -> None:
    """Raises ProgramError unless the operands of `what` are all tiled, or all row-major."""
    if are_tiled.count(are_tiled[0]) < len(are_tiled):
        raise error(f"operands of {what} are tiled and row-major blocks")


def tiled_only(what: str, is_tiled: bool) -> None:
    """Raises ProgramError unless an operand of `what` is tiled."""
    if not is_tiled:
        raise error(f"{what} is not supported for row-major blocks")


def product_shape(left: Shape, right: Shape) -> Shape:
    """Shape of a matmul of [..., M, K] and [..., K, N]."""
    if len(left) == 2 == len(right) and left[1] == right[0]:
        return left[0], right[1]
    fits = (
        len(left) == len(right) >= 2 and left[:-2] == right[:-2] and left[-1] == right[-2]
    )  # fmt: skip
    if not fits:
        raise error(
            f"operands of @ have the shapes {shape_text(left)} and {shape_text(right)}; "
            "they are [..., M, K] and [..., K, N] with the same outer dimensions"
        )
    return (*left[:-1], right[-1])


def _same_rank(what: str, given: Shape, shape: Shape) -> None:
    if len(shape) != len(given):
        raise error(
            f"{what} of a block of the shape {shape_text(given)} to {shape_text(shape)}: both need "
            "the same number of dimensions"
        )


def broadcast_axes(what: str, given: Shape, shape: Shape, dims: object) -> tuple[int, ...]:
    """Validates a broadcast, and returns the broadcast dimensions."""
    _same_rank(what, given, shape)
    axes = checked_dims(what, dims, len(shape))
    for axis, (size, wanted) in enumerate(zip(given, shape, strict=True)):
        if axis in axes and size != 1:
            raise error(
                f"{what} along dimension {axis}, in which the block has the size {size}, not 1"
            )
        if axis not in axes and size != wanted:
            raise error(
                f"{what} from {shape_text(given)} to {shape_text(shape)} changes dimension {axis}, "
                "which is not among its dims"
            )
    return axes


def reduced(what: str, given: Shape, dims: object, shape: object) -> tuple[Shape, tuple[int, ...]]:
    """Validates a reduction, and returns its shape and dimensions."""
    sizes = checked_shape(what, shape)
    _same_rank(what, given, sizes)
    axes = checked_dims(what, dims, len(sizes))
    if sizes != tuple(1 if axis in axes else size for axis, size in enumerate(given)):
        raise error(
            f"{what} of {shape_text(given)} over dimensions {list(axes)} does not give "
            f"{shape_text(sizes)}"
        )
    return sizes, axes


def transposed_shape(given: Shape) -> Shape:
    """Shape of a transposed block."""
    if len(given) != 2:
        raise error("ttl.block.transpose is supported only for two-dimensional blocks")
    return given[::-1]


def squeezed(given: Shape, dims: object, *, is_tiled: bool) -> tuple[Shape, tuple[int, ...]]:
    """Shape after a squeeze, and the kept dimensions."""
    what = "ttl.block.squeeze"
    axes = checked_dims(what, dims, len(given))
    for axis in axes:
        if given[axis] != 1:
            raise error(f"{what} removes dimension {axis}, which has the size {given[axis]}, not 1")
    kept = tuple(axis for axis in range(len(given)) if axis not in axes)
    shape = tuple(given[axis] for axis in kept)
    if is_tiled and len(shape) < 2:
        raise error(
            f"{what} leaves {shape_text(shape)}, but tiled blocks have two dimensions or more"
        )
    return shape, kept


def unsqueezed(given: Shape, dims: object) -> tuple[Shape, tuple[int, ...]]:
    """Shape after an unsqueeze, and the new positions of the original dimensions."""
    rank = len(given) + len(sequence_of(dims))
    axes = checked_dims("ttl.block.unsqueeze", dims, rank)
    kept = tuple(axis for axis in range(rank) if axis not in axes)
    sizes = iter(given)
    return tuple(1 if axis in axes else next(sizes) for axis in range(rank)), kept


def check_layout(is_tiled: bool, buffer: str, has_tiles: bool) -> None:
    """Raises ProgramError if a tiled expression is stored into a row-major block, or vice versa."""
    if is_tiled != has_tiles:
        kinds = {True: "tiles", False: "rows"}
        raise error(
            f"an expression of {kinds[is_tiled]} does not fit into a block of '{buffer}', which "
            f"has {kinds[has_tiles]}",
            remedy="make both tensors in one layout, ttnn.TILE_LAYOUT or ttnn.ROW_MAJOR_LAYOUT",
        )
