#include "operations/convolution_memory.hpp"

#include <algorithm>

#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {
namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::ShardOrientation;
using ttnn::Conv2dConfig;
using ttnn::Conv2dSliceConfig;

/// Alignment of the channels of a core (get_input_channels_alignment).
std::uint32_t channel_alignment(const Tensor& input, bool is_product) {
    const MemoryConfig& memory = input.memory_config();
    if (is_product || input.layout() == Layout::TILE ||
        memory.memory_layout() == TensorMemoryLayout::WIDTH_SHARDED) {
        return kTileSide;
    }
    if (!memory.shard_spec()) {
        return 8;
    }
    const std::uint32_t width = memory.shard_spec()->shape[1];
    for (const std::uint32_t alignment : {kTileSide, 16U, 8U}) {
        if (width % alignment == 0) {
            return alignment;
        }
    }
    return kTileSide;
}

/// Returns whether the input must be resharded, regardless of the config.
bool needs_reshard(const Tensor& input, const ConvolvedImage& image, bool is_product,
                   std::uint32_t alignment) {
    const ImageDivision own = division_of(input.memory_config());
    const auto& shape = input.memory_config().shard_spec()->shape;
    const bool is_turned = own.scheme != TensorMemoryLayout::BLOCK_SHARDED &&
                           own.orientation != ShardOrientation::ROW_MAJOR;
    return is_turned || shape[1] % alignment != 0 ||
           (is_product &&
            (shape[0] % kTileSide != 0 || (own.scheme == TensorMemoryLayout::BLOCK_SHARDED &&
                                           image.in_channels != own.channel_cores() * shape[1])));
}

/// Returns whether the config requests other cores than those of the input.
bool asks_to_move(const ImageDivision& own, const Conv2dConfig& config) {
    if (!config.override_sharding_config) {
        return false;
    }
    TT_FATAL(config.core_grid,
             "If override_sharding_config is set, core_grid must be set as well.");
    TT_FATAL(config.shard_layout,
             "If override_sharding_config is set, shard_layout must be set as well.");
    const bool is_turned = own.orientation == ShardOrientation::COL_MAJOR;
    return *config.core_grid != own.grid || *config.shard_layout != own.scheme ||
           (own.scheme == TensorMemoryLayout::BLOCK_SHARDED &&
            config.transpose_shards != is_turned);
}

/// The division of the image that is sharded or resharded for the convolution.
ImageDivision new_division(TensorMemoryLayout scheme, const ConvolvedImage& image, bool is_product,
                           std::uint32_t alignment, const Conv2dConfig& config) {
    const auto orientation =
        config.transpose_shards ? ShardOrientation::COL_MAJOR : ShardOrientation::ROW_MAJOR;
    const std::uint32_t unit = scheme == TensorMemoryLayout::BLOCK_SHARDED ? alignment : kTileSide;
    const ImageDivision best =
        divide_image(scheme,
                     {tt::div_up(image.rows, kTileSide), tt::div_up(image.in_channels, unit),
                      tt::div_up(image.out_channels, kTileSide),
                      std::max(1U, config.act_block_h_override / kTileSide), !is_product},
                     orientation);
    if (!config.override_sharding_config) {
        return best;
    }
    TT_FATAL(config.core_grid, "Core grid must be provided when overriding sharding config");
    return {scheme, *config.core_grid, best.orientation};
}

/// The division of the image that the convolution reads.
ImageDivision division_of_input(const Tensor& input, const ConvolvedImage& image, bool is_product,
                                TensorMemoryLayout scheme, const Conv2dConfig& config) {
    const std::uint32_t alignment = channel_alignment(input, is_product);
    if (!on_device(input) || !input.is_sharded()) {
        return new_division(scheme, image, is_product, alignment, config);
    }
    const ImageDivision own = division_of(input.memory_config());
    const bool moves = needs_reshard(input, image, is_product, alignment);
    if (!asks_to_move(own, config) && !moves && !config.reshard_if_not_optimal) {
        return own;
    }
    const bool keeps_blocks =
        moves && is_product && own.scheme == TensorMemoryLayout::BLOCK_SHARDED;
    const ImageDivision other =
        new_division(keeps_blocks ? own.scheme : scheme, image, is_product, alignment, config);
    const auto& shape = input.memory_config().shard_spec()->shape;
    const bool has_whole_tiles = shape[0] % kTileSide == 0 && shape[1] % kTileSide == 0;
    // Rows are tilized before they are resharded, except to height shards.
    TT_FATAL(!is_product || other == own || input.layout() == Layout::TILE || has_whole_tiles ||
                 other.scheme == TensorMemoryLayout::HEIGHT_SHARDED,
             "Physical shard shape ({}, {}) must be tile {{32, 32}} sized!", shape[0], shape[1]);
    return other;
}

/// The number of cores that the config gives the channels of a result; none if it leaves them to
/// the release (get_output_compute_grid_size of 0.70.1).
std::optional<std::uint32_t> given_channel_cores(const ImageDivision& division,
                                                 const Conv2dConfig& config) {
    if (!config.override_output_sharding_config) {
        return std::nullopt;
    }
    TT_FATAL(config.core_grid,
             "When override_output_sharding_config is set to true, core_grid must have a value.");
    TT_FATAL(division.scheme == TensorMemoryLayout::BLOCK_SHARDED,
             "Output sharding config override is only supported for BLOCK_SHARDED layout.");
    const auto grid = config.core_grid->bounding_box().grid_size();
    const bool is_turned = division.orientation == ShardOrientation::COL_MAJOR;
    TT_FATAL((is_turned ? grid.x : grid.y) == division.row_cores(),
             "NHW cores must match for input and output when overriding the grid size.");
    return static_cast<std::uint32_t>(is_turned ? grid.y : grid.x);
}

/// Returns whether the release folds the image: by default in DRAM or height-sharded.
bool folds(const Tensor& input, const ConvolvedImage& image, const Conv2dConfig& config) {
    const MemoryConfig& memory = input.memory_config();
    const bool folds_itself = !on_device(input) || memory.is_dram() ||
                              memory.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED;
    return image.can_fold && config.enable_kernel_stride_folding.value_or(folds_itself);
}

void check_config(const ConvolvedImage& image, const Conv2dConfig& config) {
    // The release converts it to whole tiles, and divides by them.
    TT_FATAL(config.act_block_h_override == 0 || config.act_block_h_override >= kTileSide,
             "act_block_h_override must be at least 32, got {}", config.act_block_h_override);
    if (config.shard_layout == TensorMemoryLayout::INTERLEAVED) {
        TT_THROW("Conv2d supports Height, Block or Width Sharded Layouts but got {}",
                 *config.shard_layout);
    }
    if (config.enable_activation_reuse) {
        TT_FATAL(config.shard_layout != TensorMemoryLayout::BLOCK_SHARDED,
                 "Activation data reuse is not supported for block sharded");
        TT_FATAL(!image.is_dilated, "Activation data reuse is not supported for dilation > 1");
        TT_FATAL(!image.is_strided, "Activation data reuse is not supported for stride > 1");
    }
    TT_FATAL(config.output_layout == Layout::TILE || image.dtype != DataType::BFLOAT8_B,
             "Conv output can't be in Row Major if output dtype is BFloat8_B.");
}

/// Checks the slices of an image in DRAM: whole rows, or whole tiles of columns.
void check_slices(const ConvolvedImage& image, const Conv2dConfig& config,
                  const Conv2dSliceConfig& slices) {
    const bool is_by_height = slices.slice_type == Conv2dSliceConfig::SliceType::DRAM_HEIGHT;
    const std::uint32_t unit = is_by_height || config.output_layout != Layout::TILE ? 1 : kTileSide;
    const std::uint32_t most = tt::div_up(is_by_height ? image.height : image.width, unit);
    TT_FATAL(
        slices.num_slices <= most,
        "Number of slices ({}) exceeds the maximum allowed ({}) for the given output dimension",
        slices.num_slices, most);
}

}  // namespace

MemoryConfig convolved_memory(const Tensor& input, const ConvolvedImage& image,
                              const Conv2dConfig& config,
                              const std::optional<MemoryConfig>& memory_config,
                              const std::optional<Conv2dSliceConfig>& slices) {
    check_config(image, config);
    const bool is_in_l1 = on_device(input) && input.memory_config().is_l1();
    const bool is_whole = image.is_one_dimensional ||
                          (slices && slices->slice_type == Conv2dSliceConfig::SliceType::L1_FULL);
    const bool stays_in_l1 = is_whole || (!slices && is_in_l1);
    TT_FATAL(stays_in_l1 || image.is_transposed || !config.override_output_sharding_config,
             "Conv2D DRAM slicing doesn't support override_output_sharding_config.");
    const bool asks_for_columns = config.shard_layout == TensorMemoryLayout::WIDTH_SHARDED;
    const bool is_folded = !image.is_transposed && folds(input, image, config);
    const bool is_product =
        is_folded || (!image.is_transposed && image.is_product && !asks_for_columns);
    TT_FATAL(!is_folded || !config.shard_layout || asks_for_columns,
             "A folded image and its weights have different widths where shards are requested");
    if (!stays_in_l1 && !is_product) {
        TT_FATAL(!is_in_l1, "Conv DRAM expects the input tensor to be in DRAM.");
        // Each slice is sharded as the config says.
        TT_FATAL(!config.override_sharding_config || config.core_grid,
                 "Core grid must be provided when overriding sharding config");
        if (slices) {
            check_slices(image, config, *slices);
        }
        return MemoryConfig{};
    }
    const bool is_sharded = on_device(input) && input.is_sharded();
    if (is_product && !is_sharded && !config.shard_layout) {
        return memory_config.value_or(MemoryConfig{});
    }
    const bool is_in_blocks =
        !is_sharded && input.layout() != Layout::TILE && image.rows > kTileSide;
    const TensorMemoryLayout own_choice = is_sharded     ? TensorMemoryLayout::INTERLEAVED
                                          : is_in_blocks ? TensorMemoryLayout::BLOCK_SHARDED
                                                         : TensorMemoryLayout::HEIGHT_SHARDED;
    const ImageDivision division = division_of_input(
        input, image, is_product, config.shard_layout.value_or(own_choice), config);
    TT_FATAL(!is_product || division.scheme != TensorMemoryLayout::WIDTH_SHARDED,
             "Unsupported memory layout {}.", division.scheme);
    const std::optional<std::uint32_t> given = given_channel_cores(division, config);
    const ImageDivision result =
        is_product ? division
                   : divide_result(division, tt::div_up(image.out_channels, kTileSide), given);
    return memory_config.value_or(
        divided_l1(result, image.rows, image.out_channels, kTileSide, kTileSide));
}

}  // namespace ttcodegen::cpu
