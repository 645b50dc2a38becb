"""Target system of a module: its mesh, and the chips of all hosts."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, declared_mesh, set_hosts
from ttcodegen.dialects.ttcore.dialect import set_system, system_of
from ttcodegen.foundation.diagnostics import CompileError, Diagnostics
from ttcodegen.systems.cards import default_system, joined_system, mesh_system
from ttcodegen.systems.description import DEFAULT_ARCHITECTURE, SystemDescription

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def mesh_of_all_chips(system: SystemDescription, hosts: MeshShape) -> MeshShape:
    """Returns the mesh of all chips of hosts that each have `system`."""
    rows, columns = system.mesh
    return rows * hosts[0], columns * hosts[1]


def refuse_other_mesh(module: ModuleOp, mesh: MeshShape) -> None:
    """Raises CompileError if a module declares a different mesh than the requested one."""
    named = declared_mesh(module)
    if ONE_CHIP not in (mesh, named) and mesh != named:
        rows, columns = mesh
        raise CompileError(
            f"the module is for a mesh of {named[0]}x{named[1]} chips, not of {rows}x{columns}",
            module,
            remedy="leave the shape of the mesh out: the module says it",
        )


def warn_if_undivided(module: ModuleOp, target: str, diagnostics: Diagnostics | None) -> None:
    """Warns if a module for several chips has no shardings."""
    if declared_mesh(module) != ONE_CHIP:
        from ttcodegen.transforms.mesh.parallelism import is_undivided, warn_undivided

        if is_undivided(module):
            warn_undivided(module, target, diagnostics)


def set_target_system(
    module: ModuleOp, arch: str, system: SystemDescription | None, hosts: MeshShape
) -> SystemDescription:
    """Sets the system that a module is compiled for, and returns it.

    Args:
        module: the module, which says its mesh.
        arch: architecture; empty for that of the system.
        system: system of each host; None for the one that the module states, unless `arch` is
            given, or the default system of the architecture.
        hosts: rows and columns of hosts in the mesh.

    Raises:
        CompileError: if architecture and system do not match, or the system is too small.
    """
    system = system or (None if arch else system_of(module))
    if system is None:
        # An architecture does not determine the number of chips.
        given, mesh = arch or DEFAULT_ARCHITECTURE, declared_mesh(module)
        system = default_system(given) if mesh == ONE_CHIP else mesh_system(given, *mesh)
    if arch not in ("", system.arch):
        from ttcodegen.flatbuffer.system import other_architecture

        raise other_architecture(system, arch)
    system = _of_all_hosts(module, system, hosts)
    if hosts != ONE_CHIP:
        set_hosts(module, hosts)
    set_system(module, system)
    return system


def _of_all_hosts(
    module: ModuleOp, system: SystemDescription, hosts: MeshShape
) -> SystemDescription:
    """Returns the joined system of several hosts that each have `system`.

    A system with enough chips for the whole mesh is returned unchanged.

    Raises:
        CompileError: if a host has too few chips for its block of the mesh.
    """
    mesh, chips = declared_mesh(module), len(system.chip_indices)
    if hosts == ONE_CHIP or chips >= prod(mesh):
        return system
    needed = prod(mesh) // prod(hosts)
    if chips < needed:
        raise CompileError(
            f"a mesh of {mesh[0]}x{mesh[1]} needs {needed} chips of each of {hosts[0]}x{hosts[1]} "
            f"hosts, and the system of a host has {chips}",
            module,
            remedy="name a larger system, give more hosts, or take a smaller mesh",
        )
    return joined_system(system, hosts)
