#include "ttnn/operations/eltwise/ternary/ternary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <variant>
#include <vector>

#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "eltwise/evaluate.hpp"
#include "eltwise/unary_functions.hpp"
#include "ttnn/operations/eltwise/ternary/ternary_composite_op.hpp"
#include "ttnn/operations/eltwise/unary/unary_composite.hpp"

namespace ttcodegen::cpu {

namespace {

using ttnn::operations::ternary::TensorScalarVariant;

const Tensor* tensor_of(const TensorScalarVariant& value) { return std::get_if<Tensor>(&value); }

double number_of(const TensorScalarVariant& value) {
    const float* number = std::get_if<float>(&value);
    return number != nullptr ? static_cast<double>(*number) : std::get<int>(value);
}

template <typename Value>
OperandReader<Value> reader(const TensorScalarVariant& value, const Shape& shape) {
    if (const Tensor* tensor = tensor_of(value)) {
        return OperandReader<Value>(*tensor, shape);
    }
    return OperandReader<Value>(static_cast<Value>(number_of(value)));
}

/// Requires tiles of the first operand only; the release tilizes the others.
void require_tiles(const Tensor& first) {
    TT_FATAL(first.layout() == Layout::TILE || first.memory_config().is_sharded(),
             "Ternary operation requires tensor to be in Tile layout when working with "
             "non-sharded input tensor. Input tensor layout: {}",
             first.layout());
}

/// Requires tiles for floats; integers are interpolated by binary operations, which take rows too.
void require_lerp_tiles(const Tensor& first) {
    if (first.dtype() != DataType::INT32) {
        require_tiles(first);
    }
}

Tensor ternary_output(std::span<const Tensor* const> operands, const Shape& shape, DataType dtype,
                      Layout layout, const std::optional<MemoryConfig>& memory_config,
                      const std::optional<Tensor>& output) {
    if (!output) {
        return allocate_like(*operands.front(), shape, dtype, layout,
                             elementwise_memory(operands, shape, layout, memory_config));
    }
    require_on_device(*output, "Output tensor");
    TT_FATAL(output->logical_shape() == shape,
             "Shape of Output tensor {} provided does not match the broadcasted output shape {}",
             output->logical_shape(), shape);
    return *output;
}

DataType where_type(const Tensor& predicate, const Tensor* value_true, const Tensor* value_false) {
    if (value_true != nullptr || value_false != nullptr) {
        return (value_true != nullptr ? *value_true : *value_false).dtype();
    }
    const DataType dtype = predicate.dtype();
    return dtype == DataType::INT32 || dtype == DataType::UINT32 ? DataType::FLOAT32 : dtype;
}

bool is_whole(const TensorScalarVariant& value) {
    const Tensor* tensor = tensor_of(value);
    return tensor != nullptr ? is_integer(tensor->dtype())
                             : number_of(value) == std::trunc(number_of(value));
}

template <typename Value>
void select(const Tensor& predicate, const TensorScalarVariant& value_true,
            const TensorScalarVariant& value_false, const Tensor& output) {
    const Shape& shape = output.logical_shape();
    evaluate(std::array{OperandReader<Value>(predicate, shape), reader<Value>(value_true, shape),
                        reader<Value>(value_false, shape)},
             output, [](const auto& inputs, Value* values, std::size_t count) {
                 for (std::size_t i = 0; i < count; ++i) {
                     values[i] = inputs[0][i] != Value{0} ? inputs[1][i] : inputs[2][i];
                 }
             });
}

Tensor where(const Tensor& predicate, const TensorScalarVariant& value_true,
             const TensorScalarVariant& value_false,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& output_tensor) {
    require_on_device(predicate, "Condition tensor");
    const Tensor* on_true = tensor_of(value_true);
    const Tensor* on_false = tensor_of(value_false);
    Shape shape = predicate.logical_shape();
    bool row_major = predicate.layout() == Layout::ROW_MAJOR;
    for (const Tensor* value : {on_true, on_false}) {
        if (value != nullptr) {
            require_on_device(*value, "Value tensor");
            shape = broadcast_shape(shape, value->logical_shape());
            row_major = row_major && value->layout() == Layout::ROW_MAJOR;
        }
    }
    if (on_true != nullptr && on_false != nullptr) {
        require_tiles(predicate);
    }
    // With one tensor of values, it alone determines the memory config of the result.
    std::vector<const Tensor*> placing;
    for (const Tensor* value : {on_true, on_false}) {
        if (value != nullptr) {
            placing.push_back(value);
        }
    }
    if (placing.size() != 1) {
        placing.insert(placing.begin(), &predicate);
    }
    const Tensor output =
        ternary_output(placing, shape, where_type(predicate, on_true, on_false),
                       row_major ? Layout::ROW_MAJOR : Layout::TILE, memory_config, output_tensor);
    if (is_integer(output.dtype()) && is_whole(value_true) && is_whole(value_false)) {
        // A fraction is true as well: it must not be truncated to 0.
        const Tensor truth =
            is_integer(predicate.dtype())
                ? predicate
                : unary_operation(predicate, UnaryOpType::NEZ, {}, std::nullopt, std::nullopt);
        select<std::int64_t>(truth, value_true, value_false, output);
    } else {
        select<float>(predicate, value_true, value_false, output);
    }
    return output;
}

/// Evaluates `function(a, b, c)` on three tensors in tiles, in the type `Value`.
template <typename Value, typename Function>
Tensor ternary_operation(const Tensor& a, const Tensor& b, const Tensor& c,
                         const std::optional<MemoryConfig>& memory_config,
                         const std::optional<Tensor>& output_tensor, DataType dtype,
                         const Function& function) {
    require_on_device(a, "Input tensor A");
    require_on_device(b, "Input tensor B");
    require_on_device(c, "Input tensor C");
    const Shape shape =
        broadcast_shape(broadcast_shape(a.logical_shape(), b.logical_shape()), c.logical_shape());
    const Tensor output = ternary_output(std::array{&a, &b, &c}, shape, dtype, a.layout(),
                                         memory_config, output_tensor);
    evaluate(std::array{OperandReader<Value>(a, shape), OperandReader<Value>(b, shape),
                        OperandReader<Value>(c, shape)},
             output, [&](const auto& inputs, Value* values, std::size_t count) {
                 for (std::size_t i = 0; i < count; ++i) {
                     values[i] = function(inputs[0][i], inputs[1][i], inputs[2][i]);
                 }
             });
    return output;
}

/// Compares signs and magnitudes, as the vector engine: NaN is beyond the infinity of its sign.
bool is_above(float a, float b) {
    const auto beyond = [](float x) { return std::isnan(x) ? std::copysign(1.0F, x) : 0.0F; };
    const float difference = beyond(a) - beyond(b);
    return difference != 0.0F ? difference > 0.0F : a > b;
}

/// Clamps with tensors as bounds, one of which may be absent.
Tensor clamp_tensors(const Tensor& input, const std::optional<Tensor>& min,
                     const std::optional<Tensor>& max,
                     const std::optional<MemoryConfig>& memory_config,
                     const std::optional<Tensor>& output_tensor) {
    TT_FATAL(min || max, "Only one of 'min' or 'max' can be None. Please provide one value");
    const Tensor& low = min ? *min : *max;
    const Tensor& high = max ? *max : *min;
    const bool has_min = min.has_value();
    const bool has_max = max.has_value();
    require_tiles(input);
    // The release selects between the bounds, so the result has their data type.
    const DataType dtype = low.dtype();
    if (is_integer(input.dtype()) && is_integer(dtype) && is_integer(high.dtype())) {
        return ternary_operation<std::int64_t>(
            input, low, high, memory_config, output_tensor, dtype,
            [=](std::int64_t x, std::int64_t lowest, std::int64_t highest) {
                const std::int64_t raised = has_min ? std::max(x, lowest) : x;
                return has_max ? std::min(raised, highest) : raised;
            });
    }
    return ternary_operation<float>(
        input, low, high, memory_config, output_tensor, dtype,
        [=](float x, float lowest, float highest) {
            if (lowest > highest && has_max) {
                return highest;
            }
            const float lowered = has_max && is_above(x, highest) ? highest : x;
            return has_min && is_above(lowest, lowered) ? lowest : lowered;
        });
}

Tensor clamp_numbers(const Tensor& input, double min, double max, bool whole,
                     const std::optional<MemoryConfig>& memory_config,
                     const std::optional<Tensor>& output_tensor) {
    require_on_device(input, "Input tensor");
    std::optional<Tensor> output = output_tensor;
    if (!output && input.dtype() == DataType::INT32 && !whole) {
        output = allocate_like(input, input.logical_shape(), DataType::FLOAT32, input.layout(),
                               output_memory_config(input, memory_config));
    }
    return unary_operation(input, UnaryOpType::CLAMP_TSS, {min, max}, memory_config, output);
}

/// Keeps the elements of each matrix for which `keep(row, column)` holds, and zeroes the others.
template <typename Keep>
Tensor masked_matrix(const Tensor& input, const std::optional<MemoryConfig>& memory_config,
                     const Keep& keep) {
    require_on_device(input, "Input tensor A");
    TT_FATAL(input.layout() == Layout::TILE || input.dtype() != DataType::UINT8,
             "data type must be bfloat16, float32, uint32, int32, or uint16");
    const Shape& shape = input.logical_shape();
    const Tensor output = allocate_like(input, shape, input.dtype(), Layout::TILE,
                                        output_memory_config(input, memory_config));
    const std::size_t width = shape[-1];
    const std::size_t height = shape[-2];
    const std::size_t element = stored_size(input.dtype());
    const std::byte* from = buffer_of(input).data();
    std::byte* to = buffer_of(output).data();
    // Zero is all zero bits in every data type.
    std::memset(to, 0, buffer_of(output).bytes());
    for (std::size_t i = 0; i < shape.volume(); ++i) {
        if (keep(static_cast<std::int64_t>(i / width % height),
                 static_cast<std::int64_t>(i % width))) {
            std::memcpy(to + i * element, from + i * element, element);
        }
    }
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor where(const Tensor& predicate, const operations::ternary::TensorScalarVariant& value_true,
             const operations::ternary::TensorScalarVariant& value_false,
             const std::optional<MemoryConfig>& memory_config, const std::optional<Tensor>& output,
             const std::optional<CoreRangeSet>& sub_core_grids) {
    TTCODEGEN_ON_EACH_CHIP(where, predicate, value_true, value_false, memory_config, output,
                           sub_core_grids);
    return cpu::where(predicate, value_true, value_false, memory_config, output);
}

Tensor addcmul(const Tensor& a, const Tensor& b, const Tensor& c,
               operations::ternary::ScalarVariant value,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<Tensor>& output) {
    TTCODEGEN_ON_EACH_CHIP(addcmul, a, b, c, value, memory_config, output);
    const DataType dtype = a.dtype();
    TT_FATAL(dtype == b.dtype() && dtype == c.dtype(),
             "Addcmul TTT requires all input tensors to have the same dtype. Got input_a={}, "
             "input_b={}, input_c={}",
             dtype, b.dtype(), c.dtype());
    TT_FATAL(dtype != DataType::UINT16 && dtype != DataType::UINT8 && dtype != DataType::BFLOAT4_B,
             "Addcmul supports only BFLOAT16, BFLOAT8_B, FLOAT32, INT32, and UINT32 dtypes. Got {}",
             dtype);
    cpu::require_tiles(a);
    if (cpu::is_integer(dtype)) {
        // Unsigned arithmetic wraps.
        const auto scale =
            std::visit([](auto number) { return static_cast<std::int64_t>(number); }, value);
        return cpu::ternary_operation<std::int64_t>(
            a, b, c, memory_config, output, dtype,
            [factor = static_cast<std::uint64_t>(scale)](std::int64_t x, std::int64_t y,
                                                         std::int64_t z) {
                const std::uint64_t product =
                    factor * static_cast<std::uint64_t>(y) * static_cast<std::uint64_t>(z);
                return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) + product);
            });
    }
    const auto scale = std::visit([](auto number) { return static_cast<float>(number); }, value);
    return cpu::ternary_operation<float>(
        a, b, c, memory_config, output, dtype,
        [=](float x, float y, float z) { return x + scale * y * z; });
}

Tensor addcdiv(const Tensor& a, const Tensor& b, const Tensor& c, float value,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<Tensor>& output) {
    TTCODEGEN_ON_EACH_CHIP(addcdiv, a, b, c, value, memory_config, output);
    const auto all = [&](auto condition) {
        return condition(a.dtype()) && condition(b.dtype()) && condition(c.dtype());
    };
    TT_FATAL(!all([](DataType type) { return type == DataType::INT32; }),
             "Addcdiv TTT does not support INT32 inputs.");
    cpu::require_tiles(a);
    // With block floats the release ends in a selection of the second operand's data type.
    const bool has_block = !all([](DataType type) { return !cpu::is_block(type); });
    const DataType dtype = has_block && a.dtype() != DataType::FLOAT32 ? b.dtype() : a.dtype();
    return cpu::ternary_operation<float>(
        a, b, c, memory_config, output, dtype,
        [=](float x, float y, float z) { return x + value * y / z; });
}

Tensor lerp(const Tensor& input, const Tensor& end, const Tensor& weight,
            const std::optional<MemoryConfig>& memory_config, const std::optional<Tensor>& output) {
    TTCODEGEN_ON_EACH_CHIP(lerp, input, end, weight, memory_config, output);
    cpu::require_lerp_tiles(input);
    return cpu::ternary_operation<float>(input, end, weight, memory_config, output, input.dtype(),
                                         [](float x, float y, float w) { return x + w * (y - x); });
}

Tensor lerp(const Tensor& input, const Tensor& end, float weight,
            const std::optional<MemoryConfig>& memory_config, const std::optional<Tensor>& output) {
    TTCODEGEN_ON_EACH_CHIP(lerp, input, end, weight, memory_config, output);
    cpu::require_lerp_tiles(input);
    return cpu::ternary_operation<float>(
        input, end, end, memory_config, output, input.dtype(),
        [=](float x, float y, float) { return x + weight * (y - x); });
}

Tensor mac(const Tensor& a, const Tensor& b, const Tensor& c,
           const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(mac, a, b, c, memory_config);
    return add(multiply(a, b), c, std::nullopt, memory_config);
}

Tensor mac(const Tensor& a, float b, float c, const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(mac, a, b, c, memory_config);
    return add(multiply(a, b), c, std::nullopt, memory_config);
}

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();
constexpr double kHighest = std::numeric_limits<double>::infinity();

}  // namespace

Tensor clip(const Tensor& input, std::optional<float> min, std::optional<float> max,
            const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(clip, input, min, max, memory_config);
    TT_FATAL(min || max, "Only one of 'min' or 'max' can be None. Please provide one value");
    return cpu::clamp_numbers(input, min ? *min : kLowest, max ? *max : kHighest, false,
                              memory_config, std::nullopt);
}

Tensor clip(const Tensor& input, std::optional<Tensor> min, std::optional<Tensor> max,
            const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(clip, input, min, max, memory_config);
    return cpu::clamp_tensors(input, min, max, memory_config, std::nullopt);
}

Tensor clamp(const Tensor& input, std::optional<std::variant<float, std::int32_t>> min,
             std::optional<std::variant<float, std::int32_t>> max,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(clamp, input, min, max, memory_config, output_tensor);
    TT_FATAL(min || max, "Only one of 'min' or 'max' can be None. Please provide one value");
    TT_FATAL(!min || !max || min->index() == max->index(),
             "'min' and 'max' must both be floats or both be integers");
    const bool whole = (min ? *min : *max).index() == 1;
    return cpu::clamp_numbers(input, min ? cpu::as_double(*min) : kLowest,
                              max ? cpu::as_double(*max) : kHighest, whole, memory_config,
                              output_tensor);
}

Tensor clamp(const Tensor& input, std::optional<Tensor> min, std::optional<Tensor> max,
             const std::optional<MemoryConfig>& memory_config,
             const std::optional<Tensor>& output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(clamp, input, min, max, memory_config, output_tensor);
    return cpu::clamp_tensors(input, min, max, memory_config, output_tensor);
}

Tensor tril(const Tensor& input, std::int32_t diag,
            const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(tril, input, diag, memory_config);
    return cpu::masked_matrix(input, memory_config, [=](std::int64_t row, std::int64_t column) {
        return column - row <= diag;
    });
}

Tensor triu(const Tensor& input, std::int32_t diag,
            const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(triu, input, diag, memory_config);
    return cpu::masked_matrix(input, memory_config, [=](std::int64_t row, std::int64_t column) {
        return column - row >= diag;
    });
}

}  // namespace ttnn
