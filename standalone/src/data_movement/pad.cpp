#include "ttnn/operations/data_movement/pad/pad.hpp"

#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/result_shards.hpp"
#include "core/shard_rules.hpp"
#include "data_movement/strided_copy.hpp"

namespace ttcodegen::cpu {

namespace {

using ttnn::operations::data_movement::PadSpecDim;
using Padding = ttsl::SmallVector<PadSpecDim>;

/// Extends the widths to all dimensions: shorter lists apply to the last ones.
Padding widths_of_all(const Shape& shape, const Padding& padding) {
    TT_FATAL(padding.size() <= shape.rank(), "ttnn.pad: {} padding widths for a tensor of rank {}",
             padding.size(), shape.rank());
    Padding all(shape.rank() - padding.size(), PadSpecDim{0, 0});
    all.append(padding.begin(), padding.end());
    return all;
}

void check_rank(const Padding& padding) {
    const std::size_t rank = padding.size();
    for (std::size_t i = 0; rank > 4 && i + 3 < rank; ++i) {
        TT_FATAL(padding[i].before_elements == 0 && padding[i].after_elements == 0,
                 "ttnn::pad only supports padding on the lowest 3 dimensions for tensors with rank "
                 "> 4, not {}",
                 rank);
    }
}

/// Returns whether the result fits into the tiles of the input: nothing is moved then.
bool fills_own_tiles(const Tensor& input, const Padding& padding) {
    const std::size_t rank = padding.size();
    if (input.layout() != Layout::TILE || rank < 2) {
        return false;
    }
    for (std::size_t i = 0; i < rank; ++i) {
        const std::uint32_t size = input.logical_shape().view()[i] + padding[i].before_elements +
                                   padding[i].after_elements;
        if (size > input.padded_shape().view()[i]) {
            return false;
        }
    }
    return true;
}

void check_on_device(const Tensor& input, const Padding& padding) {
    const DataType dtype = input.dtype();
    const std::size_t rank = padding.size();
    const bool tiles = input.layout() == Layout::TILE;
    for (std::size_t i = 0; i < rank; ++i) {
        TT_FATAL(!tiles || padding[i].before_elements == 0,
                 "ttnn.pad: on device tile padding does not support front padding");
    }
    TT_FATAL((!tiles || dtype != DataType::BFLOAT4_B) &&
                 (dtype != DataType::UINT8 || fills_own_tiles(input, padding)),
             "Cannot pad {} tensor with specified format: {}", tiles ? "tilized" : "RM", dtype);
}

/// A sharded tensor that grows in width becomes height-sharded.
MemoryConfig padded_memory(const Tensor& input, const Shape& result,
                           const std::optional<MemoryConfig>& asked) {
    const MemoryConfig& own = input.memory_config();
    if (!own.shard_spec() || (asked && !is_bare(asked))) {
        return output_memory_config(input, asked);
    }
    const bool grows_in_width = result[-1] != input.logical_shape()[-1];
    return grows_in_width
               ? spread_over(MemoryConfig(own.memory_layout(), BufferType::L1, own.shard_spec()),
                             TensorMemoryLayout::HEIGHT_SHARDED, result, input.layout())
               : own;
}

Tensor pad(const Tensor& input, const Padding& requested, float value,
           const std::optional<MemoryConfig>& memory_config) {
    const Shape& shape = input.logical_shape();
    const Padding padding = widths_of_all(shape, requested);
    ttsl::SmallVector<std::uint32_t> sizes;
    bool nothing = true;
    for (std::size_t i = 0; i < padding.size(); ++i) {
        sizes.push_back(shape.view()[i] + padding[i].before_elements + padding[i].after_elements);
        nothing = nothing && sizes.back() == shape.view()[i];
    }
    if (nothing) {
        return input;
    }
    check_rank(padding);
    if (on_device(input)) {
        check_on_device(input, padding);
    } else {
        TT_FATAL(
            input.layout() == Layout::ROW_MAJOR && shape.rank() != 4,
            "Pad the tensor on the device: ttnn.pad leaves a host tensor of tiles or of rank 4 "
            "as it is");
    }
    // Block floats of more than two dimensions, unless whole tiles, are padded as bf16 rows.
    const bool whole_tiles = shape[-1] % 32 == 0 && shape[-2] % 32 == 0;
    const bool by_rows = input.dtype() == DataType::BFLOAT8_B && shape.rank() > 2 && !whole_tiles;
    const DataType dtype = by_rows ? DataType::BFLOAT16 : input.dtype();
    const Shape result(std::move(sizes));
    const MemoryConfig target_memory = padded_memory(input, result, memory_config);
    if (input.layout() == Layout::ROW_MAJOR && on_device(input)) {
        check_row_pages(input.memory_config(), input.dtype());
        check_row_pages(target_memory, dtype);
    }
    const Tensor output = allocate_like(input, result, dtype, input.layout(), target_memory);
    std::byte* target = buffer_of(output).data();
    fill_elements(target, result.volume(), dtype, value);
    const Strides strides = signed_strides(result);
    for (std::size_t i = 0; i < padding.size(); ++i) {
        target +=
            static_cast<std::size_t>(strides[i]) * padding[i].before_elements * stored_size(dtype);
    }
    const Tensor source = with_type(input, dtype);
    strided_copy({buffer_of(source).data(), signed_strides(shape)}, {target, strides},
                 extents(shape), stored_size(dtype));
    finish_block_float(output);
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;
using operations::data_movement::PadSpecDim;

Tensor pad(const Tensor& input_tensor, const SmallVector<PadSpecDim>& padding, float value,
           bool use_multicore, const std::optional<MemoryConfig>& memory_config,
           const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(pad, input_tensor, padding, value, use_multicore, memory_config,
                           sub_core_grids);
    return cpu::pad(input_tensor, padding, value, memory_config);
}

Tensor pad(const Tensor& input_tensor, const SmallVector<std::array<std::uint32_t, 2>>& padding,
           float value, bool use_multicore, const std::optional<MemoryConfig>& memory_config,
           const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(pad, input_tensor, padding, value, use_multicore, memory_config,
                           sub_core_grids);
    SmallVector<PadSpecDim> widths;
    for (const auto& [before, after] : padding) {
        widths.push_back({before, after});
    }
    return cpu::pad(input_tensor, widths, value, memory_config);
}

}  // namespace ttnn
