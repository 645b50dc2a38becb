"""Makes a module say what it is compiled for: a system, and a device of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

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
from ttcodegen.dialects.ttcore.dialect import DeviceOp, devices, one_chip, set_system, system_of
from ttcodegen.dialects.ttcore.layouts import shape_text
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.layout.device import Device
from ttcodegen.systems.cards import default_system, mesh_system
from ttcodegen.systems.description import ARCHITECTURES, DEFAULT_ARCHITECTURE, SystemDescription


def _load_system(module: ModuleOp, path: str, arch: str) -> bool:
    """Sets the system that is named, if one is; else keeps the module's, or takes the default.
    Gives whether a system was described: an architecture alone says nothing of how many chips."""
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
    """Describes the device: all cores and banks of a chip, or of all chips of the mesh that the
    option or the module names. A system without a description has the chips of the mesh."""
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
    """The mesh that a module is for; raises CompileError for one that no system has."""
    meshes = module.attributes.get(MESHES)
    for mesh in meshes.data if isinstance(meshes, MeshesAttr) else ():
        require_possible(mesh.shape, module)
    return declared_mesh(module)


def _system_for(module: ModuleOp, mesh: MeshShape, is_described: bool) -> SystemDescription:
    """The system of a module. Without a description it has the chips of the mesh; one that is
    described may have too few, which raises CompileError."""
    system = system_of(module)
    assert system is not None
    chips = prod(mesh)
    if not is_described and chips > 1:
        system = mesh_system(system.arch, *mesh)
        set_system(module, system)
    if chips > len(system.chip_indices):
        raise CompileError(
            f"a mesh of {shape_text(mesh)} needs {chips} chips, and the system has "
            f"{len(system.chip_indices)}",
            module,
            remedy="name a system that has them with --system-desc (n300, t3000, galaxy), describe "
            "one with ttcore.system_desc, or take a smaller mesh",
        )
    return system


def _refuse_other_devices(module: ModuleOp, mesh: MeshShape, system: SystemDescription) -> None:
    """Raises CompileError if a device is described, by an op or by an attribute of the module, with
    chips that the system does not have, with one of them twice, or as another mesh of several
    chips than the module names."""
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
    """Sets `ttcore.system_desc`; raises CompileError if the file is no description."""

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

    The default is the system of the module, else the default system. Raises CompileError as the
    two passes above do.
    """

    name = "ttcore-register-device"

    system_desc_path: str = ""
    mock_system_desc_arch: str = ""
    mesh_shape: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        described = _load_system(op, self.system_desc_path, self.mock_system_desc_arch)
        _register_device(op, self.mesh_shape, described)
