// Caches of keys and values.

#include "call.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
#include "ttnn/operations/kv_cache/kv_cache.hpp"

namespace rules {

namespace {

std::uint32_t number(Call& call, const char* key, std::uint32_t otherwise) {
    const std::int64_t value = call.integer(key).value_or(otherwise);
    if (value < 0) {
        throw Unmapped{"a negative index"};
    }
    return static_cast<std::uint32_t>(value);
}

Results fill_cache(Call& call) {
    return ttnn::fill_cache(call.input(0), call.input(1), number(call, "batch_idx", 0));
}

Results update_cache(Call& call) {
    call.take("(input 1,H,32,D)");
    const std::uint32_t index = number(call, "update_index", 1);
    const std::uint32_t offset = number(call, "batch_offset", 0);
    call.take("1");
    return ttnn::update_cache(call.input(0), call.input(1), index, offset);
}

Results paged_fill_cache(Call& call) {
    call.take("page_table dtype/layout");
    const std::uint32_t batch = number(call, "batch_idx", 0);
    std::optional<const Tensor> batch_tensor;
    if (call.take("batch_idx_tensor")) {
        batch_tensor.emplace(call.input(3));
    }
    return ttnn::experimental::paged_fill_cache(call.input(0), call.input(1), call.input(2),
                                                batch_tensor, batch, std::nullopt, std::nullopt);
}

/// One user's rows on each of four cores.
Tensor sharded_rows(Call& call, const std::string& dtype, Layout layout) {
    const Shape shape{1, 4, layout == Layout::TILE ? 2U : 32U, 64};
    const tt::tt_metal::CoreRangeSet cores(tt::tt_metal::CoreRange({0, 0}, {3, 0}));
    const MemoryConfig memory_config(
        tt::tt_metal::TensorMemoryLayout::HEIGHT_SHARDED, tt::tt_metal::BufferType::L1,
        tt::tt_metal::ShardSpec(cores, {32, 64}, tt::tt_metal::ShardOrientation::ROW_MAJOR));
    return ttnn::empty(shape, dtype_of(dtype), layout, call.on_device(), memory_config);
}

Results paged_update_cache(Call& call) {
    std::vector<std::uint32_t> positions{3, 3, 3, 3};
    std::optional<const Tensor> position_tensor;
    std::optional<const Tensor> page_table;
    std::optional<Tensor> rows;
    if (call.take("update_idxs list, interleaved input")) {
        rows = call.input(1);
    }
    for (const char* dtype : {"bf16", "f32", "i32"}) {
        if (call.take(std::string("input 1x4x2x64 ") + dtype + " T hs L1, update_idxs list")) {
            rows = sharded_rows(call, dtype, Layout::TILE);
        }
    }
    if (call.take("hs ROW_MAJOR input")) {
        rows = sharded_rows(call, "bf16", Layout::ROW_MAJOR);
    }
    if (call.take("hs input")) {
        rows = sharded_rows(call, "bf16", Layout::TILE);
    }
    if (call.take("update_idxs_tensor")) {
        positions.clear();
        position_tensor.emplace(call.input(1));
    }
    if (call.take("page_table")) {
        page_table.emplace(call.input(2));
    }
    if (call.take("no idxs")) {
        positions.clear();
    }
    if (const auto text = call.value("update_idxs")) {
        positions.clear();
        for (const std::int64_t position : numbers_of(*text)) {
            if (position < 0) {
                throw Unmapped{"a negative index"};
            }
            positions.push_back(static_cast<std::uint32_t>(position));
        }
    }
    return ttnn::experimental::paged_update_cache(call.input(0), rows.value(), positions,
                                                  position_tensor, std::nullopt, page_table, 0,
                                                  std::nullopt, std::nullopt);
}

}  // namespace

void add_caches(Operations& operations) {
    operations["fill_cache"] = fill_cache;
    operations["update_cache"] = update_cache;
    operations["kv_cache.fill_cache_for_user_"] = [](Call& call) -> Results {
        call.take("1");
        return ttnn::fill_cache_for_user_(call.input(0), call.input(1), 1);
    };
    operations["kv_cache.update_cache_for_token_"] = [](Call& call) -> Results {
        call.take("3");
        return ttnn::update_cache_for_token_(call.input(0), call.input(1), 3, 0);
    };
    operations["experimental.paged_fill_cache"] = paged_fill_cache;
    operations["experimental.paged_update_cache"] = paged_update_cache;
}

}  // namespace rules
