// Conditions of tt-metal 0.70.1, and placements, that depend on the worker grid: a Blackhole card
// of 11x10 cores.

#include "conditions_testing.hpp"
#include "device/architecture.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

using namespace conditions_testing;

namespace {

void test_decode() {
    using ttnn::operations::transformer::SDPAProgramConfig;
    const auto attend = [](std::size_t columns, std::size_t rows) {
        SDPAProgramConfig config;
        config.compute_with_storage_grid_size = {columns, rows};
        config.k_chunk_size = 32;
        config.max_cores_per_head_batch = static_cast<std::uint32_t>(columns * rows);
        const Tensor cache = placed(Shape({1, 1, 64, 64}));
        return ttnn::transformer::scaled_dot_product_attention_decode(
            placed(Shape({1, 1, 32, 64})), cache, cache, true, std::nullopt, {3}, std::nullopt,
            std::nullopt, std::nullopt, std::nullopt, kDRAM, config);
    };
    accepted([&] { return attend(8, 8); });
    refused("Tree reduction max 6 rounds (64 cores/head), got 110 cores/head",
            [&] { return attend(11, 10); });
}

/// The cores that share the channels of a result are as many as the grid has columns, rows or
/// cores (determine_output_parallel_config).
void test_channels() {
    struct Division {
        TensorMemoryLayout scheme;
        bool is_transposed;
        std::uint32_t channels;
        std::size_t cores;
    };
    for (const Division& each :
         {Division{kBlock, false, 352, 11}, {kBlock, true, 320, 10}, {kWidth, false, 3200, 100}}) {
        const Shape image({1, 1, 64, 32});
        ttnn::Conv2dConfig config;
        config.shard_layout = each.scheme;
        config.transpose_shards = each.is_transposed;
        config.config_tensors_in_dram = true;
        const Tensor weights =
            placed(Shape({each.channels, 32, 3, 3}), kDRAM, DataType::BFLOAT16, Layout::ROW_MAJOR);
        const std::array<std::uint32_t, 2> one = {1, 1};
        const auto result =
            ttnn::conv2d(placed(image, kL1), weights.cpu(), device(), 32, each.channels, 1, 8, 8,
                         {3, 3}, one, one, one, 1, std::nullopt, std::nullopt, config);
        const auto& shards = std::get<Tensor>(result).memory_config().shard_spec().value();
        const auto grid = shards.grid.bounding_box().grid_size();
        const std::size_t cores = each.scheme == kWidth ? shards.num_cores()
                                  : each.is_transposed  ? grid.y
                                                        : grid.x;
        expect(cores == each.cores, "the channels are on " + std::to_string(cores) + " cores");
        expect(shards.shape[1] == 32, "a core has more than one tile of channels");
    }
}

}  // namespace

int main() {
    ttcodegen_emulate_card("blackhole:11x10:8");
    test_decode();
    test_channels();
    return 0;
}
