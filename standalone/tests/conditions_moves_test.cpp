// Moves between memories and layouts that violate one condition of tt-metal 0.70.1 each.

#include "conditions_testing.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/reshape_view/reshape.hpp"
#include "ttnn/operations/data_movement/sharded/interleaved_to_sharded/interleaved_to_sharded.hpp"
#include "ttnn/operations/data_movement/sharded/reshard/reshard.hpp"
#include "ttnn/operations/data_movement/sharded/sharded_to_interleaved/sharded_to_interleaved.hpp"
#include "ttnn/operations/data_movement/tilize_with_val_padding/tilize_with_val_padding.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"

using namespace conditions_testing;

namespace {

constexpr auto kRows = Layout::ROW_MAJOR;

Tensor rows(const Shape& shape, const MemoryConfig& memory = kDRAM) {
    return placed(shape, memory, DataType::BFLOAT16, kRows);
}

void test_shards_of_rows() {
    const MemoryConfig narrow = sharded(kHeight, 4, 12, 2, 1);
    refused("Shard page size (24 bytes) must be aligned to 16B", [&] {
        return ttnn::interleaved_to_sharded(rows(Shape({8, 12})), narrow, std::nullopt,
                                            std::nullopt, std::nullopt);
    });
    refused("Shard page size (24 bytes) must be aligned to 16B", [&] {
        return ttnn::sharded_to_interleaved(rows(Shape({8, 12}), narrow), kDRAM, std::nullopt);
    });
    refused("We don't support DRAM block sharding", [&] {
        const MemoryConfig target =
            sharded(kBlock, 32, 32, 2, 1, ShardOrientation::ROW_MAJOR, BufferType::DRAM);
        return ttnn::interleaved_to_sharded(placed(Shape({32, 64})), target, std::nullopt,
                                            std::nullopt, std::nullopt);
    });
    refused("Shard page size (24 bytes) must be aligned to 16B", [&] {
        return ttnn::typecast(rows(Shape({8, 12}), narrow), DataType::FLOAT32, std::nullopt,
                              std::nullopt, std::nullopt);
    });
    refused("Shard page size (24 bytes) must be aligned to 16B", [&] {
        return ttnn::permute(rows(Shape({12, 8})), ttsl::SmallVector<std::int64_t>{1, 0}, narrow,
                             0.0F);
    });
    refused("Shard page size (24 bytes) must be aligned to 16B", [&] {
        const ttsl::SmallVector<std::array<std::uint32_t, 2>> below{{0, 8}, {0, 0}};
        return ttnn::pad(rows(Shape({8, 12}), narrow), below, 0.0F, true, std::nullopt,
                         std::nullopt);
    });
    refused("Clone: input and output shard specs must be identical", [&] {
        return ttnn::clone(placed(Shape({64, 64}), sharded(kHeight, 32, 64, 2, 1)), std::nullopt,
                           sharded(kHeight, 64, 64, 1, 1), std::nullopt);
    });
}

void test_untilizing() {
    const auto to_rows = [](const Shape& shape, const MemoryConfig& memory,
                            const std::optional<MemoryConfig>& target = std::nullopt) {
        return ttnn::to_layout(placed(shape, memory), kRows, std::nullopt, target, std::nullopt,
                               0.0F);
    };
    accepted([&] { return to_rows(Shape({60, 60}), sharded(kHeight, 32, 64, 2, 1), kDRAM); });
    refused("Can only write unbatched output interleaved",
            [&] { return to_rows(Shape({2, 30, 60}), sharded(kHeight, 32, 64, 2, 1), kDRAM); });
    refused("Output memory config layout must be INTERLEAVED for block sharded input",
            [&] { return to_rows(Shape({60, 60}), sharded(kBlock, 32, 32, 2, 2)); });
    refused("must match input tensor memory layout", [&] {
        return to_rows(Shape({60, 60}), sharded(kHeight, 32, 64, 2, 1),
                       sharded(kWidth, 60, 32, 2, 1));
    });
    refused("Output memory config layout must be INTERLEAVED but got",
            [&] { return to_rows(Shape({60, 60}), kDRAM, sharded(kHeight, 30, 60, 2, 1)); });
    refused("Multicore implementation doesn't support DRAM sharding", [&] {
        return to_rows(Shape({64, 64}), sharded(kHeight, 32, 64, 2, 1, ShardOrientation::ROW_MAJOR,
                                                BufferType::DRAM));
    });
    refused("Shard page size (24 bytes) must be aligned to 16B",
            [&] { return to_rows(Shape({32, 96}), kDRAM, sharded(kWidth, 32, 12, 8, 1)); });
    refused("We don't support DRAM block sharding", [&] {
        return to_rows(
            Shape({64, 64}), kDRAM,
            sharded(kBlock, 32, 32, 2, 2, ShardOrientation::ROW_MAJOR, BufferType::DRAM));
    });
    refused("Input tensor width (32) must equal output width (4)", [&] {
        return to_rows(Shape({32, 4}), sharded(kWidth, 32, 32, 2, 1), sharded(kWidth, 32, 4, 1, 1));
    });
    refused("Expected single grid range and got 2", [&] {
        const CoreRangeSet cores(
            std::vector<CoreRange>{CoreRange({0, 0}, {1, 0}), CoreRange({0, 1}, {0, 1})});
        const MemoryConfig memory(
            kBlock, BufferType::L1,
            ShardSpec(cores, std::array<std::uint32_t, 2>{32, 32}, ShardOrientation::ROW_MAJOR));
        return to_rows(Shape({60, 60}), memory, kDRAM);
    });
}

void test_tilizing() {
    const auto to_tiles = [](const Shape& shape, const MemoryConfig& memory) {
        return ttnn::to_layout(rows(shape, memory), Layout::TILE, std::nullopt, kDRAM, std::nullopt,
                               0.0F);
    };
    refused("Sharded tensor must have shard shape that is a multiple of TILE_SIZE!",
            [&] { return to_tiles(Shape({32, 64}), sharded(kHeight, 8, 64, 4, 1)); });
    refused("Cannot convert a sharded device tensor with rank 1 to TILE_LAYOUT",
            [&] { return to_tiles(Shape({64}), sharded(kWidth, 1, 32, 2, 1)); });
}

void test_shard_specs() {
    const MemoryConfig tall = sharded(kHeight, 32, 64, 2, 1);
    const MemoryConfig bare(kHeight, BufferType::L1, std::nullopt);
    refused("Physical shard shape (16, 64) must be tile {32, 32} sized!",
            [] { return placed(Shape({64, 64}), sharded(kHeight, 16, 64, 4, 1)); });
    refused("Shard shape 16x64 must be a multiple of the tile's, 32x32", [] {
        return ttnn::interleaved_to_sharded(placed(Shape({64, 64})), sharded(kHeight, 16, 64, 4, 1),
                                            std::nullopt, std::nullopt, std::nullopt);
    });
    refused("MemoryConfig must have Shard Spec specified for sharded memory layout",
            [&] { return placed(Shape({64, 64}), bare); });
    refused("Shard shape must be 1D for 1D tensor!",
            [] { return rows(Shape({64}), sharded(kWidth, 2, 32, 2, 1)); });
    refused("Shard spec has no value",
            [&] { return ttnn::reshape(placed(Shape({64, 64})), Shape({32, 128}), bare); });
    refused("Typecast operation requires Input and Output memory layout to match.", [&] {
        return ttnn::typecast(placed(Shape({64, 64}), tall), DataType::FLOAT32, kDRAM, std::nullopt,
                              std::nullopt);
    });
    refused("Row-major shard width 12 with data type DataType::BFLOAT16 gives page size 24 bytes",
            [&] {
                return ttnn::reshard(rows(Shape({8, 12}), sharded(kHeight, 4, 12, 2, 1)),
                                     sharded(kHeight, 2, 12, 4, 1));
            });
    refused("Shard page size (24 bytes) must be aligned to 16B", [] {
        return ttnn::to_memory_config(rows(Shape({8, 12}), sharded(kHeight, 4, 12, 2, 1)),
                                      sharded(kHeight, 2, 12, 4, 1), std::nullopt);
    });
    refused("Input tensor memory layout must be INTERLEAVED", [&] {
        return ttnn::interleaved_to_sharded(placed(Shape({64, 64}), tall), tall, std::nullopt,
                                            std::nullopt, std::nullopt);
    });
    refused("The CPU backend pads", [] {
        return ttnn::tilize_with_val_padding(rows(Shape({40, 40})), Shape({96, 64}), 0.0F, kDRAM,
                                             std::nullopt, true, std::nullopt);
    });
    refused("Unsupported DataType",
            [] { return tt::tt_metal::datatype_to_dataformat_converter(DataType::INVALID); });
}

void test_broadcasting() {
    const auto add = [](const Shape& a, const Shape& b) {
        return ttnn::add(placed(a), placed(b), std::nullopt, std::nullopt, std::nullopt, {}, {}, {},
                         std::nullopt);
    };
    accepted([&] { return add(Shape({2, 1, 1, 1, 1, 32, 32}), Shape({2, 1, 1, 1, 1, 1, 32})); });
    refused("Broadcast is supported up to rank 6",
            [&] { return add(Shape({2, 1, 1, 1, 1, 32, 32}), Shape({1, 1, 1, 1, 1, 32, 32})); });
}

}  // namespace

int main() {
    test_shards_of_rows();
    test_untilizing();
    test_tilizing();
    test_shard_specs();
    test_broadcasting();
    return 0;
}
