"""Makes a module say what it is compiled for: a system, and a device of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ttcodegen.diagnostics import CompileError
from ttcodegen.dialects.system import DeviceOp, devices, one_chip, set_system, system_of
from ttcodegen.dialects.ttcore_device import DeviceAttr
from ttcodegen.systems.description import (
    DEFAULT_ARCHITECTURE,
    SystemDescription,
    default_system,
)


def _load_system(module: ModuleOp, path: str, arch: str) -> None:
    """Sets the system that is named, if one is; else keeps the module's, or takes the default."""
    if path and arch:
        raise CompileError(
            "a system description and an architecture are given",
            remedy="a system description says of which architecture its chips are",
        )
    if path:
        from ttcodegen.flatbuffer.system import load_system

        set_system(module, load_system(path))
    elif arch or system_of(module) is None:
        set_system(module, default_system(arch or DEFAULT_ARCHITECTURE))


def _register_device(module: ModuleOp, mesh_shape: str) -> None:
    """Describes one device with all cores and banks of the first chip."""
    system = system_of(module)
    assert system is not None
    sizes = [int(size) for size in re.findall(r"\d+", mesh_shape)]
    if any(size != 1 for size in sizes):
        raise CompileError(
            f"a mesh of {'x'.join(map(str, sizes))} devices is not supported",
            remedy="programs are compiled for one device: leave the mesh out",
        )
    _refuse_missing_chips(module, system)
    for old in devices(module):
        module.body.block.erase_op(old)
    device = DeviceOp(one_chip(system.chip.grid, system.chip.dram_grid))
    first = module.body.block.first_op
    if first is None:
        module.body.block.add_op(device)
    else:
        module.body.block.insert_op_before(device, first)


def _refuse_missing_chips(module: ModuleOp, system: SystemDescription) -> None:
    """Raises CompileError if a device is described, by an op or by an attribute of the module, with
    chips that the system does not have."""
    described: list[tuple[Attribute | None, Operation]]
    described = [(op.device_attr, op) for op in devices(module)]
    described += [(attribute, module) for attribute in module.attributes.values()]
    chips = len(system.chip_indices)
    for attribute, place in described:
        if isinstance(attribute, DeviceAttr) and max(attribute.data.chip_ids, default=0) >= chips:
            found = ", ".join(map(str, attribute.data.chip_ids))
            raise CompileError(
                f"the device has the chips {found}, the system has {chips}, counted from 0",
                place,
                remedy="describe the system with ttcore.system_desc or --system-desc",
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
    """Adds `ttcore.device`; raises CompileError for meshes of several devices."""

    name = "ttir-implicit-device"

    mesh_shape: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _load_system(op, "", "")
        _register_device(op, self.mesh_shape)


@dataclass(frozen=True)
class RegisterDevice(ModulePass):
    """Sets `ttcore.system_desc` and adds `ttcore.device`.

    A system that is not named is that of the module, or the default one. Raises CompileError as the
    two passes above do.
    """

    name = "ttcore-register-device"

    system_desc_path: str = ""
    mock_system_desc_arch: str = ""
    mesh_shape: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _load_system(op, self.system_desc_path, self.mock_system_desc_arch)
        _register_device(op, self.mesh_shape)
