#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>

#include "compute/arithmetic.hpp"
#include "compute/reduce.hpp"
#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "core/tensor_data.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"
#include "ttnn/operations/reduction/prod/prod.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

using DimArgument = std::optional<std::variant<int, int64_t, SmallVector<int>>>;

enum class Kind { sum, mean, max, min, deviation, variance, product };

/// Flags of the reduced dimensions; no argument and an empty list mean all.
std::vector<bool> reduced_dimensions(const DimArgument& argument, std::size_t rank) {
    SmallVector<int64_t> dims;
    if (argument) {
        if (const auto* list = std::get_if<SmallVector<int>>(&*argument)) {
            dims.append(list->begin(), list->end());
        } else if (const auto* wide = std::get_if<int64_t>(&*argument)) {
            dims.push_back(*wide);
        } else {
            dims.push_back(std::get<int>(*argument));
        }
    }
    std::vector<bool> is_reduced(rank, dims.empty());
    for (std::size_t i = 0; i < dims.size(); ++i) {
        const int64_t dim = dims[i] < 0 ? dims[i] + static_cast<int64_t>(rank) : dims[i];
        if (rank == 0 && (dims[i] == 0 || dims[i] == -1)) {
            continue;
        }
        TT_FATAL(dim >= 0 && dim < static_cast<int64_t>(rank),
                 "Unsupported dim {} at index {}. After possible adjustment, needs to be at least "
                 "0 and less than rank {}, or exactly 0 for a rank 0 tensor.",
                 dim, i, rank);
        // A repeated dimension is reduced once; only rank 1 fails on it.
        TT_FATAL(rank > 1 || !is_reduced[static_cast<std::size_t>(dim)],
                 "Dimension {} is reduced twice", dim);
        is_reduced[static_cast<std::size_t>(dim)] = true;
    }
    return is_reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& is_reduced, bool keepdim) {
    SmallVector<uint32_t> sizes;
    for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
        if (!is_reduced[dim]) {
            sizes.push_back(shape.view()[dim]);
        } else if (keepdim) {
            sizes.push_back(1);
        }
    }
    return Shape(sizes);
}

/// Sums of truncated elements, as in the engine.
struct CutSumOperation : SumOperation {
    float accumulate(float sum, float element, float /*center*/) const {
        return sum + cut(element);
    }
    MantissaCut cut;
};

/// Sums, means and extremes of floats in the matrix engine: elements are in source A, the scaler is
/// in source B.
void run_in_engine(Kind kind, const ReductionPlan& plan, const float* input, float* output,
                   float scalar, const Arithmetic& arithmetic, bool is_float32) {
    const float* no_centers = nullptr;
    if (kind == Kind::max || kind == Kind::min) {
        if (kind == Kind::max) {
            reduce(plan, input, no_centers, output, ExtremeOperation<float, true>{});
        } else {
            reduce(plan, input, no_centers, output, ExtremeOperation<float, false>{});
        }
        for (std::size_t i = 0; i < plan.outputs(); ++i) {
            // Extremes have no multiplier passes, and truncation keeps the order of numbers.
            output[i] = arithmetic.source()(output[i]) * scalar;
        }
        return;
    }
    const CutSumOperation operation{{}, arithmetic.second()};
    if (arithmetic.narrow_sums) {
        reduce_by_tiles(plan, input, output, operation, round_to_bf16);
    } else {
        reduce(plan, input, no_centers, output, operation);
    }
    const float divisor = kind == Kind::mean ? static_cast<float>(plan.inputs_of_each()) : 1.0F;
    const MantissaCut scaler_type(is_float32 ? 23 : 7);
    const float scaler = arithmetic.first()(scaler_type(scalar / divisor));
    for (std::size_t i = 0; i < plan.outputs(); ++i) {
        output[i] = arithmetic.in_destination(output[i] * scaler);
    }
}

template <typename Value>
void run(Kind kind, const ReductionPlan& plan, const Value* input, Value* output, float scalar,
         bool correction) {
    const auto count = static_cast<Value>(plan.inputs_of_each());
    switch (kind) {
        case Kind::sum:
        case Kind::mean:
            reduce(plan, input, static_cast<const Value*>(nullptr), output, SumOperation{});
            break;
        case Kind::max:
            reduce(plan, input, static_cast<const Value*>(nullptr), output,
                   ExtremeOperation<Value, true>{});
            break;
        case Kind::min:
            reduce(plan, input, static_cast<const Value*>(nullptr), output,
                   ExtremeOperation<Value, false>{});
            break;
        case Kind::product:
            reduce(plan, input, static_cast<const Value*>(nullptr), output, ProductOperation{});
            break;
        case Kind::deviation:
        case Kind::variance: {
            std::vector<Value> means(plan.outputs());
            run(Kind::mean, plan, input, means.data(), 1.0F, false);
            reduce(plan, input, means.data(), output, SquareSumOperation{});
            break;
        }
    }
    const Value divisor = kind == Kind::mean ? count
                          : kind == Kind::variance || kind == Kind::deviation
                              ? count - static_cast<Value>(correction)
                              : Value{1};
    for (std::size_t i = 0; i < plan.outputs(); ++i) {
        Value value = output[i];
        if (divisor != Value{1}) {
            value = std::is_integral_v<Value> && divisor == Value{0} ? Value{0} : value / divisor;
        }
        if (kind == Kind::deviation) {
            value = static_cast<Value>(std::sqrt(static_cast<double>(value)));
        }
        output[i] = scalar == 1.0F ? value : static_cast<Value>(static_cast<float>(value) * scalar);
    }
}

MemoryConfig reduced_memory_of(const Tensor& input, const std::vector<bool>& is_reduced,
                               const std::optional<MemoryConfig>& memory_config) {
    const std::size_t rank = is_reduced.size();
    return reduced_memory(input, rank > 1 && is_reduced[rank - 2], rank > 0 && is_reduced[rank - 1],
                          memory_config);
}

/// Reduces a tensor; `arithmetic` is the matrix engine's, if it computes the result.
Tensor reduce_tensor(Kind kind, const Tensor& input, const std::vector<bool>& is_reduced,
                     bool keepdim, const std::optional<MemoryConfig>& memory_config, float scalar,
                     bool correction, const std::optional<Arithmetic>& arithmetic) {
    const Shape& shape = input.logical_shape();
    const ReductionPlan plan(shape, is_reduced);
    if (kind == Kind::max || kind == Kind::min) {
        TT_FATAL(plan.inputs_of_each() > 0 || plan.outputs() == 0,
                 "Expected reduction dim to have non-zero size");
    }
    // Padding for unaligned tiles converts bfp8 to bf16 on the way.
    const bool is_generic = kind != Kind::deviation && kind != Kind::variance;
    const bool is_aligned = input.padded_shape() == shape;
    const DataType dtype = input.dtype() == DataType::BFLOAT8_B && is_generic && !is_aligned
                               ? DataType::BFLOAT16
                               : input.dtype();
    const bool is_degenerate = shape.rank() == 0 || input.logical_volume() == 0;
    const Tensor result = allocate_like(input, reduced_shape(shape, is_reduced, keepdim), dtype,
                                        is_degenerate ? input.layout() : Layout::TILE,
                                        reduced_memory_of(input, is_reduced, memory_config));
    std::byte* stored = buffer_of(result).data();
    if (is_integer(dtype)) {
        std::vector<int64_t> values(plan.outputs());
        const auto elements = load_integers(input);
        run<int64_t>(kind, plan, elements.get(), values.data(), scalar, correction);
        store_integers(values.data(), values.size(), dtype, stored);
    } else {
        std::vector<float> values(plan.outputs());
        const FloatElements elements(input);
        if (arithmetic && !is_degenerate) {
            run_in_engine(kind, plan, elements.data(), values.data(), scalar, *arithmetic,
                          input.dtype() == DataType::FLOAT32);
        } else {
            run<float>(kind, plan, elements.data(), values.data(), scalar, correction);
        }
        store_floats(values.data(), values.size(), dtype, stored);
    }
    finish_block_float(result);
    return result;
}

/// The memory config of maxima and means that also reduce dimensions before the last two: tt-metal
/// 0.70.1 reduces one dimension after the other, with the shards of the input for each.
std::optional<MemoryConfig> outer_memory(const Tensor& input, const std::vector<bool>& is_reduced,
                                         const std::optional<MemoryConfig>& asked) {
    const std::size_t rank = is_reduced.size();
    const bool is_outer = rank > 2 && std::find(is_reduced.begin(), is_reduced.end() - 2, true) !=
                                          is_reduced.end() - 2;
    if (!is_outer || !input.is_sharded() || !input.memory_config().is_l1()) {
        return asked;
    }
    const bool is_whole = is_reduced[rank - 2] && is_reduced[rank - 1];
    const bool is_neither = !is_reduced[rank - 2] && !is_reduced[rank - 1];
    const bool is_in_blocks =
        input.memory_config().memory_layout() == TensorMemoryLayout::BLOCK_SHARDED;
    TT_FATAL(!is_neither && (!is_whole || is_in_blocks),
             "The shards {} cannot hold the tensor between the reductions of its dimensions",
             input.memory_config());
    return is_whole && !asked ? input.memory_config() : asked;
}

Tensor generic_reduction(Kind kind, const Tensor& input, const DimArgument& dim_arg, bool keepdim,
                         const std::optional<MemoryConfig>& memory_config, float scalar,
                         bool correction, const std::optional<DeviceComputeKernelConfig>& compute,
                         const char* name = __builtin_FUNCTION()) {
    TTCODEGEN_CALL_AS(name, generic_reduction, kind, input, dim_arg, keepdim, memory_config, scalar,
                      correction, compute);
    TTCODEGEN_ON_CHIPS(Any, generic_reduction, kind, input, dim_arg, keepdim, memory_config, scalar,
                       correction, compute);
    TT_FATAL(on_device(input), "Expected input tensor to be on device");
    const bool is_statistic = kind == Kind::deviation || kind == Kind::variance;
    const std::vector<bool> is_reduced = reduced_dimensions(dim_arg, input.logical_shape().rank());
    const bool is_one_by_one = kind == Kind::mean || kind == Kind::max || kind == Kind::min;
    const auto target =
        is_one_by_one ? outer_memory(input, is_reduced, memory_config) : memory_config;
    const DataType dtype = input.dtype();
    TT_FATAL(dtype == DataType::FLOAT32 || dtype == DataType::BFLOAT16 ||
                 dtype == DataType::BFLOAT8_B || (dtype == DataType::UINT32 && !is_statistic),
             "Only FLOAT32, BFLOAT16, {} are supported for {} reduction - got {}",
             is_statistic ? "and BFLOAT8_B" : "BFLOAT8_B, and UINT32",
             is_statistic ? "Std/Var" : "generic", dtype);
    // Deviations are computed by the vector engine, which has all bits of floats.
    const std::optional<Arithmetic> arithmetic =
        is_statistic ? std::nullopt
                     : std::optional(arithmetic_of(compute, ComputeDefault::reduction,
                                                   std::array{dtype}, false));
    return reduce_tensor(kind, input, is_reduced, keepdim, target, scalar, correction, arithmetic);
}

}  // namespace

#define TTCODEGEN_GENERIC_REDUCTION(name, kind)                                               \
    Tensor name(const Tensor& input_tensor_arg, const DimArgument& dim_arg, bool keepdim,     \
                const std::optional<MemoryConfig>& memory_config_arg,                         \
                const std::optional<DeviceComputeKernelConfig>& compute_kernel_config,        \
                float scalar, bool correction, const std::optional<CoreRangeSet>&) {          \
        return generic_reduction(kind, input_tensor_arg, dim_arg, keepdim, memory_config_arg, \
                                 scalar, correction, compute_kernel_config);                  \
    }
TTCODEGEN_GENERIC_REDUCTION(sum, Kind::sum)
TTCODEGEN_GENERIC_REDUCTION(mean, Kind::mean)
TTCODEGEN_GENERIC_REDUCTION(max, Kind::max)
TTCODEGEN_GENERIC_REDUCTION(min, Kind::min)
#undef TTCODEGEN_GENERIC_REDUCTION

Tensor std(const Tensor& input_tensor_arg, const DimArgument& dim_arg, bool keepdim,
           const std::optional<MemoryConfig>& memory_config_arg,
           const std::optional<DeviceComputeKernelConfig>&, float scalar, bool correction,
           const std::optional<CoreRangeSet>&, bool) {
    return generic_reduction(Kind::deviation, input_tensor_arg, dim_arg, keepdim, memory_config_arg,
                             scalar, correction, std::nullopt);
}

Tensor var(const Tensor& input_tensor_arg, const DimArgument& dim_arg, bool keepdim,
           const std::optional<MemoryConfig>& memory_config_arg,
           const std::optional<DeviceComputeKernelConfig>&, float scalar, bool correction,
           const std::optional<CoreRangeSet>&, bool) {
    return generic_reduction(Kind::variance, input_tensor_arg, dim_arg, keepdim, memory_config_arg,
                             scalar, correction, std::nullopt);
}

Tensor prod(const Tensor& input, std::optional<int64_t> dim, bool keepdim,
            const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(prod, input, dim, keepdim, memory_config);
    TT_FATAL(on_device(input), "Device Operations expect tensor with Device storage in inputs");
    TT_FATAL(input.dtype() == DataType::BFLOAT16,
             "Error - unsupported data type for prod, expected BFLOAT16 but got {}.",
             input.dtype());
    const auto rank = static_cast<int64_t>(input.logical_shape().rank());
    std::vector<bool> is_reduced(static_cast<std::size_t>(rank), !dim);
    // A scalar counts as a vector here.
    const int64_t dims = std::max<int64_t>(rank, 1);
    TT_FATAL(!dim || (*dim >= -dims && *dim < dims),
             "Dimension for prod is out of range (expected to be in range of [{}, {}])", -dims,
             dims - 1);
    TT_FATAL(rank != 1 || input.layout() == Layout::TILE,
             "To be tilizable output tensor shape {} must be divisible by tile size (32, 32)",
             input.logical_shape());
    if (dim && rank > 0) {
        is_reduced[normalize_dim(*dim, input.logical_shape().rank())] = true;
    }
    // Products over the last dimensions are computed on a transposed tensor, with the same shards.
    const bool is_turned = rank > 1 && (is_reduced[static_cast<std::size_t>(rank) - 1] ||
                                        is_reduced[static_cast<std::size_t>(rank) - 2]);
    TT_FATAL(!is_turned || !input.is_sharded(), "The shards {} cannot hold the transposed tensor",
             input.memory_config());
    return reduce_tensor(Kind::product, input, is_reduced, keepdim, memory_config, 1.0F, false,
                         std::nullopt);
}

}  // namespace ttnn
