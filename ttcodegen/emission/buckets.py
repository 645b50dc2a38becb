"""Buckets: functions of one model for several sizes of its dynamic dimensions.

A call takes tensors of any size within the range of a dimension. Inputs are padded to the smallest
bucket that fits, and outputs are sliced to their actual size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class BucketError(ValueError):
    """Shapes of inputs that fit no bucket."""


@dataclass(frozen=True)
class Extent:
    """Size of a tensor dimension: `offset + scale * dimension`, or just `offset`."""

    offset: int
    dimension: str = ""
    """Name of the dynamic dimension; empty for a fixed size."""
    scale: int = 0

    def size(self, sizes: Mapping[str, int]) -> int:
        """Size for given sizes of the dynamic dimensions."""
        return self.offset + (self.scale * sizes[self.dimension] if self.dimension else 0)

    def dimension_size(self, size: int) -> int | None:
        """Size of the dynamic dimension, given that of the tensor; None if no size matches."""
        count, rest = divmod(size - self.offset, self.scale)
        return count if rest == 0 and count >= 0 else None

    def __str__(self) -> str:
        if not self.dimension:
            return str(self.offset)
        scaled = self.dimension if self.scale == 1 else f"{self.scale}*{self.dimension}"
        return f"{scaled} + {self.offset}" if self.offset else scaled

    def to_json(self) -> Any:
        """Entry of the manifest: an integer, or the terms."""
        if not self.dimension:
            return self.offset
        return {"dimension": self.dimension, "scale": self.scale, "offset": self.offset}

    @staticmethod
    def from_json(content: Any) -> Extent:
        """Reads the entry of the manifest; raises KeyError, TypeError or ValueError."""
        if isinstance(content, int):
            return Extent(content)
        return Extent(int(content["offset"]), str(content["dimension"]), int(content["scale"]))


Extents = tuple[Extent, ...]


@dataclass(frozen=True)
class DynamicDimension:
    """Dimension whose size is known when the function is called."""

    name: str
    least: int
    """Minimum size that the model takes."""
    sizes: tuple[int, ...]
    """Sizes of the buckets, in ascending order."""

    def bucket_size(self, size: int) -> int:
        """Returns the smallest size of a bucket that is at least `size`.

        Raises:
            BucketError: if the size is out of range.
        """
        if size < self.least:
            raise BucketError(f"{self.name} of {size} is too small: the model takes {self.least}")
        for each in self.sizes:
            if size <= each:
                return each
        known = ", ".join(map(str, self.sizes))
        raise BucketError(f"{self.name} of {size} is too large: there are buckets of {known}")


@dataclass(frozen=True)
class Buckets:
    """Function for several sizes of its dynamic dimensions."""

    name: str
    """The function's name without sizes."""
    dimensions: tuple[DynamicDimension, ...]
    inputs: tuple[Extents, ...]
    """Shapes in the order of the function's inputs."""
    outputs: tuple[Extents, ...]
    padding: tuple[float, ...]
    """Value of padded elements, by input."""
    functions: Mapping[tuple[int, ...], str]
    """Names of functions by the sizes of all dimensions."""

    def sizes(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """Returns the sizes of the dynamic dimensions in a call.

        Args:
            names: names of the inputs, for messages.
            shapes: shapes of the inputs.

        Raises:
            BucketError: if a shape does not fit, or two inputs disagree.
        """
        found: dict[str, int] = {}
        for name, shape, extents in zip(names, shapes, self.inputs, strict=True):
            text = ", ".join(map(str, extents))
            wrong = BucketError(f"'{name}': expected the shape ({text}), found {tuple(shape)}")
            if len(shape) != len(extents):
                raise wrong
            for size, extent in zip(shape, extents, strict=True):
                if not extent.dimension:
                    if size != extent.offset:
                        raise wrong
                    continue
                count = extent.dimension_size(size)
                if count is None:
                    raise wrong
                if found.setdefault(extent.dimension, count) != count:
                    raise BucketError(
                        f"'{name}': {extent.dimension} is {count} here and "
                        f"{found[extent.dimension]} in an input before"
                    )
        return found

    def bucket(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Returns the sizes of the smallest bucket that fits.

        Raises:
            BucketError: if a size is out of range.
        """
        return {each.name: each.bucket_size(sizes[each.name]) for each in self.dimensions}

    def function(self, bucket: Mapping[str, int]) -> str:
        """Name of a bucket's function."""
        return self.functions[tuple(bucket[each.name] for each in self.dimensions)]

    def all_buckets(self) -> Iterator[dict[str, int]]:
        """Yields the sizes of each bucket."""
        for sizes in self.functions:
            yield {each.name: size for each, size in zip(self.dimensions, sizes, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """Entry of the manifest."""
        return {
            "name": self.name,
            "dimensions": [
                {"name": each.name, "least": each.least, "sizes": list(each.sizes)}
                for each in self.dimensions
            ],
            "inputs": [
                {"shape": [each.to_json() for each in extents], "padding": value}
                for extents, value in zip(self.inputs, self.padding, strict=True)
            ],
            "outputs": [
                {"shape": [each.to_json() for each in extents]} for extents in self.outputs
            ],
            "functions": [
                {"sizes": list(sizes), "name": name} for sizes, name in self.functions.items()
            ],
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Buckets:
        """Reads the entry of the manifest; raises KeyError, TypeError or ValueError."""

        def extents(rows: Sequence[Mapping[str, Any]]) -> tuple[Extents, ...]:
            return tuple(tuple(map(Extent.from_json, row["shape"])) for row in rows)

        return Buckets(
            str(content["name"]),
            tuple(
                DynamicDimension(str(row["name"]), int(row["least"]), tuple(map(int, row["sizes"])))
                for row in content["dimensions"]
            ),
            extents(content["inputs"]),
            extents(content["outputs"]),
            tuple(float(row["padding"]) for row in content["inputs"]),
            {tuple(map(int, row["sizes"])): str(row["name"]) for row in content["functions"]},
        )
