"""`ttnn`: what TT-Lang programs use, on numpy; takes torch tensors if torch is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.lang.simulator.context import current_chip
from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS
from ttcodegen.lang.simulator.locations import error
from ttcodegen.lang.simulator.meshes import (
    ConcatMesh2dToTensor,
    ConcatMeshToTensor,
    MeshComposer,
    MeshDevice,
    MeshMapper,
    MeshShape,
    MeshTensor,
    ReplicateTensorToMesh,
    ShardTensor2dMesh,
    ShardTensorToMesh,
    all_gather,
    all_reduce,
    get_device_tensors,
    on_each_device,
    reduce_scatter,
)
from ttcodegen.lang.simulator.shapes import is_integer, shape_text
from ttcodegen.lang.simulator.spelling import language_class
from ttcodegen.lang.simulator.tensors import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    ROW_MAJOR_LAYOUT,
    TILE_LAYOUT,
    BufferType,
    CoreCoord,
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    NdShardSpec,
    ShardDistributionStrategy,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    Tensor,
    TensorMemoryLayout,
    TensorShape,
    TensorSpec,
    Tile,
    create_sharded_memory_config,
)

_Core = tuple[int, int]

WorkDivision = tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]
"""Number of cores, all cores, cores with more and with fewer units, and the units of both."""


def num_cores_to_corerangeset(
    target_num_cores: int, grid_size: CoreCoord, row_wise: bool = False
) -> CoreRangeSet:
    """Returns the first cores of a grid, column by column, or row by row.

    Raises:
        ProgramError: if the grid has fewer cores.
    """
    cores = _cores_of(grid_size, row_wise)
    if not is_integer(target_num_cores) or not 0 < int(target_num_cores) <= len(cores):
        raise error(
            f"ttnn.num_cores_to_corerangeset takes 1 to {len(cores)} cores of a grid of "
            f"{grid_size.x}x{grid_size.y}, not {target_num_cores!r}"
        )
    return _ranges(cores[: int(target_num_cores)], row_wise)


def split_work_to_cores(
    core_grid: CoreCoord | CoreRangeSet, units_to_divide: int, row_wise: bool = False
) -> WorkDivision:
    """Divides units of work among cores as evenly as possible.

    Args:
        core_grid: the size of a grid that starts at the first core, or a set of cores.
        units_to_divide: number of units.
        row_wise: True if cores are used row by row.
    """
    if not is_integer(units_to_divide) or int(units_to_divide) < 0:
        raise error(f"ttnn.split_work_to_cores divides 0 units or more, not {units_to_divide!r}")
    units, available = int(units_to_divide), _cores_of(core_grid, row_wise)
    cores = available[: min(units, len(available))]
    nothing = CoreRangeSet([])
    if not cores:
        return 0, nothing, nothing, nothing, 0, 0
    quotient, remainder = divmod(units, len(cores))
    everywhere = _ranges(cores, row_wise)
    if not remainder:
        return len(cores), everywhere, everywhere, nothing, quotient, 0
    first, second = _ranges(cores[:remainder], row_wise), _ranges(cores[remainder:], row_wise)
    return len(cores), everywhere, first, second, quotient + 1, quotient


def _cores_of(grid: CoreCoord | CoreRangeSet, row_wise: bool) -> list[_Core]:
    """Columns and rows of cores, in the order in which work is assigned to them."""
    if isinstance(grid, CoreCoord):
        last = CoreCoord(grid.x - 1, grid.y - 1)
        grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), last)])
    if not isinstance(grid, CoreRangeSet):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error(
            f"cores are a ttnn.CoreCoord or a ttnn.CoreRangeSet, not a {type(grid).__name__}"
        )
    rectangles = (each.rectangle() for each in grid.ranges())
    return [core for each in rectangles for core in each.coordinates(by_column=not row_wise)]


def _ranges(cores: Sequence[_Core], row_wise: bool) -> CoreRangeSet:
    """Merges ordered cores to rectangles: into lines first, then equal adjacent lines."""
    along, across = (0, 1) if row_wise else (1, 0)
    lines: list[list[int]] = []
    for core in cores:
        if lines and lines[-1][0] == core[across] and lines[-1][2] + 1 == core[along]:
            lines[-1][2] = core[along]
        else:
            lines.append([core[across], core[along], core[along]])
    areas: list[list[int]] = []
    for line, first, last in lines:
        if areas and areas[-1][1] + 1 == line and areas[-1][2:] == [first, last]:
            areas[-1][1] = line
        else:
            areas.append([line, line, first, last])
    found: list[CoreRange] = []
    for low, high, first, last in areas:
        ends = ((first, low), (last, high)) if row_wise else ((low, first), (high, last))
        found.append(CoreRange(CoreCoord(*ends[0]), CoreCoord(*ends[1])))
    return CoreRangeSet(found)


Array = np.ndarray

bfloat16 = DataType.BFLOAT16
float32 = DataType.FLOAT32
bfloat8_b = DataType.BFLOAT8_B
bfloat4_b = DataType.BFLOAT4_B
int32 = DataType.INT32
uint32 = DataType.UINT32
uint16 = DataType.UINT16
uint8 = DataType.UINT8

TILE_SIZE = 32

Shape = TensorShape


@dataclass(frozen=True)
class Device:
    """The simulated device."""

    device_id: int = 0

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Size of the core grid."""
        rows, columns = current_chip().grid
        return CoreCoord(columns, rows)


_available = 4


def set_num_devices(count: int) -> None:
    """Sets the number of available devices."""
    global _available
    if count < 1:
        raise error(f"there is at least one device, not {count}")
    _available = count


def GetNumAvailableDevices() -> int:
    """Number of available devices."""
    return _available


class FabricConfig:
    """Fabric configuration of devices; ignored by the simulator."""

    DISABLED = "disabled"
    FABRIC_1D = "fabric_1d"
    FABRIC_1D_RING = "fabric_1d_ring"
    FABRIC_2D = "fabric_2d"


def set_fabric_config(config: str, *_options: object) -> None:
    """Does nothing: the simulator has no links."""


def open_mesh_device(mesh_shape: Any = None, **_options: object) -> MeshDevice:
    """Opens a mesh of devices, a line of all devices by default.

    Raises:
        ProgramError: if there are fewer devices than the mesh has.
    """
    mesh = MeshDevice(MeshShape(1, _available) if mesh_shape is None else MeshShape(mesh_shape))
    if mesh.get_num_devices() > _available:
        raise error(
            f"a mesh of the shape {tuple(mesh.shape)} has {mesh.get_num_devices()} devices, but "
            f"there are {_available}",
            remedy="ttcodegen-lang --num-devices says how many there are",
        )
    return mesh


def close_mesh_device(mesh: MeshDevice) -> None:
    """Does nothing."""


def open_device(device_id: int = 0, **_options: object) -> Device:
    """Opens the simulated device."""
    return Device(device_id)


def close_device(device: Device | MeshDevice) -> None:
    """Does nothing."""


def synchronize_device(device: Device | MeshDevice) -> None:
    """Does nothing: operations are complete when they return."""


_DEFAULT_TYPES = {
    "float64": float32,
    "float32": float32,
    "float16": bfloat16,
    "bfloat16": bfloat16,
    "int64": int32,
    "int32": int32,
    "bool": uint8,
    "uint32": uint32,
    "uint16": uint16,
    "uint8": uint8,
}


def from_torch(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    spec: TensorSpec | None = None,
    layout: str = ROW_MAJOR_LAYOUT,
    device: object = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: MeshMapper | None = None,
    **_options: object,
) -> Tensor | MeshTensor:
    """Creates a tensor from a torch tensor or a numpy array.

    Args:
        tensor: the elements.
        dtype: the data type; that of the elements if not given.
        spec: data type, layout and placement, which override the other arguments.
        layout: TILE_LAYOUT or ROW_MAJOR_LAYOUT.
        device: recorded only, or a mesh, on which the tensor is replicated without a mapper.
        memory_config: placement of the tensor.
        mesh_mapper: distribution over the devices of a mesh.
    """
    name, array = _elements(tensor)
    if spec is not None:
        if tuple(spec.shape) != array.shape:
            raise error(
                f"the spec has the shape {shape_text(tuple(spec.shape))}, the elements "
                f"{shape_text(array.shape)}"
            )
        dtype, layout, memory_config = spec.dtype, spec.layout, spec.memory_config
    if dtype is None:
        if name not in _DEFAULT_TYPES:
            raise error(f"there is no data type for elements of the type {name}")
        dtype = _DEFAULT_TYPES[name]
    return _tensor(array, dtype, layout, device, memory_config, mesh_mapper)


def _elements(tensor: Any) -> tuple[str, Array]:
    """Name of the element type, and the elements in a type that numpy computes with."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        name = str(tensor.dtype).removeprefix("torch.")
        plain = tensor.detach().cpu()
        return name, (plain.float() if name == "bfloat16" else plain).numpy()
    array = np.asarray(tensor)
    name = array.dtype.name
    return name, array.astype(np.float32) if array.dtype.kind in "fV" else array


def _tensor(
    array: Array,
    dtype: DataType,
    layout: str,
    device: object,
    memory_config: MemoryConfig | None,
    mapper: MeshMapper | None = None,
) -> Any:
    """Creates a tensor; with a mesh or a mapper, one with a part on each device."""
    if mapper is None and isinstance(device, MeshDevice):
        mapper = ReplicateTensorToMesh(device)
    if mapper is not None:
        parts = [_tensor(part, dtype, layout, None, memory_config) for part in mapper.parts(array)]
        return MeshTensor(parts, mapper.mesh_device)
    if layout not in (TILE_LAYOUT, ROW_MAJOR_LAYOUT):
        raise error(f"there is no layout {layout!r}")
    if dtype.is_float and array.dtype.kind not in "f":
        array = array.astype(np.float32)
    return Tensor(array, dtype, layout, device, memory_config)


def to_torch(
    tensor: Tensor | MeshTensor,
    *,
    mesh_composer: MeshComposer | None = None,
    **_options: object,
) -> Any:
    """Converts a tensor to a torch tensor if torch is imported, else to a numpy array.

    Args:
        tensor: the tensor.
        mesh_composer: combines the parts of a tensor on a mesh.

    Raises:
        ProgramError: if the tensor has several parts, and no composer is given.
    """
    parts = get_device_tensors(tensor)
    if mesh_composer is None and len(parts) > 1:
        raise error(
            f"the tensor has parts on {len(parts)} devices",
            remedy="mesh_composer says how they become one: ttnn.ConcatMeshToTensor(mesh, dim)",
        )
    stored = [part.stored() for part in parts]
    array = stored[0] if mesh_composer is None else mesh_composer.whole(stored)
    torch = sys.modules.get("torch")
    if torch is None:
        return array
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(array.copy())


_generator = np.random.default_rng(0)


def manual_seed(seed: int) -> None:
    """Seeds the generator of `rand`."""
    global _generator
    _generator = np.random.default_rng(seed)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in shape)


def rand(
    shape: Any,
    dtype: DataType = bfloat16,
    *,
    layout: str = TILE_LAYOUT,
    device: object = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Creates a tensor of uniformly distributed random numbers in [0, 1)."""
    array = _generator.random(_sizes(shape), np.float32)
    return _tensor(array, dtype, layout, device, memory_config)


def full(
    shape: Any,
    fill_value: float,
    dtype: DataType = bfloat16,
    *,
    layout: str = TILE_LAYOUT,
    device: object = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Creates a tensor filled with one number."""
    array = np.full(_sizes(shape), fill_value, np.float32 if dtype.is_float else dtype.numpy)
    return _tensor(array, dtype, layout, device, memory_config)


def zeros(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """Creates a tensor of zeros."""
    return full(shape, 0, dtype, **options)


def ones(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """Creates a tensor of ones."""
    return full(shape, 1, dtype, **options)


def empty(shape: Any, dtype: DataType = bfloat16, **options: Any) -> Tensor:
    """Creates an uninitialized tensor; its elements are zeros here."""
    return zeros(shape, dtype, **options)


@on_each_device
def zeros_like(tensor: Tensor, **_options: object) -> Tensor:
    """Creates a tensor of zeros with the shape, data type and layout of another one."""
    return _like(tensor, np.zeros_like(tensor.elements()))


def is_sharded(tensor: Tensor) -> bool:
    """True if a tensor is sharded."""
    return tensor.is_sharded()


def get_memory_config(tensor: Tensor) -> MemoryConfig:
    """Memory config of a tensor."""
    return tensor.memory_config()


def _like(tensor: Tensor, array: Array) -> Tensor:
    return Tensor(array, tensor.data_type, tensor.layout, tensor.device(), tensor.memory_config())


@on_each_device
def to_layout(tensor: Tensor, layout: str) -> Tensor:
    """Converts a tensor to another layout."""
    return _tensor(
        tensor.elements(), tensor.data_type, layout, tensor.device(), tensor.memory_config()
    )


@on_each_device
def to_memory_config(tensor: Tensor, memory_config: MemoryConfig, **_options: object) -> Tensor:
    """Moves a tensor to another memory config."""
    return _tensor(
        tensor.elements(), tensor.data_type, tensor.layout, tensor.device(), memory_config
    )


@on_each_device
def typecast(tensor: Tensor, dtype: DataType) -> Tensor:
    """Converts a tensor to another data type."""
    return _tensor(tensor.elements(), dtype, tensor.layout, tensor.device(), tensor.memory_config())


def _check_tensor(value: object) -> None:
    if not isinstance(value, Tensor):
        raise error(
            f"functions of ttnn take tensors, not a {language_class(value).__name__}",
            remedy="in kernels, operators and functions of ttl.math compute with blocks",
        )


def _binary(function: Callable[[Array, Array], Array]) -> Callable[..., Tensor]:
    def call(a: Tensor, b: Tensor | float, **_options: object) -> Tensor:
        _check_tensor(a)
        with np.errstate(all="ignore"):
            right = b.elements() if isinstance(b, Tensor) else b
            return _like(a, function(a.elements(), right))  # pyright: ignore[reportArgumentType]

    return on_each_device(call)


def _unary(function: Callable[..., Array]) -> Callable[..., Tensor]:
    def call(a: Tensor, *numbers: float, **_options: object) -> Tensor:
        _check_tensor(a)
        with np.errstate(all="ignore"):
            return _like(a, function(a.elements(), *numbers))

    return on_each_device(call)


add = _binary(lambda a, b: a + b)
subtract = _binary(lambda a, b: a - b)
multiply = _binary(lambda a, b: a * b)
divide = _binary(lambda a, b: a / b)
maximum = _binary(lambda a, b: np.maximum(a, b))
minimum = _binary(lambda a, b: np.minimum(a, b))
matmul = _binary(lambda a, b: np.matmul(a, b))

_NAMES = {"recip": "reciprocal", "logp1": "log1p"}
globals().update(
    {
        _NAMES.get(name, name): _unary(function.meaning)
        for name, function in MATH_FUNCTIONS.items()
        # These two follow the TT-Lang specification, which differs from the library.
        if name not in ("signbit", "threshold")
    }
)

__all__ = [name for name in dir() if not name.startswith("_")]  # pyright: ignore
_ = (Tile, ConcatMesh2dToTensor, ConcatMeshToTensor, ShardTensor2dMesh, ShardTensorToMesh)
_ = (all_gather, all_reduce, reduce_scatter)
_ = (DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, CoreGrid, CoreRange, CoreRangeSet)
_ = (NdShardSpec, ShardDistributionStrategy, num_cores_to_corerangeset, split_work_to_cores)
_ = (ShardOrientation, ShardSpec, ShardStrategy, TensorMemoryLayout, create_sharded_memory_config)
