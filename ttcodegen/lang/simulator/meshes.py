"""Meshes of devices: tensors that have a part on each, and what devices compute together.

An operation that is given such tensors runs on each device with the parts that it holds, as in
TT-NN: single program, multiple data. Shapes are those of the parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.tensors import Tensor

Array = np.ndarray


class MeshShape(tuple[int, ...]):
    """The number of devices in each dimension: `MeshShape(1, 4)` or `MeshShape((1, 4))`."""

    def __new__(cls, *sizes: Any) -> Self:
        given = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        found = tuple(int(size) for size in given)
        if not found or min(found) < 1:
            raise error(f"the shape of a mesh has sizes of 1 and more, not {found}")
        return super().__new__(cls, found)

    def mesh_size(self) -> int:
        """Number of devices in a mesh of this shape."""
        return int(np.prod(self))


@dataclass(frozen=True, eq=False)
class MeshDevice:
    """Devices in a mesh, which are numbered with the last dimension counting fastest."""

    shape: MeshShape

    def get_num_devices(self) -> int:
        """Number of devices."""
        return self.shape.mesh_size()

    def groups(self, axis: int | None) -> list[list[int]]:
        """The devices that compute together: those along a dimension of the mesh, or all.

        Raises:
            ProgramError: if the mesh has no such dimension.
        """
        numbers = np.arange(self.get_num_devices()).reshape(self.shape)
        if axis is None:
            return [numbers.flatten().tolist()]
        if not -len(self.shape) <= axis < len(self.shape):
            raise error(f"a mesh of {len(self.shape)} dimensions has no cluster_axis {axis}")
        lines = np.moveaxis(numbers, axis, -1)
        return lines.reshape(-1, lines.shape[-1]).tolist()


class MeshTensor:
    """A tensor with a part on each device of a mesh; its properties are those of the parts."""

    def __init__(self, parts: Sequence[Tensor], mesh: MeshDevice) -> None:
        self.parts = tuple(parts)
        self.mesh = mesh

    def device(self) -> MeshDevice:
        """The mesh."""
        return self.mesh

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # What Python asks objects for is not what tensors know: `copy` does before there are
            # parts.
            raise AttributeError(name)
        return getattr(self.parts[0], name)

    def __getitem__(self, index: Any) -> Any:
        raise error(
            "this tensor is on several devices, so it has no slices",
            remedy="give it to the operation as an argument: on each device that is its part",
        )

    def __repr__(self) -> str:
        return f"ttnn.Tensor of {len(self.parts)} parts: {self.parts[0]!r}, ..."


def mesh_of(values: Sequence[object]) -> MeshDevice | None:
    """The mesh that tensors are on, None if they are not on one.

    Raises:
        ProgramError: if there are several, or some tensors are on none.
    """
    meshes = {id(each.mesh): each.mesh for each in values if isinstance(each, MeshTensor)}
    if len(meshes) > 1:
        raise error("the tensors are on several meshes")
    if meshes and any(isinstance(each, Tensor) for each in values):
        raise error(
            "some of the tensors are on a mesh of devices, others do not",
            remedy="make them with device=mesh, or with a mesh_mapper",
        )
    return next(iter(meshes.values()), None)


def part_of(value: Any, device: int) -> Any:
    """Returns a device's shard of a tensor; other values are returned as they are."""
    return value.parts[device] if isinstance(value, MeshTensor) else value


def on_each_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which tensors on a mesh are given part by part."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        mesh = mesh_of([*arguments, *keywords.values()])
        if mesh is None:
            return function(*arguments, **keywords)
        parts = [
            function(
                *(part_of(value, device) for value in arguments),
                **{name: part_of(value, device) for name, value in keywords.items()},
            )
            for device in range(mesh.get_num_devices())
        ]
        return MeshTensor(parts, mesh)

    return call


# From and to the host


class MeshMapper(Protocol):
    """Says what each device gets of a tensor of the host."""

    @property
    def mesh_device(self) -> MeshDevice:
        """The devices."""
        ...

    def parts(self, array: Array) -> list[Array]:
        """The part of each device."""
        ...


@dataclass(frozen=True)
class ReplicateTensorToMesh:
    """Each device gets the whole tensor."""

    mesh_device: MeshDevice

    def parts(self, array: Array) -> list[Array]:
        """The part of each device."""
        return [array] * self.mesh_device.get_num_devices()


@dataclass(frozen=True)
class ShardTensorToMesh:
    """Each device gets an equal part along a dimension."""

    mesh_device: MeshDevice
    dim: int

    def parts(self, array: Array) -> list[Array]:
        """The part of each device."""
        return _divided(array, self.mesh_device.get_num_devices(), self.dim)


class ShardTensor2dMesh:
    """Each device gets an equal part along two dimensions, one for each of the mesh; None for one
    of them gives all devices along it the same."""

    def __init__(
        self, mesh_device: MeshDevice, mesh_shape: Any, dims: tuple[int | None, int | None]
    ) -> None:
        self.mesh_device = mesh_device
        self._dims = dims
        self._rows, self._columns = _rows_and_columns(mesh_device, mesh_shape)

    def parts(self, array: Array) -> list[Array]:
        """The part of each device."""
        found = [array]
        for size, dim in zip((self._rows, self._columns), self._dims, strict=True):
            found = [
                part
                for each in found
                for part in ([each] * size if dim is None else _divided(each, size, dim))
            ]
        return found


def _rows_and_columns(mesh: MeshDevice, given: Any) -> tuple[int, int]:
    """The sizes of a mesh of two dimensions, which a program gives too."""
    shape = MeshShape(given)
    if shape != mesh.shape or len(shape) != 2:
        raise error(f"the mesh has the shape {tuple(mesh.shape)}, not {tuple(shape)}")
    return shape[0], shape[1]


def _divided(array: Array, count: int, dim: int) -> list[Array]:
    if not -array.ndim <= dim < array.ndim:
        raise error(f"a tensor of {array.ndim} dimensions has no dimension {dim}")
    if array.shape[dim] % count:
        raise error(f"{count} devices cannot share {array.shape[dim]} elements equally")
    return np.split(array, count, dim)


class MeshComposer(Protocol):
    """Says what the host gets of the parts of a tensor."""

    def whole(self, parts: Sequence[Array]) -> Array:
        """The tensor of the host."""
        ...


@dataclass(frozen=True)
class ConcatMeshToTensor:
    """The parts one after the other along a dimension."""

    mesh_device: MeshDevice
    dim: int

    def whole(self, parts: Sequence[Array]) -> Array:
        """The tensor of the host."""
        return np.concatenate(parts, self.dim)


class ConcatMesh2dToTensor:
    """The parts beside each other along two dimensions, one for each of the mesh."""

    def __init__(self, mesh_device: MeshDevice, mesh_shape: Any, dims: tuple[int, int]) -> None:
        self.mesh_device = mesh_device
        self._dims = dims
        self._rows, self._columns = _rows_and_columns(mesh_device, mesh_shape)

    def whole(self, parts: Sequence[Array]) -> Array:
        """The tensor of the host."""
        columns = self._columns
        rows = [
            np.concatenate(parts[first : first + columns], self._dims[1])
            for first in range(0, len(parts), columns)
        ]
        return np.concatenate(rows, self._dims[0])


# What devices compute together


def all_reduce(
    tensor: MeshTensor, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """The sum of the parts, on each device.

    Args:
        tensor: one with a part on each device.
        cluster_axis: the dimension of the mesh whose devices add; all add if not given.
    """
    return _together(tensor, cluster_axis, lambda parts: [sum(parts[1:], parts[0])] * len(parts))


def all_gather(
    tensor: MeshTensor, dim: int, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """All parts one after the other along a dimension, on each device."""
    return _together(tensor, cluster_axis, lambda parts: [np.concatenate(parts, dim)] * len(parts))


def reduce_scatter(
    tensor: MeshTensor, dim: int, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """The sum of the parts, of which each device keeps an equal share along a dimension."""
    return _together(
        tensor, cluster_axis, lambda parts: _divided(sum(parts[1:], parts[0]), len(parts), dim)
    )


def get_device_tensors(tensor: Tensor | MeshTensor) -> list[Tensor]:
    """The parts, one for each device."""
    return list(tensor.parts) if isinstance(tensor, MeshTensor) else [tensor]


def _together(
    tensor: MeshTensor, axis: int | None, compute: Callable[[list[Array]], Sequence[Array]]
) -> MeshTensor:
    if not isinstance(tensor, MeshTensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error("the tensor is on no mesh of devices")
    found = list(tensor.parts)
    for group in tensor.mesh.groups(axis):
        made = compute([tensor.parts[device].elements() for device in group])
        for device, array in zip(group, made, strict=True):
            part = tensor.parts[device]
            found[device] = Tensor(
                array, part.data_type, part.layout, part.device(), part.memory_config()
            )
    return MeshTensor(found, tensor.mesh)
