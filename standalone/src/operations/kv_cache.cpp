#include "ttnn/operations/kv_cache/kv_cache.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "compute/arithmetic.hpp"
#include "core/chips.hpp"
#include "core/shard_rules.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

/// Writes rows of one tensor to rows of another one of the same width, in place.
class RowWriter {
  public:
    RowWriter(const Tensor& source, const Tensor& target)
        : width_(target.logical_shape()[-1]),
          source_type_(source.dtype()),
          target_type_(target.dtype()),
          source_(buffer_of(source).data()),
          target_(buffer_of(target).data()),
          values_(width_) {
        buffer_of(target).forget_derived();
    }

    void write(std::size_t source_row, std::size_t target_row, std::size_t count) {
        const std::size_t source_bytes = width_ * stored_size(source_type_);
        const std::size_t target_bytes = width_ * stored_size(target_type_);
        const std::byte* from = source_ + source_row * source_bytes;
        std::byte* to = target_ + target_row * target_bytes;
        if (source_type_ == target_type_) {
            std::memcpy(to, from, count * target_bytes);
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            load_floats(from + i * source_bytes, source_type_, width_, values_.data());
            if (is_block(target_type_)) {
                quantize_block_float(values_.data(), 1, width_, target_type_,
                                     BlockRounding::Packer);
            }
            store_floats(values_.data(), width_, target_type_, to + i * target_bytes);
        }
    }

    /// Writes one row to a position of a head whose rows begin at `head`. The tile row with the
    /// position is read and rewritten through the source registers, with all its other rows.
    void update(std::size_t source_row, std::size_t head, std::size_t position,
                std::size_t positions, const Arithmetic& arithmetic) {
        if (source_type_ == DataType::FLOAT32 && target_type_ == DataType::BFLOAT16) {
            cut_row(source_ + source_row * width_ * sizeof(float),
                    target_ + (head + position) * width_ * stored_size(target_type_),
                    arithmetic.source());
            return;
        }
        write(source_row, head + position, 1);
        if (target_type_ != DataType::FLOAT32) {
            return;
        }
        constexpr std::size_t tile = 32;
        const std::size_t first = position / tile * tile;
        for (std::size_t row = first; row < std::min(first + tile, positions); ++row) {
            std::byte* place = target_ + (head + row) * width_ * sizeof(float);
            cut_row(place, place, arithmetic.source());
        }
    }

  private:
    /// Stores a row of floats in the type of the target, truncated by `keep`.
    void cut_row(const std::byte* from, std::byte* to, MantissaCut keep) {
        load_floats(from, DataType::FLOAT32, width_, values_.data());
        std::transform(values_.begin(), values_.end(), values_.begin(), keep);
        store_floats(values_.data(), width_, target_type_, to);
    }

    std::size_t width_;
    DataType source_type_;
    DataType target_type_;
    const std::byte* source_;
    std::byte* target_;
    std::vector<float> values_;
};

Arithmetic arithmetic_of_update(const std::optional<const DeviceComputeKernelConfig>& compute,
                                const Tensor& cache) {
    return arithmetic_of(compute, ComputeDefault::cache, std::array{cache.dtype()}, false);
}

bool is_cache_type(DataType dtype) {
    return dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT16 ||
           dtype == DataType::BFLOAT8_B;
}

void check_cache_arguments(const Tensor& cache, const Tensor& input) {
    for (const Tensor* tensor : {&cache, &input}) {
        TT_FATAL(on_device(*tensor), "Expected Tensor with DeviceStorage, got {}",
                 tensor->storage_type());
        TT_FATAL(tensor->layout() == Layout::TILE, "Inputs to update_cache must be tilized");
        TT_FATAL(is_cache_type(tensor->dtype()),
                 "{} tensor dtype must be FLOAT32, BFLOAT16, or BFLOAT8_B but got {}",
                 tensor == &cache ? "Cache" : "Input", tensor->dtype());
        TT_FATAL(tensor->logical_shape().rank() == 4, "A cache and its input have rank 4, got {}",
                 tensor->logical_shape());
    }
    check_whole_rows(input);
    TT_FATAL(!cache.is_sharded() || cache.memory_config().nd_shard_spec(),
             "Cache tensor memory layout must be INTERLEAVED but got {}",
             cache.memory_config().memory_layout());
    const Shape& shape = cache.logical_shape();
    const Shape& input_shape = input.logical_shape();
    TT_FATAL(input_shape[0] == 1, "Input tensor batch size must be 1 but got {}", input_shape[0]);
    TT_FATAL(input_shape[1] == shape[1],
             "Input tensor height ({}) must equal cache tensor height ({})", input_shape[1],
             shape[1]);
    TT_FATAL(input_shape[3] == shape[3],
             "Input tensor width ({}) must equal cache tensor width ({})", input_shape[3],
             shape[3]);
}

}  // namespace

Tensor fill_cache(const Tensor& cache_tensor, const Tensor& input_tensor, uint32_t batch_idx) {
    TTCODEGEN_ON_EACH_CHIP(fill_cache, cache_tensor, input_tensor, batch_idx);
    check_cache_arguments(cache_tensor, input_tensor);
    TT_FATAL(cache_tensor.dtype() == input_tensor.dtype(),
             "Input and cache tensors must have same dtype!");
    const Shape& shape = cache_tensor.logical_shape();
    const std::size_t length = input_tensor.logical_shape()[2];
    TT_FATAL(!input_tensor.is_sharded() ||
                 input_tensor.padded_shape()[-2] % input_tensor.shard_spec()->shape[0] == 0,
             "Seq len must be divisible by shard height!");
    TT_FATAL(batch_idx < shape[0],
             "Batch index ({}) must be less than cache tensor batch size ({})", batch_idx,
             shape[0]);
    TT_FATAL(length <= shape[2], "Input tensor height ({}) must be <= cache tensor height ({})",
             length, shape[2]);
    RowWriter writer(input_tensor, cache_tensor);
    for (std::size_t head = 0; head < shape[1]; ++head) {
        writer.write(head * length, (std::size_t{batch_idx} * shape[1] + head) * shape[2], length);
    }
    return cache_tensor;
}

Tensor update_cache(const Tensor& cache, const Tensor& input, uint32_t update_idx,
                    uint32_t batch_offset,
                    std::optional<const DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(update_cache, cache, input, update_idx, batch_offset,
                           compute_kernel_config);
    check_cache_arguments(cache, input);
    const Shape& shape = cache.logical_shape();
    const std::size_t users = input.logical_shape()[2];
    TT_FATAL(batch_offset + shape[0] <= 32 || shape[0] > 32,
             "Batch offset ({}) + cache tensor batch size ({}) must be <= 32", batch_offset,
             shape[0]);
    TT_FATAL(batch_offset == 0 || shape[0] < 32,
             "Batch offset must be 0 when cache tensor batch size >= 32");
    TT_FATAL(batch_offset + shape[0] <= users,
             "The input has tokens of {} users, {} from user {} on are requested", users, shape[0],
             batch_offset);
    // Hardware would write beyond the end of the cache.
    TT_FATAL(update_idx < shape[2], "Update index {} is outside of a cache of {} positions",
             update_idx, shape[2]);
    const Arithmetic arithmetic = arithmetic_of_update(compute_kernel_config, cache);
    RowWriter writer(input, cache);
    for (std::size_t user = 0; user < shape[0]; ++user) {
        for (std::size_t head = 0; head < shape[1]; ++head) {
            writer.update(head * users + batch_offset + user, (user * shape[1] + head) * shape[2],
                          update_idx, shape[2], arithmetic);
        }
    }
    return cache;
}

Tensor fill_cache_for_user_(const Tensor& cache, const Tensor& input, uint32_t batch_index) {
    TTCODEGEN_ON_EACH_CHIP(fill_cache_for_user_, cache, input, batch_index);
    return fill_cache(cache, input, batch_index);
}

Tensor update_cache_for_token_(const Tensor& cache, const Tensor& input, uint32_t update_index,
                               uint32_t batch_offset,
                               std::optional<const DeviceComputeKernelConfig> config) {
    TTCODEGEN_ON_EACH_CHIP(update_cache_for_token_, cache, input, update_index, batch_offset,
                           config);
    return update_cache(cache, input, update_index, batch_offset, config);
}

namespace experimental {
namespace {

/// A page table (users, pages of a user) of i32.
class PageTable {
  public:
    PageTable(const Tensor& tensor, std::size_t pages, std::size_t positions)
        : pages_(pages), positions_(positions) {
        require_on_device(tensor, "page_table");
        TT_FATAL(tensor.dtype() == DataType::INT32, "Expect page table to have datatype INT32");
        TT_FATAL(!tensor.is_sharded(),
                 "Expect page_table_tensor to have memory layout INTERLEAVED");
        TT_FATAL(tensor.logical_shape().rank() == 2, "A page table has rank 2, got {}",
                 tensor.logical_shape());
        users_ = tensor.logical_shape()[0];
        pages_per_user_ = tensor.logical_shape()[1];
        const auto values = load_integers(tensor);
        table_.assign(values.get(), values.get() + tensor.logical_volume());
    }

    std::size_t users() const { return users_; }
    std::size_t pages_per_user() const { return pages_per_user_; }

    /// The page of a user's position.
    std::size_t page(std::size_t user, std::size_t position) const {
        const std::size_t index = position / positions_;
        TT_FATAL(user < users_ && index < pages_per_user_,
                 "Position {} of user {} is outside of a page table of {} users with {} pages",
                 position, user, users_, pages_per_user_);
        const int64_t page = table_[user * pages_per_user_ + index];
        TT_FATAL(page >= 0 && page < static_cast<int64_t>(pages_),
                 "Page {} of user {} is outside of a cache of {} pages", page, user, pages_);
        return static_cast<std::size_t>(page);
    }

  private:
    std::size_t pages_;
    std::size_t positions_;
    std::size_t users_ = 0;
    std::size_t pages_per_user_ = 0;
    std::vector<int64_t> table_;
};

void check_paged_cache(const Tensor& cache) {
    require_on_device(cache, "cache");
    TT_FATAL(cache.layout() == Layout::TILE, "Cache tensor must be tilized");
    TT_FATAL(
        is_cache_type(cache.dtype()) || cache.dtype() == DataType::BFLOAT4_B,
        "Data type of cache tensor must be FLOAT32, BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is {}",
        cache.dtype());
    TT_FATAL(cache.logical_shape().rank() == 4, "A cache has rank 4, got {}",
             cache.logical_shape());
    TT_FATAL(!cache.is_sharded(), "Only interleaved cache is supported");
}

void check_update_input(const Tensor& input, const Shape& cache) {
    require_on_device(input, "input_tensor");
    TT_FATAL(input.layout() == Layout::TILE,
             "Input tensor in non-fused update_cache must be tilized");
    TT_FATAL(input.is_sharded(), "Expect input_tensor to be sharded");
    TT_FATAL(input.memory_config().memory_layout() != TensorMemoryLayout::WIDTH_SHARDED,
             "Expect input_tensor to NOT have memory layout WIDTH SHARDED");
    check_whole_rows(input);
    TT_FATAL(input.shard_spec()->orientation == tt::tt_metal::ShardOrientation::ROW_MAJOR,
             "Only ROW_MAJOR sharding is supported");
    TT_FATAL(input.dtype() == DataType::FLOAT32 || input.dtype() == DataType::BFLOAT16,
             "Data type of input tensor for update cache must be FLOAT32 or BFLOAT16");
    const Shape& shape = input.logical_shape();
    TT_FATAL(shape.rank() == 4 && shape[0] == 1 && shape[2] >= cache[1] && shape[3] == cache[3],
             "The input must be (1, users, at least {} heads, {}), got {}", cache[1], cache[3],
             shape);
}

/// One position for each user; negative ones are skipped.
std::vector<int64_t> update_positions(const std::vector<uint32_t>& list,
                                      const std::optional<const Tensor>& tensor,
                                      std::size_t users) {
    TT_FATAL(list.empty() == tensor.has_value(),
             "Only an update tensor or an update vector can be provided. Not both or neither.");
    std::vector<int64_t> positions;
    if (tensor) {
        require_on_device(*tensor, "update_idxs");
        TT_FATAL(tensor->layout() == Layout::ROW_MAJOR,
                 "Expected update_idxs to have memory layout in ROW MAJOR");
        TT_FATAL(tensor->dtype() == DataType::INT32, "Expected update_idxs to have datatype INT32");
        TT_FATAL(tensor->is_sharded() || tensor->memory_config().is_dram(),
                 "Expect update_idxs to have buffer type DRAM");
        const auto values = load_integers(*tensor);
        positions.assign(values.get(), values.get() + tensor->logical_volume());
    } else {
        for (const uint32_t position : list) {
            positions.push_back(static_cast<int32_t>(position));
        }
    }
    TT_FATAL(positions.size() == users, "Number of update_idxs ({}) should match batch size ({})",
             positions.size(), users);
    return positions;
}

}  // namespace

Tensor paged_update_cache(
    const Tensor& cache_tensor, const Tensor& input_tensor,
    const std::vector<uint32_t>& update_idxs, const std::optional<const Tensor>& update_idxs_tensor,
    std::optional<bool> share_cache, const std::optional<const Tensor>& page_table,
    uint32_t batch_offset,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& ignored) {
    TTCODEGEN_ON_EACH_CHIP(paged_update_cache, cache_tensor, input_tensor, update_idxs,
                           update_idxs_tensor, share_cache, page_table, batch_offset,
                           compute_kernel_config, ignored);
    check_paged_cache(cache_tensor);
    const Shape& cache = cache_tensor.logical_shape();
    check_update_input(input_tensor, cache);
    TT_FATAL(batch_offset == 0, "batch_offset must be 0, got {}", batch_offset);
    const Shape& shape = input_tensor.logical_shape();
    const std::size_t users = shape[1];
    const std::size_t cores = input_tensor.memory_config().shard_spec().value().num_cores();
    TT_FATAL(update_idxs.empty() || cores <= update_idxs.size(),
             "The input is on {} cores, each of which reads one of {} update indices", cores,
             update_idxs.size());
    const auto positions = update_positions(update_idxs, update_idxs_tensor, users);
    std::optional<PageTable> table;
    const bool is_shared = share_cache.value_or(false);
    if (page_table) {
        TT_FATAL(page_table->layout() == Layout::ROW_MAJOR,
                 "Expect page table to have memory layout in ROW MAJOR");
        TT_FATAL(!is_shared, "share_cache is not supported with a page table");
        TT_FATAL(update_idxs_tensor.has_value(), "Paged cache requires update_idxs tensor");
        table.emplace(*page_table, cache[0], cache[2]);
        TT_FATAL(table->users() == users,
                 "Batch size between page_table and input_tensor must match: {} and {}",
                 table->users(), users);
        TT_FATAL(table->pages_per_user() <= cache[0],
                 "max_num_blocks_per_seq must be less than max_num_blocks: {} and {}",
                 table->pages_per_user(), cache[0]);
    } else {
        TT_FATAL(cache[0] == (is_shared ? 1 : users), "The cache holds {} users, the input has {}",
                 cache[0], users);
    }
    const Arithmetic arithmetic = arithmetic_of_update(compute_kernel_config, cache_tensor);
    RowWriter writer(input_tensor, cache_tensor);
    for (std::size_t user = 0; user < users; ++user) {
        if (positions[user] < 0) {
            continue;
        }
        const auto position = static_cast<std::size_t>(positions[user]);
        TT_FATAL(table || position < cache[2],
                 "Update index {} of user {} is outside of a cache of {} positions", position, user,
                 cache[2]);
        const std::size_t block = table ? table->page(user, position) : is_shared ? 0 : user;
        for (std::size_t head = 0; head < cache[1]; ++head) {
            writer.update(user * shape[2] + head, (block * cache[1] + head) * cache[2],
                          position % cache[2], cache[2], arithmetic);
        }
    }
    return cache_tensor;
}

std::tuple<Tensor, Tensor> paged_fused_update_cache(
    const Tensor& cache_tensor1, const Tensor& input_tensor1, const Tensor& cache_tensor2,
    const Tensor& input_tensor2, const std::vector<uint32_t>& update_idxs,
    const std::optional<const Tensor>& update_idxs_tensor, std::optional<bool> share_cache,
    const std::optional<const Tensor>& page_table, uint32_t batch_offset,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords) {
    TTCODEGEN_ON_EACH_CHIP(paged_fused_update_cache, cache_tensor1, input_tensor1, cache_tensor2,
                           input_tensor2, update_idxs, update_idxs_tensor, share_cache, page_table,
                           batch_offset, compute_kernel_config, mesh_coords);
    const auto update = [&](const Tensor& cache, const Tensor& input) {
        return paged_update_cache(cache, input, update_idxs, update_idxs_tensor, share_cache,
                                  page_table, batch_offset, compute_kernel_config, mesh_coords);
    };
    return {update(cache_tensor1, input_tensor1), update(cache_tensor2, input_tensor2)};
}

Tensor paged_fill_cache(const Tensor& cache_tensor, const Tensor& input_tensor,
                        const Tensor& page_table,
                        const std::optional<const Tensor>& batch_idx_tensor, uint32_t batch_idx,
                        std::optional<const ttnn::DeviceComputeKernelConfig> ignored,
                        const std::optional<const std::set<ttnn::MeshCoordinate>>& ignored_2) {
    TTCODEGEN_ON_EACH_CHIP(paged_fill_cache, cache_tensor, input_tensor, page_table,
                           batch_idx_tensor, batch_idx, ignored, ignored_2);
    check_paged_cache(cache_tensor);
    require_on_device(input_tensor, "input_tensor");
    const Shape& cache = cache_tensor.logical_shape();
    const Shape& shape = input_tensor.logical_shape();
    TT_FATAL(input_tensor.dtype() == DataType::FLOAT32 ||
                 input_tensor.dtype() == DataType::BFLOAT16 ||
                 input_tensor.dtype() == cache_tensor.dtype(),
             "Data type of input tensor for fill cache must be FLOAT32, BFLOAT16, or BFLOAT8_b");
    TT_FATAL(shape.rank() == 4 && shape[0] == 1 && shape[1] == cache[1] && shape[3] == cache[3],
             "The input must be (1, {}, positions, {}), got {}", cache[1], cache[3], shape);
    TT_FATAL(!input_tensor.is_sharded(), "Expect input_tensor to have memory layout INTERLEAVED");
    if (batch_idx_tensor) {
        require_on_device(*batch_idx_tensor, "batch_idx_tensor");
        TT_FATAL(batch_idx_tensor->dtype() == DataType::UINT32 ||
                     batch_idx_tensor->dtype() == DataType::INT32,
                 "Batch idx tensor must be an integer type, got {}", batch_idx_tensor->dtype());
        TT_FATAL(batch_idx_tensor->logical_volume() == 1,
                 "batch_idx_tensor must have one element, got {}",
                 batch_idx_tensor->logical_shape());
        batch_idx = static_cast<uint32_t>(load_integers(*batch_idx_tensor)[0]);
    }
    const PageTable table(page_table, cache[0], cache[2]);
    TT_FATAL(shape[2] <= table.pages_per_user() * cache[2],
             "Input seq_len must fit in max_num_blocks_per_seq");
    RowWriter writer(input_tensor, cache_tensor);
    for (std::size_t position = 0; position < shape[2]; position += cache[2]) {
        const std::size_t page = table.page(batch_idx, position);
        const std::size_t count = std::min<std::size_t>(cache[2], shape[2] - position);
        for (std::size_t head = 0; head < cache[1]; ++head) {
            writer.write(head * shape[2] + position, (page * cache[1] + head) * cache[2], count);
        }
    }
    return cache_tensor;
}

}  // namespace experimental

}  // namespace ttnn
