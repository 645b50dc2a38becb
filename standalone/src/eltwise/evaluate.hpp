#pragma once

// Evaluation of elementwise functions in chunks: operands are read and broadcast as floats (or
// 64-bit integers), the function runs over a chunk that stays in the cache, and the result is
// rounded to the output's data type.

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "core/parallel.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

constexpr std::size_t kChunk = 1024;
// Minimum elements per thread.
constexpr std::size_t kElementwiseGrain = 16 * kChunk;

/// Reads an operand in the flat order of the result's elements, broadcasting it.
template <typename Value>
class OperandReader {
    static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, std::int64_t>);

  public:
    /// A scalar.
    explicit OperandReader(Value scalar) : scalar_(scalar) {}
    /// A tensor whose shape broadcasts to `result`.
    OperandReader(const Tensor& tensor, const Shape& result)
        : stored_(buffer_of(tensor).data()), dtype_(tensor.dtype()) {
        collapse(tensor.logical_shape(), result);
    }

    /// Elements [begin, begin + count) in the result's order; in `scratch`, or where they are
    /// stored.
    const Value* read(std::size_t begin, std::size_t count, Value* scratch) const {
        if (stored_ == nullptr) {
            std::fill_n(scratch, count, scalar_);
            return scratch;
        }
        if (sizes_.size() == 1 && strides_[0] == 1) {
            if (std::is_same_v<Value, float> && is_stored_as_float(dtype_)) {
                return reinterpret_cast<const Value*>(stored_) + begin;
            }
            load(begin, count, scratch);
            return scratch;
        }
        read_broadcast(begin, count, scratch);
        return scratch;
    }

  private:
    void load(std::size_t offset, std::size_t count, Value* values) const {
        const std::byte* from = stored_ + offset * stored_size(dtype_);
        if constexpr (std::is_same_v<Value, float>) {
            load_floats(from, dtype_, count, values);
        } else {
            load_integers(from, dtype_, count, values);
        }
    }

    /// Merges contiguous dimensions; broadcast dimensions have stride 0.
    void collapse(const Shape& shape, const Shape& result) {
        const auto own = element_strides(shape);
        const std::size_t missing = result.rank() - shape.rank();
        for (std::size_t i = 0; i < result.rank(); ++i) {
            const std::size_t size = result.view()[i];
            const bool broadcast = i < missing || shape.view()[i - missing] != size;
            const std::size_t stride = broadcast ? 0 : own[i - missing];
            if (size == 1) {
                continue;
            }
            if (!sizes_.empty() && strides_.back() == stride * size) {
                sizes_.back() *= size;
                strides_.back() = stride;
            } else {
                sizes_.push_back(size);
                strides_.push_back(stride);
            }
        }
        if (sizes_.empty()) {
            sizes_.push_back(1);
            strides_.push_back(1);
        }
    }

    void read_broadcast(std::size_t begin, std::size_t count, Value* values) const {
        ttsl::SmallVector<std::size_t> index(sizes_.size(), 0);
        std::size_t rest = begin;
        std::size_t offset = 0;
        for (std::size_t i = sizes_.size(); i-- > 0;) {
            index[i] = rest % sizes_[i];
            rest /= sizes_[i];
            offset += index[i] * strides_[i];
        }
        const std::size_t last = sizes_.size() - 1;
        while (count > 0) {
            const std::size_t run = std::min(count, sizes_[last] - index[last]);
            read_run(offset, run, values);
            values += run;
            count -= run;
            offset -= index[last] * strides_[last];
            index[last] = 0;
            for (std::size_t i = last; i-- > 0;) {
                offset += strides_[i];
                if (++index[i] < sizes_[i]) {
                    break;
                }
                offset -= sizes_[i] * strides_[i];
                index[i] = 0;
            }
        }
    }

    void read_run(std::size_t offset, std::size_t count, Value* values) const {
        const std::size_t stride = strides_.back();
        if (stride == 1) {
            load(offset, count, values);
        } else if (stride == 0) {
            load(offset, 1, values);
            std::fill_n(values + 1, count - 1, values[0]);
        } else {
            for (std::size_t i = 0; i < count; ++i) {
                load(offset + i * stride, 1, values + i);
            }
        }
    }

    const std::byte* stored_ = nullptr;
    DataType dtype_ = DataType::FLOAT32;
    Value scalar_{};
    ttsl::SmallVector<std::size_t> sizes_;
    ttsl::SmallVector<std::size_t> strides_;
};

/// Stores `function(inputs, output, count)`, chunk by chunk, to all elements of `output`.
///
/// `inputs` points to `count` values of each operand; `output` may be one of the operands' buffers
/// where both are floats.
template <typename Value, std::size_t Operands, typename Function>
void evaluate(const std::array<OperandReader<Value>, Operands>& operands, const Tensor& output,
              const Function& function) {
    Buffer& buffer = buffer_of(output);
    buffer.forget_derived();
    const DataType dtype = output.dtype();
    const bool in_place = std::is_same_v<Value, float> && is_stored_as_float(dtype);
    const auto evaluate_range = [&](std::size_t range_begin, std::size_t range_end) {
        // Padded: buffers 4096 bytes apart would cause false store-to-load conflicts (4K aliasing).
        alignas(64) Value scratch[Operands + 1][kChunk + 16];
        for (std::size_t begin = range_begin; begin < range_end; begin += kChunk) {
            const std::size_t count = std::min(kChunk, range_end - begin);
            std::array<const Value*, Operands> inputs;
            for (std::size_t i = 0; i < Operands; ++i) {
                inputs[i] = operands[i].read(begin, count, scratch[i]);
            }
            std::byte* stored = buffer.data() + begin * stored_size(dtype);
            Value* result = in_place ? reinterpret_cast<Value*>(stored) : scratch[Operands];
            function(inputs, result, count);
            if constexpr (std::is_same_v<Value, std::int64_t>) {
                store_integers(result, count, dtype, stored);
            } else if (!in_place) {
                store_floats(result, count, dtype, stored);
            }
        }
    };
    parallel_for(output.logical_volume(), kElementwiseGrain, evaluate_range);
    finish_block_float(output);
}

/// The number of last dimensions in which the kernels of tt-metal 0.70.1 broadcast.
inline constexpr std::size_t kMostBroadcastDims = 6;

/// The broadcast shape of two shapes.
/// @throws std::runtime_error if they are incompatible.
inline Shape broadcast_shape(const Shape& a, const Shape& b) {
    const std::size_t rank = std::max(a.rank(), b.rank());
    ttsl::SmallVector<std::uint32_t> sizes(rank, 1);
    for (std::size_t i = 1; i <= rank; ++i) {
        const std::uint32_t left = i <= a.rank() ? a.view()[a.rank() - i] : 1;
        const std::uint32_t right = i <= b.rank() ? b.view()[b.rank() - i] : 1;
        // A dimension of size 0 broadcasts with itself only, not even with 1.
        TT_FATAL(left == right || (left == 1 && right != 0) || (right == 1 && left != 0),
                 "Invalid subtile broadcast type: {} does not broadcast with {}", a, b);
        TT_FATAL(i <= kMostBroadcastDims || left == right,
                 "Broadcast is supported up to rank {}: {} does not broadcast with {}",
                 kMostBroadcastDims, a, b);
        sizes[rank - i] = std::max(left, right);
    }
    return Shape(std::move(sizes));
}

}  // namespace ttcodegen::cpu
