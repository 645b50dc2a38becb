"""Refusals of hosts and links that a module or its project cannot have."""

from __future__ import annotations

from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape
from ttcodegen.emission.description import KINDS_WITH_EXECUTABLE, Fabric, ProjectKind
from ttcodegen.foundation.diagnostics import CompileError


def refuse_fabric(mesh: MeshShape, fabric: Fabric, target: str, kind: ProjectKind) -> None:
    """Raises CompileError if a fabric was chosen that nothing of the project would configure."""
    if fabric == "linear":
        return
    if mesh == ONE_CHIP:
        raise CompileError(
            f"a {fabric} needs several chips, and the module is for one",
            remedy="leave --fabric out, or give --mesh-shape",
        )
    if kind == "sources":
        raise CompileError(
            "a project of sources opens no devices",
            remedy="leave --fabric out: the program that opens the mesh configures its fabric",
        )
    if target == "ttmetal" and fabric == "torus":
        raise CompileError(
            "the kernels between chips of --target ttmetal send along lines and rings, not over a "
            "torus of two dimensions",
            remedy="give --fabric ring",
        )


def refuse_hosts(mesh: MeshShape, hosts: MeshShape, target: str, kind: ProjectKind) -> None:
    """Raises CompileError if the mesh of a module does not divide among the hosts, or the project
    has nothing that runs on them."""
    if hosts == ONE_CHIP:
        return
    named = f"{hosts[0]}x{hosts[1]}"
    if any(devices % count for devices, count in zip(mesh, hosts, strict=True)):
        raise CompileError(
            f"a mesh of {mesh[0]}x{mesh[1]} chips does not divide among {named} hosts",
            remedy="the rows of chips are divided among the rows of hosts, the columns among the "
            "columns",
        )
    if target == "ttmetal":
        raise CompileError(
            "programs of --target ttmetal run on one host",
            remedy="leave --target out: calls of the library run on several",
        )
    if kind not in KINDS_WITH_EXECUTABLE:
        raise CompileError(
            f"the executable runs on {named} hosts, which --kind {kind} leaves out",
            remedy="give --kind exe or both",
        )
