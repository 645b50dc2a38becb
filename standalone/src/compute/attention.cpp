#include "compute/attention.hpp"

#include <algorithm>
#include <cstring>

#include "compute/product.hpp"
#include "core/parallel.hpp"

namespace ttcodegen::cpu {
namespace {

/// Queries in a block, whose scores stay in the cache.
constexpr std::int64_t kBlockQueries = 64;

/// The number of the `count` keys that queries [first, first + rows) of a group attend to.
std::int64_t visible_keys(const Attention& attention, std::int64_t first, std::int64_t rows,
                          std::int64_t count) {
    if (!attention.causal_from) {
        return count;
    }
    // Rows are ordered by head, then by query.
    const std::int64_t last = first % attention.queries + rows - 1;
    const std::int64_t query = std::min(last, attention.queries - 1);
    constexpr std::int64_t unit = 32;  // keeps products in whole tiles and pairs
    const std::int64_t keys = *attention.causal_from + query + 1;
    return std::clamp<std::int64_t>((keys + unit - 1) / unit * unit, 0, count);
}

/// Rows of one user and head, ordered by position; gathered from pages in paged caches.
class CacheRows {
  public:
    CacheRows(const Tensor& cache, const CacheLayout& layout, std::int64_t width, std::int64_t user,
              std::int64_t head, std::int64_t count)
        : element_size_(stored_size(cache.dtype())) {
        const std::byte* data = buffer_of(cache).data();
        const auto bytes_of = [&](std::int64_t rows) {
            return static_cast<std::size_t>(rows * width) * element_size_;
        };
        if (layout.pages.empty()) {
            data_ = data + bytes_of((user * layout.heads + head) * layout.positions);
            return;
        }
        gathered_.resize(bytes_of(count));
        for (std::int64_t position = 0; position < count; position += layout.positions) {
            const std::int64_t page = layout.pages[static_cast<std::size_t>(
                user * layout.pages_per_user + position / layout.positions)];
            const std::int64_t rows = std::min(layout.positions, count - position);
            std::memcpy(gathered_.data() + bytes_of(position),
                        data + bytes_of((page * layout.heads + head) * layout.positions),
                        bytes_of(rows));
        }
        data_ = gathered_.data();
    }

    template <typename Element>
    PackedMatrix<Element> pack(std::int64_t depth, std::int64_t columns, MatrixStrides strides,
                               MantissaCut cut) const {
        if (element_size_ == sizeof(Bfloat16Bits)) {
            return PackedMatrix<Element>::pack(
                1, depth, columns, reinterpret_cast<const Bfloat16Bits*>(data_), strides, cut);
        }
        return PackedMatrix<Element>::pack(1, depth, columns, reinterpret_cast<const float*>(data_),
                                           strides, cut);
    }

  private:
    std::size_t element_size_;
    const std::byte* data_;
    std::vector<std::byte> gathered_;
};

/// Rows of `tensor`, starting at element `offset`, as a left operand.
template <typename Element>
LeftOperand<Element> rows_of(const Tensor& tensor, std::int64_t offset, std::int64_t width,
                             MantissaCut cut) {
    const MatrixStrides strides{0, width, 1};
    if (tensor.dtype() == DataType::BFLOAT16) {
        return left_operand<Element>(elements<Bfloat16Bits>(tensor).data() + offset, strides, cut);
    }
    return left_operand<Element>(elements<float>(tensor).data() + offset, strides, cut);
}

/// All queries of the heads that share a KV head.
template <typename Element>
void attend_group(const Tensor& queries, const Tensor& keys, const Tensor& values,
                  const Attention& attention, const Arithmetic& arithmetic,
                  const ScoreFunction& weigh, std::byte* output, DataType output_type,
                  std::int64_t user, std::int64_t cache_head) {
    const std::int64_t width = attention.width;
    const std::int64_t count = attention.keys[static_cast<std::size_t>(user)];
    const std::int64_t group = attention.query_heads / attention.cache.heads;
    const std::int64_t first_head = cache_head * group;
    const std::int64_t first_row = (user * attention.query_heads + first_head) * attention.queries;
    const std::int64_t total = group * attention.queries;
    const auto bytes_of = [&](std::int64_t rows) {
        return static_cast<std::size_t>(rows * width) * stored_size(output_type);
    };
    if (count == 0) {
        std::memset(output + bytes_of(first_row), 0, bytes_of(total));
        return;
    }
    const auto packed_keys = CacheRows(keys, attention.cache, width, user, cache_head, count)
                                 .pack<Element>(width, count, {0, 1, width}, arithmetic.second());
    const auto packed_values = CacheRows(values, attention.cache, width, user, cache_head, count)
                                   .pack<Element>(count, width, {0, width, 1}, arithmetic.second());
    std::vector<float> factors(static_cast<std::size_t>(std::min(kBlockQueries, total)));
    std::vector<float> scores(static_cast<std::size_t>(std::min(kBlockQueries, total) * count));
    for (std::int64_t block = 0; block < total; block += kBlockQueries) {
        const std::int64_t rows = std::min(kBlockQueries, total - block);
        const std::int64_t seen = visible_keys(attention, block, rows, count);
        multiply_serially<Element>(
            0, rows,
            rows_of<Element>(queries, (first_row + block) * width, width, arithmetic.first()),
            packed_keys.leading(width, seen), sums_of(arithmetic),
            [&](std::int64_t, std::int64_t row, std::int64_t block_rows, std::int64_t column,
                std::int64_t columns, float* products, std::int64_t stride) {
                for (std::int64_t r = 0; r < block_rows; ++r) {
                    std::copy_n(products + r * stride, columns,
                                scores.data() + (row + r) * seen + column);
                }
            });
        for (std::int64_t r = 0; r < rows; ++r) {
            factors[static_cast<std::size_t>(r)] = weigh(
                user, first_head + (block + r) / attention.queries, (block + r) % attention.queries,
                scores.data() + r * seen, static_cast<std::size_t>(seen));
        }
        multiply_serially<Element>(
            0, rows,
            left_operand<Element>(static_cast<const float*>(scores.data()), {0, seen, 1},
                                  arithmetic.first()),
            packed_values.leading(seen, width), sums_of(arithmetic),
            [&](std::int64_t, std::int64_t row, std::int64_t block_rows, std::int64_t column,
                std::int64_t columns, float* products, std::int64_t stride) {
                for (std::int64_t r = 0; r < block_rows; ++r) {
                    const float factor = factors[static_cast<std::size_t>(row + r)];
                    for (std::int64_t c = 0; c < columns; ++c) {
                        float& product = products[r * stride + c];
                        product = arithmetic.product(round_to_bf16(product), factor);
                    }
                }
                ProductOutput result;
                result.data = output + bytes_of(first_row + block);
                result.dtype = output_type;
                result.stride = width;
                result.store(row, block_rows, column, columns, products, stride);
            });
    }
}

}  // namespace

void attend(const Tensor& queries, const Tensor& keys, const Tensor& values,
            const Attention& attention, const Arithmetic& arithmetic, const ScoreFunction& weigh,
            const Tensor& output) {
    std::byte* stored = buffer_of(output).data();
    const auto groups = static_cast<std::size_t>(attention.users * attention.cache.heads);
    parallel_for(groups, 1, [&](std::size_t begin, std::size_t end) {
        for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
            attend_group<NarrowElement>(queries, keys, values, attention, arithmetic, weigh, stored,
                                        output.dtype(), i / attention.cache.heads,
                                        i % attention.cache.heads);
        }
    });
    finish_block_float(output);
}

}  // namespace ttcodegen::cpu
