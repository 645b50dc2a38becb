"""Description of entry functions and constants from a lowered module."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ttcodegen.dialects.core.datatypes import constant_array
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.emission.description import (
    DataFile,
    FunctionDescription,
    TensorDescription,
    TensorKind,
    output_tolerance,
)
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
