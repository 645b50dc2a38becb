"""L1 footprint and work of the programs of convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import Layout, MemoryLayout, Orientation, Shards
from ttcodegen.dialects.ttcore.tile import TILE_SIDE, tiles_along
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import CoreGrid
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import tile_bytes, tiles, whole_bytes
from ttcodegen.optimizer.call import (
    COMPUTE_CONFIG,
    ROW_ALIGNMENT,
    LibraryCall,
    allocated_bytes,
    bank_bytes,
)
from ttcodegen.optimizer.circular_buffers import moved, tilized_bytes
from ttcodegen.optimizer.cost.program_work import matmul_call_buffers
from ttcodegen.optimizer.cost.work import Machine, Work, cores_of, traffic
from ttcodegen.optimizer.movement_buffers import pool_buffers, shards_of_pool
from ttcodegen.optimizer.programs import convolution as division
from ttcodegen.optimizer.programs import matmul as matmul
from ttcodegen.optimizer.programs.convolution import Convolution, DividedCores, most_pixels
from ttcodegen.optimizer.programs.windows import Plan, Setting, element_bytes, pool_tensors
from ttcodegen.systems.cards import default_system
from ttcodegen.systems.description import ChipDescription

# Programs of a 2D convolution, and their L1 footprint.
#
# The library shards the image unless its shards are usable, gathers halos, and multiplies; a 1x1
# convolution is a matmul. Images in DRAM that exceed L1 are convolved in slices. The rules follow
# conv2d.cpp, conv2d_utils.cpp, conv2d_op_program_factory_common.cpp and op_slicing.cpp of tt-metal.

NARROW_IMAGE = 200
"""Width in pixels below which an image is sliced along its height."""
_KINDS: tuple[MemoryLayout, ...] = ("height_sharded", "block_sharded", "width_sharded")


@dataclass(frozen=True)
class Footprint:
    """L1 footprint in bytes per core."""

    buffers: int
    """Circular buffers of the largest program."""
    tensors: int
    """Peak of all live tensors, image and result included."""


def convolution_footprint(call: LibraryCall, grid: CoreGrid, space: int, arch: str) -> Footprint:
    """Returns the L1 footprint of a convolution.

    Args:
        call: call of `conv2d`.
        grid: cores of the chip.
        space: free bytes of L1 per core.
        arch: architecture, whose bandwidths determine the split of work.
    """
    convolution = Convolution.of(call)
    word = convolution.config.weights_dtype
    weight = call.operands[1].data_type if word is None else DataType.from_mlir(word.text)
    image, compute = call.operands[0], call.compute_config
    setting = Setting(
        grid,
        space,
        arch,
        weight,
        len(call.operands) > 2,
        image.data_type.mlir == weight.mlir == "f32"
        if compute is None
        else compute.fp32_dest_acc_en,
        compute is not None and compute.packer_l1_acc,
    )
    return _footprint(setting, convolution, image, call.result)


@lru_cache(maxsize=1 << 12)
def _footprint(
    setting: Setting, convolution: Convolution, image: TensorPlacement, result: TensorPlacement
) -> Footprint:
    convolution, image = _folded(convolution, image)
    if image.buffer_type == "l1" or convolution.is_matmul:
        return _UnslicedConvolution(setting, convolution, image, result).footprint()
    sliced_config = convolution.config
    if sliced_config.output_layout is not None:
        # The result of a slice is untilized after its transfer to DRAM.
        sliced_config = replace(sliced_config, output_layout=None)
    # Each slice is freed after its last use.
    convolution = replace(convolution, config=replace(sliced_config, deallocate_activation=True))
    slices = _slices(setting, convolution, image, result)
    if len(slices) == 1:
        return _UnslicedConvolution(setting, convolution, image, result).footprint()
    parts = [
        _UnslicedConvolution(
            setting, part, _slice_shards(setting, part, image, result), result
        ).footprint()
        for part in dict.fromkeys(slices)
    ]
    return Footprint(max(part.buffers for part in parts), max(part.tensors for part in parts))


def _folded(
    convolution: Convolution, image: TensorPlacement
) -> tuple[Convolution, TensorPlacement]:
    """Folds pixels into channels if windows do not overlap (auto_enable_kernel_folding)."""
    down, across = convolution.stride
    requested = convolution.config.enable_kernel_stride_folding
    height, width = convolution.padded
    if requested is None:
        plain = not any(convolution.padding)
        in_rows = image.layout is Layout.ROW_MAJOR
        requested = (
            convolution.stride == convolution.kernel
            and convolution.dilation == (1, 1)
            and not (height % down or width % across)
            and (
                (image.buffer_type == "dram" and (in_rows or plain))
                or image.memory_layout == "height_sharded"
            )
        )
    if not requested or convolution.stride == (1, 1):
        return convolution, image
    channels = convolution.in_channels * down * across
    size = height // down, width // across
    folded = replace(
        convolution,
        size=size,
        in_channels=channels,
        kernel=(-(-convolution.kernel[0] // down), -(-convolution.kernel[1] // across)),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
    )
    shape = 1, 1, folded.in_pixels, channels
    shards = image.shards
    if shards is not None:
        rows = align_up(folded.in_pixels, shards.cores) // shards.cores
        shards = Shards((rows, channels), shards.core_ranges, shards.orientation)
    return folded, image.with_(shape=shape, layout=Layout.ROW_MAJOR, shards=shards)


# Slices of images in DRAM


def _slices(
    setting: Setting, convolution: Convolution, image: TensorPlacement, result: TensorPlacement
) -> list[Convolution]:
    """Returns the convolutions of the slices of an image in DRAM (determine_slice_config)."""
    height, width = convolution.size
    by_rows = width < NARROW_IMAGE or height > width
    for cuts_rows in (by_rows, not by_rows):
        rounding = 1 if cuts_rows else TILE_SIDE
        most = -(-convolution.out[0 if cuts_rows else 1] // rounding)
        for count in range(1, most + 1):
            found = list(_slices_along(convolution, cuts_rows, count, rounding))
            if all(
                _slice_bytes(setting, part, image, result) <= setting.space
                for part in dict.fromkeys(found)
            ):
                return found
    return [convolution]


def _slices_along(
    convolution: Convolution, cuts_rows: bool, count: int, rounding: int
) -> Iterator[Convolution]:
    axis = 0 if cuts_rows else 1
    total = convolution.out[axis]
    units = -(-total // rounding)
    start = 0
    for index in range(count):
        size = rounding * (units // count + (1 if index < units % count else 0))
        end = min(total, start + size)
        if start < end:
            yield _slice(convolution, axis, start, end, total)
        start += size


def _slice(convolution: Convolution, axis: int, start: int, end: int, total: int) -> Convolution:
    """Returns the convolution of a slice of the result (get_input_slice_and_padding)."""
    size, kernel = convolution.size[axis], convolution.kernel[axis]
    stride, dilation = convolution.stride[axis], convolution.dilation[axis]
    before, after = convolution.padding[2 * axis : 2 * axis + 2]
    first = start * stride - before
    last = (end - 1) * stride - before + (kernel - 1) * (dilation - 1) + kernel
    pads = [max(0, -first), max(0, last - size)]
    first, last = max(0, first), min(size, last)
    if start == 0:
        first, pads[0] = 0, before
    if end == total:
        last, pads[1] = size, after
    sizes, padding = list(convolution.size), list(convolution.padding)
    sizes[axis] = last - first
    padding[2 * axis : 2 * axis + 2] = pads
    # Rows of a slice's result are padded to whole tiles.
    columns = end - start if axis == 1 else convolution.out[1]
    if sizes[axis] != size and columns % TILE_SIDE:
        padding[3] += (TILE_SIDE - columns % TILE_SIDE) * convolution.stride[1]
    return replace(
        convolution,
        size=(sizes[0], sizes[1]),
        padding=(padding[0], padding[1], padding[2], padding[3]),
    )


def _slice_bytes(
    setting: Setting, part: Convolution, image: TensorPlacement, result: TensorPlacement
) -> int:
    placed = _slice_shards(setting, part, image, result)
    usage = _usage(setting, part, image, result, DividedCores.of(placed), placed)
    return max(usage.halo_input + usage.halo_output, usage.total)


def _slice_shards(
    setting: Setting, part: Convolution, image: TensorPlacement, result: TensorPlacement
) -> TensorPlacement:
    """Returns the placement of a slice in L1 (Conv2dSliceAttr::get_input_memory_config)."""
    kind = _shard_layout(part) or _cheapest_layout(setting, part, image, result)
    is_whole = part.in_pixels == prod(image.shape[:-1])
    layout = image.layout if is_whole else Layout.ROW_MAJOR
    alignment = division.channel_alignment(kind, layout, False)
    cores = division.input_cores(part, kind, alignment, setting.grid, _orientation(part))
    shape = 1, 1, part.in_pixels, part.in_channels
    return division.image_shards(part, image.with_(shape=shape, layout=layout), cores, alignment)


# Shards that the library chooses


def _orientation(convolution: Convolution) -> Orientation:
    column_major = convolution.config.transpose_shards
    return Orientation.COL_MAJOR if column_major else Orientation.ROW_MAJOR


def _shard_layout(convolution: Convolution) -> MemoryLayout | None:
    word = convolution.config.shard_layout
    return next((kind for kind in _KINDS if word is not None and kind == word.text), None)


@dataclass(frozen=True)
class _Usage:
    cores: int
    halo_input: int
    halo_output: int
    program: int

    @property
    def total(self) -> int:
        return self.program + self.halo_output


def _usage(
    setting: Setting,
    convolution: Convolution,
    image: TensorPlacement,
    result: TensorPlacement,
    cores: DividedCores,
    placed: TensorPlacement | None = None,
) -> _Usage:
    """Returns the L1 usage as the library computes it (calculate_L1_usage_for_conv_op)."""
    alignment = division.channel_alignment(cores.kind, image.layout, convolution.is_matmul)
    if placed is None:
        placed = division.image_shards(convolution, image, cores, alignment)
    outputs = division.output_cores(convolution, cores, setting.grid)
    inner = align_up(convolution.in_channels, cores.across * alignment)
    plan = Plan(setting, convolution, image.data_type, cores, outputs, inner)
    assert placed.shards is not None
    height, width = placed.shards.shape
    element = element_bytes(image.data_type)
    sticks = most_pixels(convolution, plan.shard_height(cores.down))
    out = plan.high * plan.wide * tile_bytes(result)
    halved = 2 if image.data_type.mlir == "bfp_bf8" else 1
    return _Usage(
        max(cores.count, outputs.count),
        height * width * element // halved,
        sticks * width * element,
        plan.buffers(result, False) + out,
    )


def _cheapest_layout(
    setting: Setting, convolution: Convolution, image: TensorPlacement, result: TensorPlacement
) -> MemoryLayout:
    """Returns the shards with the lowest L1 usage (determine_conv_config_for_auto_shard)."""
    usages: dict[MemoryLayout, _Usage] = {}
    for kind in _KINDS:
        alignment = division.channel_alignment(kind, image.layout, convolution.is_matmul)
        cores = division.input_cores(
            convolution, kind, alignment, setting.grid, _orientation(convolution)
        )
        usages[kind] = _usage(setting, convolution, image, result, cores)
    best: MemoryLayout = "height_sharded"
    if convolution.is_of_single_channels(setting.has_bias):
        return best
    blocks = usages["block_sharded"]
    if blocks.total < usages[best].total and blocks.cores >= setting.grid.columns:
        best = "block_sharded"
    if usages["width_sharded"].total < usages[best].total and not convolution.is_matmul:
        best = "width_sharded"
    return best


# Programs


class _UnslicedConvolution:
    """Convolution of an image that fits into L1 (conv2d_L1)."""

    def __init__(
        self,
        setting: Setting,
        convolution: Convolution,
        image: TensorPlacement,
        result: TensorPlacement,
    ) -> None:
        self.setting, self.convolution, self.image = setting, convolution, image
        kind = _shard_layout(convolution)
        self.is_automatic = image.shards is None and kind is None
        self.kind: MemoryLayout = kind or (
            _cheapest_layout(setting, convolution, image, result)
            if image.shards is None
            else DividedCores.of(image).kind
        )
        self.result = result

    def footprint(self) -> Footprint:
        """Returns the footprint of the sequence of programs."""
        image, sizes = self.image, self.convolution
        self.programs: list[Footprint] = []
        placed = self._placed()
        placed = image if placed == image else placed
        in_rows = image.layout is Layout.ROW_MAJOR
        in_blocks = placed.memory_layout != "height_sharded"
        automatic = sizes.is_matmul and self.is_automatic
        if sizes.is_matmul and in_rows and (automatic or (placed != image and in_blocks)):
            image = image.with_(layout=Layout.TILE)
            placed = placed.with_(layout=Layout.TILE)
            self._run(tilized_bytes(self.image, image), image)
        if automatic:
            out = self._matmul_result()
            self._run(self._matmul_buffers(image), image, out)
            if out != self.result:
                self._run(moved(out, self.result, self.chip), image, out, self.result)
        else:
            if placed != image:
                self._run(moved(image, placed, self.chip), image, placed)
            self._run_sharded(placed)
        return Footprint(
            max(program.buffers for program in self.programs),
            max(program.tensors for program in self.programs),
        )

    @property
    def chip(self) -> ChipDescription:
        """Chip that the programs run on."""
        return default_system(self.setting.arch).chip

    def _run(self, buffers: int, *tensors: TensorPlacement | int) -> None:
        """Records a program with the live tensors; the image is added unless it is freed."""
        freed = self.convolution.config.deallocate_activation
        # A result in the same placement is another tensor.
        keeps = all(each is not self.image for each in tensors)
        keeps = keeps and not (freed and self.programs)
        live = (*tensors, self.image) if keeps else tensors
        banks = self.setting.grid.cores
        rounded = self.chip.noc_dram_address_align_bytes
        size = sum(
            tensor if isinstance(tensor, int) else allocated_bytes(tensor, banks, rounded)
            for tensor in live
        )
        self.programs.append(Footprint(buffers, size))

    def _run_sharded(self, placed: TensorPlacement) -> None:
        """Records the programs of a sharded image."""
        sizes, result = self.convolution, self.result
        cores = DividedCores.of(placed)
        outputs = division.output_cores(sizes, cores, self.setting.grid)
        assert placed.shards is not None
        alignment = division.channel_alignment(
            cores.kind, placed.layout, sizes.is_matmul, placed.shards.shape[1]
        )
        inner = align_up(sizes.in_channels, cores.across * alignment)
        plan = Plan(self.setting, sizes, placed.data_type, cores, outputs, inner)
        word = sizes.config.output_layout
        pages = result.layout if word is not None else Layout.TILE
        plain = result.with_(layout=pages, shape=(1, 1, sizes.out_pixels, sizes.out_channels))
        computed = division.output_shards(sizes, plain, outputs)
        source: TensorPlacement | int = placed
        if sizes.is_matmul and _has_equal_shards(computed, result):
            # A matmul leaves out cores without rows or columns to compute.
            computed = result
        if sizes.is_matmul:
            tiles = placed.with_(layout=Layout.TILE)
            if placed.layout is Layout.ROW_MAJOR:
                self._run(0, placed, tiles)
            source = tiles
            self._run(plan.matmul_bytes(tiles, computed.with_(layout=Layout.TILE)), tiles, computed)
        else:
            if self._has_halo(placed):
                pixels = most_pixels(sizes, plan.shard_height(outputs.down))
                rows = placed.shards.shape[1] * element_bytes(placed.data_type)
                source = pixels * align_up(rows, ROW_ALIGNMENT)
                self._run(_halo(placed), placed, source)
            self._run(plan.buffers(computed.with_(layout=Layout.TILE)), source, computed)
        if result != computed and result.buffer_type == "l1":
            self._run(moved(computed, result, self.chip), source, computed, result)

    def _matmul_result(self) -> TensorPlacement:
        """Returns the placement of the result of an interleaved matmul, before it is moved."""
        sizes = self.convolution
        shape = 1, 1, sizes.out_pixels, sizes.out_channels
        return TensorPlacement(shape, self.result.data_type, Layout.TILE)

    def _has_halo(self, placed: TensorPlacement) -> bool:
        by_width = placed.memory_layout == "width_sharded"
        in_rows = placed.layout is Layout.ROW_MAJOR
        return not (by_width and in_rows) or any(self.convolution.padding)

    def _placed(self) -> TensorPlacement:
        """Returns the placement of the image for the convolution program
        (get_conv_padded_input_shape_and_mem_config)."""
        image, sizes = self.image, self.convolution
        kind: MemoryLayout = self.kind
        config = sizes.config
        orientation = _orientation(sizes)
        shards = image.shards
        reshards = shards is None
        width = None if shards is None else shards.shape[1]
        scheme = image.memory_layout
        alignment = division.channel_alignment(scheme, image.layout, sizes.is_matmul, width)
        if shards is not None:
            given = DividedCores.of(image)
            reshards = scheme != "block_sharded" and given.orientation is not Orientation.ROW_MAJOR
            reshards = reshards or shards.shape[1] % alignment != 0
            if sizes.is_matmul:
                if (
                    scheme == "block_sharded"
                    and sizes.in_channels != given.across * shards.shape[1]
                ):
                    reshards, kind = True, "block_sharded"
                reshards = reshards or shards.shape[0] % TILE_SIDE != 0
            if config.override_sharding_config and config.core_grid is not None:
                transposed = kind == "block_sharded" and orientation is not given.orientation
                other = config.core_grid.ranges != given.ranges or kind != scheme
                reshards = reshards or other or transposed
        if not (reshards or config.reshard_if_not_optimal):
            return image
        if config.override_sharding_config and config.core_grid is not None:
            order = orientation if kind == "block_sharded" else Orientation.ROW_MAJOR
            cores = DividedCores(kind, config.core_grid.ranges, order)
        else:
            cores = division.input_cores(sizes, kind, alignment, self.setting.grid, orientation)
        if shards is not None and not reshards and cores == DividedCores.of(image):
            return image
        alignment = division.channel_alignment(kind, image.layout, sizes.is_matmul)
        return division.image_shards(sizes, image, cores, alignment)

    def _matmul_buffers(self, image: TensorPlacement) -> int:
        """Returns the bytes of the circular buffers of the interleaved matmul."""
        sizes, setting = self.convolution, self.setting
        channels = align_up(sizes.in_channels, TILE_SIDE)
        outputs = align_up(sizes.out_channels, TILE_SIDE)
        plain = TensorPlacement((1, 1, channels, outputs), setting.weight, Layout.TILE)
        bias = (plain.with_(shape=(1, 1, 1, outputs)),) if setting.has_bias else ()
        left = image.with_(shape=(1, 1, sizes.in_pixels, channels))
        result = TensorPlacement(
            (1, 1, sizes.out_pixels, outputs), self.result.data_type, Layout.TILE
        )
        compute = ComputeConfig(
            fp32_dest_acc_en=setting.wide_sums, packer_l1_acc=setting.gathers_sums
        )
        call = LibraryCall("linear", (left, plain, *bias), (result,), {COMPUTE_CONFIG: compute})
        return matmul_call_buffers(call, setting.grid, setting.space)


def _has_equal_shards(one: TensorPlacement, other: TensorPlacement) -> bool:
    """Returns whether two placements have the same shards, on whichever cores."""
    if one.shards is None or other.shards is None:
        return False
    return other == one.with_(shards=replace(one.shards, core_ranges=other.shards.core_ranges))


def _halo(placed: TensorPlacement) -> int:
    """untilize_with_halo_program_factory.cpp: padding rows of two readers; tiles are untilized."""
    assert placed.shards is not None
    element = element_bytes(placed.data_type)
    width = placed.shards.shape[1]
    padding = 2 * align_up(width * element, 16)
    if placed.layout is Layout.ROW_MAJOR:
        return padding
    return padding + 4 * tiles_along(width) * TILE_SIDE * TILE_SIDE * element


# Work of convolutions and pools.


def convolved(chip: Machine, call: LibraryCall) -> Work:
    """Work of a convolution: programs that gather windows of the image in L1, and a matmul.

    Images in DRAM are convolved in slices."""
    image, weights = call.operands[0], call.operands[1]
    result = call.result
    groups = int(call.attributes.get("groups", 1))
    if "kernel_size" in call.attributes and "in_channels" in call.attributes:
        kernel = prod(call.attributes["kernel_size"])
        inner_elements = int(call.attributes["in_channels"]) // groups * kernel
    else:
        kernel = prod(weights.shape[2:]) if len(weights.shape) == 4 else 1
        inner_elements = prod(weights.shape[1:]) if len(weights.shape) == 4 else weights.shape[-2]
    channels = result.shape[-1]
    inner = tiles_along(inner_elements * groups) or 1
    rows = tiles_along(prod(result.shape[:-1]))
    columns = tiles_along(channels)
    in_place = image.shards is not None and result.shards is not None
    cores = result.shards.cores if result.shards is not None else min(chip.description.cores, rows)
    work = Work(min(cores, chip.description.cores))
    count = -(-rows * columns // work.cores) * inner
    passes = matmul.fidelity_passes(call)
    # Rows of windows are copied in L1 and tilized before the matmul.
    gathered = -(-rows // work.cores) * inner if kernel > 1 else 0
    work.movement_cycles = gathered * TILE_SIDE * chip.speed.transaction // 4
    work.engine_cycles = int(
        count * max(chip.speed.tile_product * passes, 40)
        + gathered * chip.pass_cycles([image])
        + -(-rows * columns // work.cores) * chip.pass_cycles([result])
    )
    traffic(work, call)
    work.launches = 1 if in_place and kernel == 1 else 3 if in_place else 5 if kernel > 1 else 1
    if not in_place and kernel > 1:
        work.noc_bytes += 2 * (whole_bytes(image) + whole_bytes(result))
    if call.name == "conv2d":
        found = convolution_footprint(call, chip.grid, chip.speed.usable_l1, chip.description.arch)
        work.circular_buffers = found.buffers
        own = sum(bank_bytes(placement, chip.description) for placement in (image, result))
        work.intermediates = max(found.tensors - own, 0)
        if image.buffer_type == "dram":
            # The library slices the image so that all tensors fit.
            room = chip.speed.usable_l1 - found.buffers - own
            work.intermediates = max(min(work.intermediates, room), 0)
        if in_place and work.intermediates:
            # The image is untilized, and halos are copied.
            work.noc_bytes += work.intermediates * work.cores
            work.engine_cycles += -(-tiles(image) // work.cores) * chip.pass_cycles([image])
        return work
    work.circular_buffers = min(
        inner * 2 * tile_bytes(result) + 4 * inner_elements * 64, chip.speed.usable_l1 // 2
    )
    return work


def pooled(chip: Machine, call: LibraryCall) -> Work:
    """Work of a pool."""
    kernel = prod(call.attributes.get("kernel_size", (1,)))
    units = max(tiles(call.operands[0]), tiles(call.result))
    cores = cores_of(chip, call, units)
    work = Work(cores, 16_640, launches=4)
    traffic(work, call)
    work.movement_cycles = -(-tiles(call.result) // cores) * TILE_SIDE * kernel * 8
    work.engine_cycles = -(-tiles(call.result) // cores) * kernel * chip.pass_cycles([call.result])
    description = chip.description
    work.intermediates = pool_tensors(call, description, shards_of_pool(call, description))
    if call.operands[0].buffer_type == "dram":
        # The library slices the image so that all tensors fit.
        room = chip.speed.usable_l1 - pool_buffers(call, description)
        room -= bank_bytes(call.result, description)
        work.intermediates = max(min(work.intermediates, room), 0)
    return work
