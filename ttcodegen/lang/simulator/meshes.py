"""Meshes of devices: tensors that have a part on each, and collective operations.

An operation on such tensors runs on each device with the parts that it holds, as in TT-NN: single
program, multiple data. Shapes are those of the parts.
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
    """Number of devices in each dimension: `MeshShape(1, 4)` or `MeshShape((1, 4))`."""

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
    """A mesh of devices, numbered in row-major order."""

    shape: MeshShape

    def get_num_devices(self) -> int:
        """Number of devices."""
        return self.shape.mesh_size()

    def groups(self, axis: int | None) -> list[list[int]]:
        """Groups of devices for collectives: lines along a dimension of the mesh, or all devices.

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
    """A tensor with a part on each device of a mesh; attributes are those of the parts."""

    def __init__(self, parts: Sequence[Tensor], mesh: MeshDevice) -> None:
        self.parts = tuple(parts)
        self.mesh = mesh

    def device(self) -> MeshDevice:
        """The mesh."""
        return self.mesh

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Special methods are not forwarded: `copy` looks them up before `parts` is set.
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
    """The common mesh of tensors; None if they are on no mesh.

    Raises:
        ProgramError: if there are several meshes, or some tensors are on none.
    """
    meshes = {id(each.mesh): each.mesh for each in values if isinstance(each, MeshTensor)}
    if len(meshes) > 1:
        raise error("the tensors are on several meshes")
    if meshes and any(isinstance(each, Tensor) for each in values):
        raise error(
            "some of the tensors are on a mesh of devices, others are not",
            remedy="make them with device=mesh, or with a mesh_mapper",
        )
    return next(iter(meshes.values()), None)


def part_of(value: Any, device: int) -> Any:
    """Returns a device's part of a tensor; other values are returned unchanged."""
    return value.parts[device] if isinstance(value, MeshTensor) else value


def on_each_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that applies a function to each part of tensors on a mesh."""

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


# Transfers from and to the host


class MeshMapper(Protocol):
    """Distribution of a host tensor over the devices of a mesh."""

    @property
    def mesh_device(self) -> MeshDevice:
        """Mesh of the devices."""
        ...

    def parts(self, array: Array) -> list[Array]:
        """Returns the part of each device."""
        ...


@dataclass(frozen=True)
class ReplicateTensorToMesh:
    """Copies the whole tensor to each device."""

    mesh_device: MeshDevice

    def parts(self, array: Array) -> list[Array]:
        """Returns the part of each device."""
        return [array] * self.mesh_device.get_num_devices()


@dataclass(frozen=True)
class ShardTensorToMesh:
    """Splits a tensor equally along a dimension."""

    mesh_device: MeshDevice
    dim: int

    def parts(self, array: Array) -> list[Array]:
        """Returns the part of each device."""
        return _split(array, self.mesh_device.get_num_devices(), self.dim)


class ShardTensor2dMesh:
    """Splits a tensor along two dimensions, one for each dimension of the mesh.

    None instead of a dimension replicates the tensor along that dimension of the mesh.
    """

    def __init__(
        self, mesh_device: MeshDevice, mesh_shape: Any, dims: tuple[int | None, int | None]
    ) -> None:
        self.mesh_device = mesh_device
        self._dims = dims
        self._rows, self._columns = _rows_and_columns(mesh_device, mesh_shape)

    def parts(self, array: Array) -> list[Array]:
        """Returns the part of each device."""
        found = [array]
        for size, dim in zip((self._rows, self._columns), self._dims, strict=True):
            found = [
                part
                for each in found
                for part in ([each] * size if dim is None else _split(each, size, dim))
            ]
        return found


def _rows_and_columns(mesh: MeshDevice, given: Any) -> tuple[int, int]:
    """Validates the mesh shape that a program passes; the mesh must have two dimensions."""
    shape = MeshShape(given)
    if shape != mesh.shape or len(shape) != 2:
        raise error(f"the mesh has the shape {tuple(mesh.shape)}, not {tuple(shape)}")
    return shape[0], shape[1]


def _split(array: Array, count: int, dim: int) -> list[Array]:
    if not -array.ndim <= dim < array.ndim:
        raise error(f"a tensor of {array.ndim} dimensions has no dimension {dim}")
    if array.shape[dim] % count:
        raise error(f"{count} devices cannot share {array.shape[dim]} elements equally")
    return np.split(array, count, dim)


class MeshComposer(Protocol):
    """Combination of the parts of a tensor to a host tensor."""

    def whole(self, parts: Sequence[Array]) -> Array:
        """Returns the host tensor."""
        ...


@dataclass(frozen=True)
class ConcatMeshToTensor:
    """Concatenates the parts along a dimension."""

    mesh_device: MeshDevice
    dim: int

    def whole(self, parts: Sequence[Array]) -> Array:
        """Returns the host tensor."""
        return np.concatenate(parts, self.dim)


class ConcatMesh2dToTensor:
    """Concatenates the parts along two dimensions, one for each dimension of the mesh."""

    def __init__(self, mesh_device: MeshDevice, mesh_shape: Any, dims: tuple[int, int]) -> None:
        self.mesh_device = mesh_device
        self._dims = dims
        self._rows, self._columns = _rows_and_columns(mesh_device, mesh_shape)

    def whole(self, parts: Sequence[Array]) -> Array:
        """Returns the host tensor."""
        columns = self._columns
        rows = [
            np.concatenate(parts[first : first + columns], self._dims[1])
            for first in range(0, len(parts), columns)
        ]
        return np.concatenate(rows, self._dims[0])


# Collective operations


def all_reduce(
    tensor: MeshTensor, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """Sums the parts of all devices, on each device.

    Args:
        tensor: a tensor with a part on each device.
        cluster_axis: mesh dimension along which devices reduce; all devices if not given.
    """
    return _collective(tensor, cluster_axis, lambda parts: [sum(parts[1:], parts[0])] * len(parts))


def all_gather(
    tensor: MeshTensor, dim: int, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """Concatenates all parts along a dimension, on each device."""
    return _collective(
        tensor, cluster_axis, lambda parts: [np.concatenate(parts, dim)] * len(parts)
    )


def reduce_scatter(
    tensor: MeshTensor, dim: int, cluster_axis: int | None = None, **_options: object
) -> MeshTensor:
    """Sums the parts, and splits the sum equally among the devices along a dimension."""
    return _collective(
        tensor, cluster_axis, lambda parts: _split(sum(parts[1:], parts[0]), len(parts), dim)
    )


def get_device_tensors(tensor: Tensor | MeshTensor) -> list[Tensor]:
    """Parts of a tensor, one for each device."""
    return list(tensor.parts) if isinstance(tensor, MeshTensor) else [tensor]


def _collective(
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
