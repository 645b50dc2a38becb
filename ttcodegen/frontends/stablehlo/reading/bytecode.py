"""MLIR bytecode: sections, strings, operations, and VHLO's attribute order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from ttcodegen.foundation.diagnostics import BYTECODE_MAGIC, CompileError

# The container of MLIR's bytecode: sections, strings, dialects, and the tree of operations.
#
# The format is documented and versioned (https://mlir.llvm.org/docs/BytecodeFormat/); versions 1
# to 6 are read. What types and attributes are made of is the business of their dialects: `Tables`
# keeps their bytes until they are needed.

NEWEST_VERSION = 6
_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR, _RESOURCES, _RESOURCE_OFFSETS = range(7)
_PROPERTIES = 8
_SECTIONS = 9
_ALIGNED = 0x80
_DEEPEST = 200

T = TypeVar("T")


def damaged(offset: int, what: str) -> NoReturn:
    """Raises CompileError for malformed bytecode."""
    raise CompileError(
        f"the bytecode is damaged at byte {offset}: {what}",
        remedy="write the file again; a download or a copy may have been cut off",
    )


class Reader:
    """Reader of the format's primitives from `data[offset:end]`."""

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self.data = data
        self.offset = offset
        self.end = len(data) if end is None else end

    def byte(self) -> int:
        """Reads one byte."""
        if self.offset >= self.end:
            damaged(self.offset, "it ends here")
        self.offset += 1
        return self.data[self.offset - 1]

    def take(self, size: int) -> bytes:
        """Reads a number of bytes."""
        if size > self.end - self.offset:
            damaged(self.offset, f"{size} more bytes are needed")
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def number(self) -> int:
        """Reads a varint: trailing zeros of its first byte count the bytes that follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(8), "little")
        more = (first & -first).bit_length() - 1
        value = int.from_bytes(bytes([first]) + self.take(more), "little")
        return value >> (more + 1)

    def signed(self) -> int:
        """Reads a zigzag-encoded signed varint."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def numbers(self) -> list[int]:
        """Reads a count and that many varints."""
        return [self.number() for _ in range(self.count())]

    def signed_numbers(self) -> list[int]:
        """Reads a count and that many signed varints."""
        return [self.signed() for _ in range(self.count())]

    def count(self) -> int:
        """Reads a count of entries of at least one byte each."""
        value = self.number()
        if value > self.end - self.offset:
            damaged(self.offset, f"{value} entries do not fit into what follows")
        return value

    def text(self) -> str:
        """Reads a null-terminated string."""
        end = self.data.find(b"\0", self.offset, self.end)
        if end < 0:
            damaged(self.offset, "a text has no end")
        found = self.data[self.offset : end].decode("utf-8", "replace")
        self.offset = end + 1
        return found

    def section(self) -> tuple[int, Reader]:
        """Reads a section: its id and its content."""
        kind = self.byte()
        size = self.number()
        if kind & _ALIGNED:
            alignment = self.number()
            if alignment == 0 or alignment & (alignment - 1):
                damaged(self.offset, f"{alignment} is no alignment")
            self.take(-self.offset % alignment)
        if size > self.end - self.offset:
            damaged(self.offset, f"a section of {size} bytes does not fit into what follows")
        content = Reader(self.data, self.offset, self.offset + size)
        self.offset += size
        return kind & ~_ALIGNED, content


@dataclass
class Entry:
    """A type or an attribute as stored in the file."""

    dialect: str
    start: int
    end: int
    encoded: bool
    """True if its dialect encodes it; text otherwise."""


@dataclass
class Tables:
    """Index tables that bytecode operations refer to."""

    data: bytes
    version: int
    producer: str
    strings: list[str] = field(default_factory=list[str])
    operations: list[str] = field(default_factory=list[str])
    attributes: list[Entry] = field(default_factory=list[Entry])
    types: list[Entry] = field(default_factory=list[Entry])
    properties: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Offset ranges of operation properties."""

    def string(self, reader: Reader) -> str:
        """Reads a string by its index."""
        return picked(self.strings, reader, "string")

    def reader(self, entry: Entry) -> Reader:
        """Returns a reader of the encoding of a type or attribute."""
        return Reader(self.data, entry.start, entry.end)


def picked(values: Sequence[T], reader: Reader, what: str) -> T:
    """Returns the value whose index is read next."""
    index = reader.number()
    if index >= len(values):
        damaged(reader.offset, f"there is no {what} {index}")
    return values[index]


@dataclass
class RawBlock:
    """Block with the types and locations of its arguments as indices, and its operations."""

    arguments: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, "int | None"]])
    first: int = 0
    """Index of the first argument in its value scope."""
    operations: list[RawOperation] = field(default_factory=list["RawOperation"])


@dataclass
class RawOperation:
    """Operation whose references are indices."""

    name: str
    location: int
    attributes: int | None
    results: list[int]
    first_result: int
    operands: list[int]
    regions: list[list[RawBlock]] = field(default_factory=list[list[RawBlock]])
    isolated: bool = False
    """True if its regions have value scopes of their own."""
    properties: int | None = None
    successors: bool = False


def read_bytecode(data: bytes) -> tuple[Tables, RawBlock]:
    """Reads the tables of a file and the block of its top-level operations.

    Raises:
        CompileError: if the file is damaged, or of a newer version.
    """
    reader = Reader(data)
    if reader.take(4) != BYTECODE_MAGIC:
        damaged(0, "it does not start as bytecode does")
    version = reader.number()
    producer = reader.text()
    if version > NEWEST_VERSION:
        raise CompileError(
            f"the bytecode is of version {version} of the format (by {producer}); versions up to "
            f"{NEWEST_VERSION} are read",
            remedy="serialize the module for an older version, or give it as text",
        )
    sections: dict[int, Reader] = {}
    while reader.offset < reader.end:
        kind, content = reader.section()
        if kind >= _SECTIONS or kind in sections:
            damaged(content.offset, f"section {kind} is not expected")
        sections[kind] = content
    for kind in (_STRINGS, _DIALECTS, _ENTRIES, _OFFSETS, _IR):
        if kind not in sections:
            damaged(len(data), f"section {kind} is missing")
    tables = Tables(data, version, producer)
    _read_strings(tables, sections[_STRINGS])
    dialects = _read_dialects(tables, sections[_DIALECTS])
    _read_offsets(tables, sections[_OFFSETS], sections[_ENTRIES], dialects)
    if _PROPERTIES in sections:
        _read_properties(tables, sections[_PROPERTIES])
    body = _Body(tables)
    return tables, body.block(sections[_IR], _Scope(), 0)


def _read_strings(tables: Tables, reader: Reader) -> None:
    """Reads the string section: sizes in reverse order, then null-terminated strings."""
    sizes = reader.numbers()
    for size in reversed(sizes):
        text = reader.take(size)
        tables.strings.append(text[:-1].decode("utf-8", "replace"))


def _read_dialects(tables: Tables, reader: Reader) -> list[str]:
    names: list[str] = []
    for _ in range(reader.count()):
        number = reader.number()
        versioned = False
        if tables.version >= 1:
            number, versioned = number >> 1, bool(number & 1)
        if number >= len(tables.strings):
            damaged(reader.offset, f"there is no string {number}")
        names.append(tables.strings[number])
        if versioned:
            reader.section()
    if tables.version >= 4:
        reader.number()  # how many names follow in all
    while reader.offset < reader.end:
        dialect = picked(names, reader, "dialect")
        for _ in range(reader.count()):
            number = reader.number()
            if tables.version >= 5:
                number >>= 1
            if number >= len(tables.strings):
                damaged(reader.offset, f"there is no string {number}")
            tables.operations.append(f"{dialect}.{tables.strings[number]}")
    return names


def _read_offsets(tables: Tables, reader: Reader, entries: Reader, dialects: list[str]) -> None:
    counts = reader.number(), reader.number()
    start = entries.offset
    for table, count in zip((tables.attributes, tables.types), counts, strict=True):
        while len(table) < count:
            dialect = picked(dialects, reader, "dialect")
            for _ in range(reader.count()):
                number = reader.number()
                end = start + (number >> 1)
                if end > entries.end:
                    damaged(reader.offset, "a type or an attribute is longer than its section")
                table.append(Entry(dialect, start, end, bool(number & 1)))
                start = end


def _read_properties(tables: Tables, reader: Reader) -> None:
    for _ in range(reader.count()):
        size = reader.number()
        start = reader.offset
        reader.take(size)
        tables.properties.append((start, start + size))


class _Scope:
    """Value numbering: values of a nested region follow those of the enclosing regions."""

    def __init__(self) -> None:
        self.total = 0
        self.next: list[int] = [0]

    def open(self, count: int) -> None:
        """Enters a region with `count` values."""
        self.next.append(self.total)
        self.total += count

    def close(self, count: int) -> None:
        """Leaves a region with `count` values."""
        self.next.pop()
        self.total -= count

    def define(self, count: int) -> int:
        """Defines `count` values; returns the index of the first."""
        first = self.next[-1]
        self.next[-1] += count
        return first


class _Body:
    """Reader of blocks and operations."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.version = tables.version

    def block(self, reader: Reader, scope: _Scope, depth: int) -> RawBlock:
        """Reads a block with its operations."""
        if depth > _DEEPEST:
            damaged(reader.offset, "regions are nested too deeply")
        encoding = reader.number()
        block = RawBlock()
        if encoding & 1:
            for _ in range(reader.count()):
                block.arguments.append(self._argument(reader))
            block.first = scope.define(len(block.arguments))
            if self.version >= 3 and reader.byte():
                self._skip_use_orders(reader, len(block.arguments))
        operations = encoding >> 1
        if operations > reader.end - reader.offset:
            damaged(reader.offset, f"{operations} operations do not fit into what follows")
        for _ in range(operations):
            block.operations.append(self._operation(reader, scope, depth))
        return block

    def _argument(self, reader: Reader) -> tuple[int, int | None]:
        number = reader.number()
        if self.version < 4:
            return number, reader.number()
        return number >> 1, reader.number() if number & 1 else None

    def _operation(self, reader: Reader, scope: _Scope, depth: int) -> RawOperation:
        name = picked(self.tables.operations, reader, "operation")
        mask = reader.byte()
        location = reader.number()
        attributes = reader.number() if mask & 0x01 else None
        properties = reader.number() if mask & 0x40 else None
        results = reader.numbers() if mask & 0x02 else []
        first = scope.define(len(results))
        operands = reader.numbers() if mask & 0x04 else []
        successors = reader.numbers() if mask & 0x08 else []
        if mask & 0x20:
            self._skip_use_orders(reader, len(results))
        operation = RawOperation(name, location, attributes, results, first, operands)
        operation.properties, operation.successors = properties, bool(successors)
        if mask & 0x10:
            encoding = reader.number()
            operation.isolated = bool(encoding & 1)
            inner = reader
            if operation.isolated and self.version >= 2:
                kind, inner = reader.section()
                if kind != _IR:
                    damaged(inner.offset, "a region is expected")
            for _ in range(encoding >> 1):
                region_scope = _Scope() if operation.isolated else scope
                operation.regions.append(self._region(inner, region_scope, depth + 1))
        return operation

    def _region(self, reader: Reader, scope: _Scope, depth: int) -> list[RawBlock]:
        count = reader.count()
        if count == 0:
            return []
        values = reader.number()
        scope.open(values)
        blocks = [self.block(reader, scope, depth) for _ in range(count)]
        scope.close(values)
        return blocks

    def _skip_use_orders(self, reader: Reader, values: int) -> None:
        """Skips use-list orders, which the compiler does not need."""
        count = reader.count() if values > 1 else 1
        for _ in range(count):
            if values > 1:
                reader.number()
            encoding = reader.number()
            for _ in range(encoding >> 1):
                reader.number()


# Attributes of each VHLO operation in bytecode order.
#
# They are in the order of their names. An operation that is not listed has none. (VHLO of
# StableHLO 1.17; operations never change, new versions of them get new names.)

_TABLE = """
all_gather_v1: all_gather_dim channel_id replica_groups use_global_device_ids
all_gather_v2: all_gather_dim channel_id replica_groups use_global_device_ids
all_reduce_v1: channel_id replica_groups use_global_device_ids
all_reduce_v2: channel_id replica_groups use_global_device_ids
all_to_all_v1: channel_id concat_dimension replica_groups split_count split_dimension
all_to_all_v2: channel_id concat_dimension replica_groups split_count split_dimension
batch_norm_grad_v1: epsilon feature_index
batch_norm_inference_v1: epsilon feature_index
batch_norm_training_v1: epsilon feature_index
broadcast_in_dim_v1: broadcast_dimensions
broadcast_v1: broadcast_sizes
call_v1: callee
cbrt_v2: result_accuracy
cholesky_v1: lower
collective_broadcast_v1: channel_id replica_groups
collective_broadcast_v2: channel_id has_dynamic_root replica_groups
collective_reduce_v1: channel_id has_dynamic_root replica_groups use_global_device_ids
collective_permute_v1: channel_id source_target_pairs
compare_v1: compare_type comparison_direction
composite_v1: composite_attributes decomposition name version
composite_v2: composite_attributes decomposition name version
concatenate_v1: dimension
constant_v1: value
convolution_v1: batch_group_count feature_group_count input_batch_dimension
  input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension
  kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension
  output_feature_dimension output_spatial_dimensions padding precision_config rhs_dilation
  window_reversal window_strides
cosine_v2: result_accuracy
cross-replica-sum_v1: replica_groups
custom_call_v1: api_version backend_config call_target_name called_computations has_side_effect
  operand_layouts output_operand_aliases result_layouts
custom_call_v2: api_version backend_config call_target_name called_computations has_side_effect
  operand_layouts output_operand_aliases result_layouts result_tilings
dot_general_v1: lhs_batching_dimensions lhs_contracting_dimensions precision_config
  rhs_batching_dimensions rhs_contracting_dimensions
dot_general_v2: accumulation_type allow_imprecise_accumulation lhs_batching_dimensions
  lhs_component_count lhs_contracting_dimensions lhs_precision_type num_primitive_operations
  precision_config rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions
  rhs_precision_type
dynamic_broadcast_in_dim_v1: broadcast_dimensions known_expanding_dimensions
  known_nonexpanding_dimensions
dynamic_conv_v1: batch_group_count feature_group_count input_batch_dimension
  input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension
  kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension
  output_feature_dimension output_spatial_dimensions padding precision_config rhs_dilation
  window_reversal window_strides
dynamic_conv_v2: batch_group_count feature_group_count input_batch_dimension
  input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension
  kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation output_batch_dimension
  output_feature_dimension output_spatial_dimensions precision_config rhs_dilation
  window_reversal window_strides
dynamic_gather_v1: collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims
  start_index_map
dynamic_gather_v2: collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims
  operand_batching_dims start_index_map start_indices_batching_dims
dynamic_iota_v1: iota_dimension
dynamic_slice_v1: slice_sizes
einsum_v1: einsum_config
exponential_minus_one_v2: result_accuracy
exponential_v2: result_accuracy
fft_v1: fft_length fft_type
func_v1: arg_attrs function_type res_attrs sym_name sym_visibility
gather_v1: collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes
  start_index_map
gather_v2: collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims
  operand_batching_dims slice_sizes start_index_map start_indices_batching_dims
get_dimension_size_v1: dimension
get_tuple_element_v1: index
infeed_v1: infeed_config layout
iota_v1: iota_dimension
log_plus_one_v2: result_accuracy
logistic_v2: result_accuracy
log_v2: result_accuracy
map_v1: dimensions
outfeed_v1: outfeed_config
pad_v1: edge_padding_high edge_padding_low interior_padding
recv_v1: channel_id channel_type is_host_transfer
recv_v2: channel_id channel_type is_host_transfer source_target_pairs
reduce_v1: dimensions
reduce_precision_v1: exponent_bits mantissa_bits
reduce_scatter_v1: channel_id replica_groups scatter_dimension use_global_device_ids
reduce_window_v1: base_dilations padding window_dilations window_dimensions window_strides
reverse_v1: dimensions
rng_bit_generator_v1: rng_algorithm
rng_v1: rng_distribution
rsqrt_v2: result_accuracy
scatter_v1: index_vector_dim indices_are_sorted inserted_window_dims
  scatter_dims_to_operand_dims unique_indices update_window_dims
scatter_v2: index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims
  scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims
select_and_scatter_v1: padding window_dimensions window_strides
send_v1: channel_id channel_type is_host_transfer
send_v2: channel_id channel_type is_host_transfer source_target_pairs
set_dimension_size_v1: dimension
sine_v2: result_accuracy
slice_v1: limit_indices start_indices strides
sort_v1: dimension is_stable
sqrt_v2: result_accuracy
tan_v2: result_accuracy
tanh_v2: result_accuracy
torch_index_select_v1: batch_dims dim
transpose_v1: permutation
triangular_solve_v1: left_side lower transpose_a unit_diagonal
unary_einsum_v1: einsum_config
"""


def _rows() -> dict[str, tuple[str, ...]]:
    text = _TABLE.strip().replace("\n  ", " ")
    rows = (line.partition(":") for line in text.splitlines())
    return {name: tuple(names.split()) for name, _, names in rows}


ATTRIBUTES: dict[str, tuple[str, ...]] = _rows()
"""Attribute names of each operation, by its versioned name."""
