"""System and device of a module, and verification that it fits the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ttcodegen.dialects.core.datatypes import DataType, element_of, normalized_data_type, shape_of
from ttcodegen.dialects.operations.functions import argument_type
from ttcodegen.dialects.ttcore.device import (
    MESHES,
    ONE_CHIP,
    DeviceAttr,
    DeviceDescription,
    MeshesAttr,
    MeshShape,
    declared_mesh,
    require_possible,
    set_mesh,
    sizes_in,
    two_dimensional,
)
from ttcodegen.dialects.ttcore.dialect import (
    ArgumentType,
    DeviceOp,
    LoadCachedOp,
    devices,
    one_chip,
    set_system,
    system_of,
)
from ttcodegen.dialects.ttcore.layouts import shape_text
from ttcodegen.dialects.ttmetal.programs import DEALLOCATE_BUFFER, RUN_PROGRAM
from ttcodegen.dialects.ttnn.placement import TensorPlacement, TTNNLayoutAttr
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics, Note
from ttcodegen.layout.device import Device
from ttcodegen.layout.placements import TiledShape, bank_bytes, tile_bytes_of
from ttcodegen.systems.cards import MACHINES, default_system, mesh_system
from ttcodegen.systems.description import (
    ARCHITECTURES,
    DEFAULT_ARCHITECTURE,
    ChipDescription,
    SystemDescription,
)
from ttcodegen.transforms.const_eval import is_const_eval
from ttcodegen.transforms.rewriting import body_of
from ttcodegen.transforms.ttnn.layout import buffer_owners

if TYPE_CHECKING:
    from ttcodegen.dialects.ttmetal.dialect import RunProgramOp


# Attaches the system description and the device that a module is compiled for.


def _load_system(module: ModuleOp, path: str, arch: str) -> bool:
    """Sets the named system; without a name keeps the module's own or sets the default.

    Returns whether the system is described: an architecture alone leaves the number of chips open.
    """
    if path and arch:
        raise CompileError(
            "a system description and an architecture are given",
            remedy="a system description says of which architecture its chips are",
        )
    if path:
        from ttcodegen.flatbuffer.system import load_system

        set_system(module, load_system(path))
        return path not in ARCHITECTURES
    if not arch and system_of(module) is not None:
        return True
    set_system(module, default_system(arch or DEFAULT_ARCHITECTURE))
    return False


def _register_device(module: ModuleOp, mesh_shape: str, is_described: bool) -> None:
    """Adds `ttcore.device`: one chip, or the mesh of the option or the module, with all cores and
    banks.

    A system without a description gets the chips of the mesh.
    """
    if mesh_shape:
        set_mesh(module, sizes_in(mesh_shape))
    mesh = _mesh_of(module)
    system = _system_for(module, mesh, is_described)
    _refuse_other_devices(module, mesh, system)
    for old in devices(module):
        module.body.block.erase_op(old)
    description = one_chip(system.chip.grid, system.chip.dram_grid)
    if mesh != ONE_CHIP:
        several = Device.of_system(system, mesh).description
        description = replace(several, dram_grid=description.dram_grid)
    device = DeviceOp(description)
    first = module.body.block.first_op
    if first is None:
        module.body.block.add_op(device)
    else:
        module.body.block.insert_op_before(device, first)


def _mesh_of(module: ModuleOp) -> MeshShape:
    """Returns the mesh of a module; raises CompileError for one that no system has."""
    meshes = module.attributes.get(MESHES)
    for mesh in meshes.data if isinstance(meshes, MeshesAttr) else ():
        require_possible(mesh.shape, module)
    return declared_mesh(module)


def _system_for(module: ModuleOp, mesh: MeshShape, is_described: bool) -> SystemDescription:
    """Returns the system of a module.

    Without a description it has the chips of the mesh. Raises CompileError if a described system
    has fewer chips than the mesh.
    """
    system = system_of(module)
    assert system is not None
    chips = prod(mesh)
    if not is_described and chips > 1:
        system = mesh_system(system.arch, *mesh)
        set_system(module, system)
    if chips > len(system.chip_indices):
        large = [m.name for m in MACHINES if m.arch == system.arch and m.chips >= chips]
        named = (
            f"name a system that has them with --machine ({', '.join(large)}), " if large else ""
        )
        raise CompileError(
            f"a mesh of {shape_text(mesh)} needs {chips} chips, and the system has "
            f"{len(system.chip_indices)}",
            module,
            remedy=f"{named}describe one with ttcore.system_desc, or take a smaller mesh",
        )
    return system


def _refuse_other_devices(module: ModuleOp, mesh: MeshShape, system: SystemDescription) -> None:
    """Verifies the devices that ops or module attributes describe.

    Raises CompileError if a device has chips that the system lacks, has a chip twice, or is a
    multi-chip mesh of another shape than the module's.
    """
    described: list[tuple[Attribute | None, Operation]]
    described = [(op.device_attr, op) for op in devices(module)]
    described += [(attribute, module) for attribute in module.attributes.values()]
    for attribute, place in described:
        if isinstance(attribute, DeviceAttr):
            _refuse_other_device(attribute.data, mesh, len(system.chip_indices), place)


def _refuse_other_device(
    device: DeviceDescription, mesh: MeshShape, chips: int, place: Operation
) -> None:
    found = ", ".join(map(str, device.chip_ids))
    if any(not 0 <= chip < chips for chip in device.chip_ids):
        raise CompileError(
            f"the device has the chips {found}, the system has {chips}, counted from 0",
            place,
            remedy="describe the system with ttcore.system_desc or --system-desc",
        )
    if len(set(device.chip_ids)) < len(device.chip_ids):
        raise CompileError(f"the device has a chip twice: {found}", place)
    shape = two_dimensional(device.mesh_shape)
    if mesh != ONE_CHIP and shape not in (None, ONE_CHIP, mesh):
        raise CompileError(
            f"the device is a mesh of {shape_text(device.mesh_shape)}, and the module is for one "
            f"of {shape_text(mesh)}",
            place,
            remedy="leave the device out: it follows from the mesh",
        )


@dataclass(frozen=True)
class LoadSystemDescription(ModulePass):
    """Sets `ttcore.system_desc`; raises CompileError if the file is no system description."""

    name = "ttir-load-system-desc"

    path: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _load_system(op, self.path, "")


@dataclass(frozen=True)
class ImplicitDevice(ModulePass):
    """Adds `ttcore.device`; raises CompileError for a mesh of more chips than the system has."""

    name = "ttir-implicit-device"

    mesh_shape: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _register_device(op, self.mesh_shape, _load_system(op, "", ""))


@dataclass(frozen=True)
class RegisterDevice(ModulePass):
    """Sets `ttcore.system_desc` and adds `ttcore.device`.

    The default is the system of the module, else the default system. Raises CompileError as
    `LoadSystemDescription` and `ImplicitDevice` do.
    """

    name = "ttcore-register-device"

    system_desc_path: str = ""
    mock_system_desc_arch: str = ""
    mesh_shape: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        described = _load_system(op, self.system_desc_path, self.mock_system_desc_arch)
        _register_device(op, self.mesh_shape, described)


# Verification that a program fits the device: DRAM, L1, cores and data types.

DEALLOCATIONS = ("ttnn.deallocate", DEALLOCATE_BUFFER)


@dataclass(frozen=True)
class CheckMemory(ModulePass):
    """Refuses programs that the device of the module cannot hold.

    Tensors count from the op that defines them until they are deallocated; weights and values
    computed from them always count, since a program computes its constants before its first run.
    Circular buffers of device programs count while the program runs; memory that library calls
    allocate internally is unknown.

    Raises CompileError that names the op at which memory is exhausted and its largest users; data
    types that the chip lacks; or tensors sharded over more cores than the chip has.
    """

    name = "ttcore-check-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = system_of(op) or default_system(DEFAULT_ARCHITECTURE)
        functions = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        diagnostics = Diagnostics()
        for function in functions:
            _check_types(function, system.chip, diagnostics)
        diagnostics.raise_errors()
        for function in functions:
            _Usage(function, system.chip).check()


@dataclass(frozen=True)
class CheckSizes(ModulePass):
    """Refuses inputs, outputs and constants that alone exceed the DRAM of the module's device.

    Runs before any of them is evaluated. Raises CompileError with all such values.
    """

    name = "ttcore-check-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = (system_of(op) or default_system(DEFAULT_ARCHITECTURE)).chip
        room = dram_size(chip)
        diagnostics = Diagnostics()
        for function in (f for f in op.body.block.ops if isinstance(f, FuncOp)):
            for value, owner in _stored_values(function):
                needed = _least_bytes(value)
                if needed > room:
                    diagnostics.error(
                        f"a tensor of type {value.type} does not fit into the DRAM of {chip.arch}: "
                        f"it needs {_shown(needed)}, {_shown(room)} can be used",
                        owner,
                    )
        diagnostics.raise_errors()


def _stored_values(function: FuncOp) -> Iterator[tuple[SSAValue, Operation | SSAValue]]:
    """Yields arguments, returned values and results of ops without operands, each with its op."""
    block = body_of(function)
    for argument in block.args:
        yield argument, argument
    for op in block.ops:
        values = op.operands if isinstance(op, ReturnOp) else () if op.operands else op.results
        for value in values:
            yield value, op


def _least_bytes(value: SSAValue) -> int:
    """Lower bound on a tensor's bytes in tiles.

    An argument counts in its narrowest type, since weights may become block floats.
    """
    data_type = normalized_data_type(element_of(value.type))
    if data_type is None or isinstance(value, BlockArgument):
        data_type = DataType.BFLOAT4_B
    return TiledShape(shape_of(value.type)).tiles * tile_bytes_of(data_type)


def _placements(op: Operation) -> Iterator[TensorPlacement]:
    values: list[SSAValue] = list(op.results)
    if isinstance(op, FuncOp):
        values += body_of(op).args
    for value in values:
        if (placement := _placement(value.type)) is not None:
            yield placement


def _placement(type_: Attribute) -> TensorPlacement | None:
    """Returns the layout of a tensor, or None if none was assigned."""
    if isinstance(type_, TensorType) and isinstance(type_.encoding, TTNNLayoutAttr):
        return type_.encoding.data
    return None


def _check_types(function: FuncOp, chip: ChipDescription, diagnostics: Diagnostics) -> None:
    warned: set[str] = set()
    for op in function.walk():
        for placement in _placements(op):
            name = placement.data_type.mlir
            if name not in chip.supported_data_types and name not in warned:
                warned.add(name)
                diagnostics.error(
                    f"the chip has no tensors of {name}",
                    op,
                    remedy=f"it has {', '.join(chip.supported_data_types)}",
                )
            shards = placement.shards
            if shards is not None and shards.cores > chip.cores:
                diagnostics.error(
                    f"a tensor is divided among {shards.cores} cores, the chip has {chip.cores}", op
                )
            elif shards is not None and placement.buffer_type == "l1":
                rows, columns = chip.grid
                for cores in shards.core_ranges:
                    if cores.last_row >= rows or cores.last_column >= columns:
                        diagnostics.error(
                            f"a tensor is on cores up to column {cores.last_column} and row "
                            f"{cores.last_row}, the chip has {columns} columns and {rows} rows, "
                            "counted from 0",
                            op,
                        )
                        break


@dataclass(frozen=True)
class Banks:
    """Bytes that a tensor takes in each bank of a memory."""

    memory: str
    bytes: int


def banks_of(placement: TensorPlacement, chip: ChipDescription) -> Banks | None:
    """Returns the bytes per bank of a tensor, or None if it is on the host."""
    if placement.buffer_type == "system_memory":
        return None
    in_dram = placement.buffer_type == "dram"
    alignment = chip.noc_dram_address_align_bytes if in_dram else chip.noc_l1_address_align_bytes
    banks = chip.num_dram_channels if in_dram else chip.cores
    return Banks(placement.buffer_type, bank_bytes(placement, banks, alignment))


@dataclass
class _Usage:
    """Memory use of a function, tracked op by op."""

    function: FuncOp
    chip: ChipDescription
    taken: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Bytes per bank by memory, then by kind of use."""
    known: dict[TensorPlacement, Banks | None] = field(
        default_factory=dict[TensorPlacement, "Banks | None"]
    )
    """Cached bytes of tensors by layout: most tensors share a layout with others."""
    is_limited: bool = True
    """True if exceeding the memory of the device is an error."""
    most: int = 0
    """Peak bytes per DRAM bank so far."""

    def check(self) -> None:
        """Raises CompileError at the first op that exceeds the memory."""
        block = body_of(self.function)
        owners = buffer_owners(block)
        for argument in block.args:
            weight = is_const_eval(self.function) or argument_type(
                self.function, argument.index
            ) in (ArgumentType.PARAMETER, ArgumentType.CONSTANT)
            self._take(argument, "weights" if weight else "inputs", self.function)
        for op in block.ops:
            kind = "constants" if isinstance(op, LoadCachedOp) else "activations"
            for result in op.results:
                if owners[result] is result:
                    self._take(result, kind, op)
            if op.name in DEALLOCATIONS and owners[op.operands[0]] is op.operands[0]:
                self._release(op.operands[0])
            if op.name == RUN_PROGRAM:
                self._run(cast("RunProgramOp", op))

    def _banks(self, value: SSAValue) -> Banks | None:
        placement = _placement(value.type)
        if placement is None:
            return None
        if placement not in self.known:
            self.known[placement] = banks_of(placement, self.chip)
        return self.known[placement]

    def _take(self, value: SSAValue, kind: str, op: Operation) -> None:
        banks = self._banks(value)
        if banks is None:
            return
        kinds = self.taken.setdefault(banks.memory, {})
        kinds[kind] = kinds.get(kind, 0) + banks.bytes
        if banks.memory == "dram":
            self.most = max(self.most, sum(kinds.values()))
        if self.is_limited and sum(kinds.values()) > self._limit(banks.memory):
            raise self._full(banks.memory, kinds, op)

    def _run(self, op: RunProgramOp) -> None:
        """Counts the circular buffers of a program, which are freed when it ends."""
        program = op.program.data
        kinds = self.taken.setdefault("l1", {})
        kinds["circular buffers"] = program.l1_bytes
        if sum(kinds.values()) > self._limit("l1"):
            raise self._full("l1", kinds, op)
        del kinds["circular buffers"]

    def _release(self, value: SSAValue) -> None:
        banks = self._banks(value)
        if banks is not None:
            self.taken[banks.memory]["activations"] -= banks.bytes

    def _limit(self, memory: str) -> int:
        """Bytes of each bank that tensors may take."""
        if memory == "dram":
            return self.chip.dram_unreserved_end - self.chip.dram_unreserved_base
        return self.chip.usable_l1

    def _full(self, memory: str, kinds: dict[str, int], op: Operation) -> CompileError:
        in_dram = memory == "dram"
        banks = self.chip.num_dram_channels if in_dram else self.chip.cores
        where = "DRAM" if in_dram else "L1"
        needed, limit = sum(kinds.values()) * banks, self._limit(memory) * banks
        notes = [
            Note(f"{kind}: {_shown(size * banks)}") for kind, size in kinds.items() if size > 0
        ]
        return CompileError(
            f"'{self.function.sym_name.data}' does not fit into the {where} of {self.chip.arch}: "
            f"it needs {_shown(needed)} here, {_shown(limit)} can be used",
            op,
            remedy="narrower data types or a smaller batch take less; a chip with more memory is "
            "named by a system description",
            notes=notes,
        )


def dram_use(function: FuncOp, chip: ChipDescription) -> int:
    """Returns the peak DRAM use of a function's tensors on one chip, in bytes."""
    usage = _Usage(function, chip, is_limited=False)
    usage.check()
    return usage.most * chip.num_dram_channels


def dram_size(chip: ChipDescription) -> int:
    """Returns the bytes of DRAM available for tensors."""
    return (chip.dram_unreserved_end - chip.dram_unreserved_base) * chip.num_dram_channels


def _shown(size: int) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} bytes"
