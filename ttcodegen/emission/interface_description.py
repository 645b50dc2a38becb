"""Interface of a project: entry functions and constants, and refused hosts and links."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ttcodegen.dialects.core.datatypes import constant_array
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.emission.description import (
    KINDS_WITH_EXECUTABLE,
    DataFile,
    Fabric,
    FunctionDescription,
    ProjectKind,
    TensorDescription,
    TensorKind,
    output_tolerance,
)
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.modules import PRODUCT_WEIGHTS, qualified
from ttcodegen.ops.movement.layout import converted

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from ttcodegen.conversions.host_functions.cpp_interface import ConstantFile
    from ttcodegen.conversions.host_functions.interface import Entry, InterfaceTensor


def data_file(constant: ConstantFile) -> DataFile:
    """Describes the data file of a constant, in the data type that the module takes."""
    array = constant_array(constant.value)
    if not constant.data_type.is_float and array.dtype.name != constant.data_type.numpy:
        array = converted(array, constant.data_type.numpy)
    return DataFile(constant.name, array)


def describe_function(
    entry: Entry,
    tuned: Collection[SSAValue],
    argument_dtypes: Sequence[str],
    result_dtypes: Sequence[str],
) -> FunctionDescription:
    """Describes an entry function.

    Args:
        entry: the function.
        tuned: the weights whose data type is a constant of src/tuning.hpp.
        argument_dtypes: the numpy dtypes of its arguments in the source.
        result_dtypes: those of its results.
    """
    return FunctionDescription(
        entry.name,
        entry.cpp_name,
        tuple(_tensor(p, d, tuned) for p, d in zip(entry.arguments, argument_dtypes, strict=True)),
        tuple(_tensor(p, d) for p, d in zip(entry.results, result_dtypes, strict=True)),
        has_constants=False,
    )


def _tensor(
    tensor: InterfaceTensor, source_dtype: str, tuned: Collection[SSAValue] = ()
) -> TensorDescription:
    placement = placement_of(tensor.value)
    return TensorDescription(
        tensor.name,
        tensor.field,
        TensorKind(tensor.kind),
        tensor.shape,
        placement.data_type,
        placement.layout,
        placement.buffer_type,
        source_dtype,
        memory_layout=placement.memory_layout,
        shards=placement.shards,
        divided=tensor.divided,
        path=tensor.path,
        tolerance=output_tolerance(tensor.value, source_dtype) if tensor.kind == "output" else None,
        tuned_type=qualified(PRODUCT_WEIGHTS) if tensor.value in tuned else "",
    )


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
