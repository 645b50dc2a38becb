#include <memory>

#include "core/chips.hpp"
#include "indexing/lanes.hpp"
#include "ttnn/operations/reduction/accumulation/cumprod/cumprod.hpp"
#include "ttnn/operations/reduction/accumulation/cumsum/cumsum.hpp"

namespace ttcodegen::cpu {

namespace {

Tensor accumulation_output(const Tensor& input, int dim, std::optional<DataType> dtype,
                           const std::optional<Tensor>& output,
                           const std::optional<MemoryConfig>& memory_config) {
    TT_FATAL(on_device(input), "Tensor must already be on device");
    const Shape& shape = input.logical_shape();
    const auto rank = static_cast<int>(shape.rank());
    TT_FATAL(rank == 0 || shape.volume() == 0 || (dim >= -rank && dim < rank),
             "The requested accumulation axis is {}, while the input tensor has rank {}.", dim,
             rank);
    TT_FATAL(input.layout() == Layout::TILE || rank == 0 || shape.volume() == 0,
             "The provided input tensor has a non-tile layout: {}.", input.layout());
    // The dimension is transposed to the first one on the way, which loses the sharding.
    TT_FATAL(!input.is_sharded(), "A sharded tensor cannot be accumulated");
    if (output) {
        TT_FATAL(output->logical_shape() == shape,
                 "Shape mismatch: input tensor shape {} does not match output tensor shape {}.",
                 shape, output->logical_shape());
        TT_FATAL(!dtype || output->dtype() == *dtype,
                 "The output tensor has the data type {}, not {}", output->dtype(), *dtype);
        return *output;
    }
    return allocate_like(input, shape, dtype.value_or(input.dtype()), input.layout(),
                         output_memory_config(input, memory_config));
}

/// Accumulates along lanes; `inner` of them are adjacent.
template <typename Value, typename Combine>
void accumulate(const Lanes& lanes, bool reverse, Value* values, const Combine& combine) {
    for (std::size_t outer = 0; outer < lanes.outer; ++outer) {
        Value* block = values + outer * lanes.size * lanes.inner;
        for (std::size_t i = 1; i < lanes.size; ++i) {
            const std::size_t row = reverse ? lanes.size - 1 - i : i;
            Value* current = block + row * lanes.inner;
            const Value* previous = reverse ? current + lanes.inner : current - lanes.inner;
            for (std::size_t j = 0; j < lanes.inner; ++j) {
                current[j] = combine(previous[j], current[j]);
            }
        }
    }
}

/// Unsigned, so that integers wrap.
struct Add {
    float operator()(float a, float b) const { return a + b; }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                         static_cast<std::uint64_t>(b));
    }
};
struct Multiply {
    float operator()(float a, float b) const { return a * b; }
    std::int64_t operator()(std::int64_t a, std::int64_t b) const {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                         static_cast<std::uint64_t>(b));
    }
};

template <typename Combine>
Tensor accumulation(const Tensor& input, int dim, std::optional<DataType> dtype, bool reverse,
                    const std::optional<Tensor>& optional_out,
                    const std::optional<MemoryConfig>& memory_config, const Combine& combine) {
    const Tensor output = accumulation_output(input, dim, dtype, optional_out, memory_config);
    const Shape& shape = input.logical_shape();
    const std::size_t rank = shape.rank();
    const std::size_t count = shape.volume();
    if (count == 0) {
        return output;
    }
    const Lanes lanes(shape, rank == 0 ? 0 : normalize_dim(dim, rank));
    std::byte* stored = buffer_of(output).data();
    if (is_integer(input.dtype()) && is_integer(output.dtype())) {
        const auto values = load_integers(input);
        accumulate(lanes, reverse, values.get(), combine);
        store_integers(values.get(), count, output.dtype(), stored);
        return output;
    }
    const FloatElements source(input);
    const auto values = std::make_unique_for_overwrite<float[]>(count);
    std::copy(source.span().begin(), source.span().end(), values.get());
    accumulate(lanes, reverse, values.get(), combine);
    store_floats(values.get(), count, output.dtype(), stored);
    finish_block_float(output);
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor cumsum(const Tensor& input, const std::int32_t& dim, std::optional<DataType> dtype,
              const bool& reverse_order, std::optional<Tensor> optional_out,
              const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(cumsum, input, dim, dtype, reverse_order, optional_out, memory_config);
    return cpu::accumulation(input, dim, dtype, reverse_order, optional_out, memory_config,
                             cpu::Add{});
}

Tensor cumprod(const Tensor& input_tensor, const std::int32_t& dim, std::optional<DataType> dtype,
               const bool& reverse_order, std::optional<Tensor> optional_out,
               const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(cumprod, input_tensor, dim, dtype, reverse_order, optional_out,
                           memory_config);
    return cpu::accumulation(input_tensor, dim, dtype, reverse_order, optional_out, memory_config,
                             cpu::Multiply{});
}

}  // namespace ttnn
