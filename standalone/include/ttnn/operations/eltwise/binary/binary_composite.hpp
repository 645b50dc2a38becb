#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tt_stl/span.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

#define TTCODEGEN_ACTIVATIONS                                                            \
    ttsl::Span<const operations::unary::EltwiseUnaryWithParam>                           \
        post_activations = {},                                                           \
        ttsl::Span<const operations::unary::EltwiseUnaryWithParam> lhs_activations = {}, \
        ttsl::Span<const operations::unary::EltwiseUnaryWithParam> rhs_activations = {}
#define TTCODEGEN_RESULT                                                                      \
    const std::optional<const DataType>&output_dtype = std::nullopt,                          \
                              const std::optional<MemoryConfig>&memory_config = std::nullopt, \
                              const std::optional<Tensor>&optional_output_tensor = std::nullopt
#define TTCODEGEN_MEMORY const std::optional<MemoryConfig>& output_mem_config = std::nullopt
#define TTCODEGEN_CORES                                                                    \
    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt TTCODEGEN_ADDED_8101( \
        , const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id = std::nullopt)
#define TTCODEGEN_NUMBER \
    TTCODEGEN_ADDED_8101(operations::unary::ScalarVariant) TTCODEGEN_REMOVED_8101(float)

Tensor pow(const Tensor& input, std::int32_t exponent, TTCODEGEN_MEMORY,
           const std::optional<Tensor>& output_tensor = std::nullopt);
Tensor pow(const Tensor& input_a, float exponent, TTCODEGEN_MEMORY,
           const std::optional<Tensor>& output_tensor = std::nullopt);
Tensor pow(
    float input_a, const Tensor& exponent, TTCODEGEN_RESULT,
    TTCODEGEN_ACTIVATIONS TTCODEGEN_REMOVED_8101(, std::optional<bool> use_legacy = std::nullopt));
Tensor pow(
    const Tensor& input, const Tensor& exponent, TTCODEGEN_RESULT,
    TTCODEGEN_ACTIVATIONS TTCODEGEN_REMOVED_8101(, std::optional<bool> use_legacy = std::nullopt));

/// Division; `rounding_mode` is "floor", "trunc" or none.
Tensor div(const Tensor& input_a, const Tensor& input_b, bool fast_and_approximate_mode = false,
           const std::optional<std::string>& rounding_mode = std::nullopt,
           const std::optional<const DataType>& output_dtype = std::nullopt, TTCODEGEN_MEMORY,
           const std::optional<Tensor>& output_tensor = std::nullopt, TTCODEGEN_ACTIVATIONS,
           TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )
               TTCODEGEN_CORES);
Tensor div(const Tensor& input, TTCODEGEN_NUMBER value, bool fast_and_approximate_mode = false,
           const std::optional<std::string>& rounding_mode = std::nullopt,
           const std::optional<const DataType>& output_dtype = std::nullopt, TTCODEGEN_MEMORY,
           std::optional<Tensor> output_tensor = std::nullopt, TTCODEGEN_ACTIVATIONS,
           TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )
               TTCODEGEN_CORES);

Tensor fmod(const Tensor& input_a, const Tensor& input_b, TTCODEGEN_MEMORY, TTCODEGEN_CORES);
Tensor fmod(const Tensor& input, TTCODEGEN_NUMBER scalar, TTCODEGEN_MEMORY, TTCODEGEN_CORES);

/// The remainder with the sign of the divisor.
Tensor remainder(const Tensor& input_a, const Tensor& input_b,
                 const std::optional<const DataType>& output_dtype = std::nullopt, TTCODEGEN_MEMORY,
                 const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                 TTCODEGEN_ACTIVATIONS,
                 TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )
                     TTCODEGEN_CORES);
Tensor remainder(const Tensor& input, TTCODEGEN_NUMBER scalar,
                 const std::optional<const DataType>& output_dtype = std::nullopt, TTCODEGEN_MEMORY,
                 const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                 TTCODEGEN_ACTIVATIONS,
                 TTCODEGEN_REMOVED_8101(const std::optional<bool>& use_legacy = std::nullopt, )
                     TTCODEGEN_CORES);

#define TTCODEGEN_BINARY(name)                                                                  \
    Tensor name(const Tensor& input_tensor_a, const Tensor& input_tensor_b, TTCODEGEN_RESULT,   \
                TTCODEGEN_ACTIVATIONS TTCODEGEN_REMOVED_8101(, std::optional<bool> use_legacy = \
                                                                   std::nullopt));
TTCODEGEN_BINARY(lcm)
TTCODEGEN_BINARY(gcd)
TTCODEGEN_BINARY(maximum)
TTCODEGEN_BINARY(minimum)
#undef TTCODEGEN_BINARY
Tensor maximum(
    const Tensor& input_a, operations::unary::ScalarVariant value, TTCODEGEN_RESULT,
    TTCODEGEN_ACTIVATIONS TTCODEGEN_REMOVED_8101(, std::optional<bool> use_legacy = std::nullopt));
Tensor minimum(
    const Tensor& input_a, operations::unary::ScalarVariant value, TTCODEGEN_RESULT,
    TTCODEGEN_ACTIVATIONS TTCODEGEN_REMOVED_8101(, std::optional<bool> use_legacy = std::nullopt));
#define TTCODEGEN_MODE                                                                        \
    TTCODEGEN_ADDED_8101(const std::optional<bool>& fast_and_approximate_mode = std::nullopt) \
    TTCODEGEN_REMOVED_8101(std::optional<bool> use_legacy = std::nullopt)
Tensor rsub(const Tensor& input_tensor_a, const Tensor& input_tensor_b, TTCODEGEN_RESULT,
            TTCODEGEN_ACTIVATIONS, TTCODEGEN_MODE);
Tensor rsub(const Tensor& input_tensor_a, TTCODEGEN_NUMBER input_b, TTCODEGEN_RESULT,
            TTCODEGEN_ACTIVATIONS, TTCODEGEN_MODE);
#undef TTCODEGEN_MODE

Tensor prelu(const Tensor& input, TTCODEGEN_NUMBER weight, TTCODEGEN_MEMORY);

/// The angle of (x, y) = (second, first).
Tensor atan2(const Tensor& input_b, const Tensor& input_a, TTCODEGEN_MEMORY);
#undef TTCODEGEN_ACTIVATIONS
#undef TTCODEGEN_RESULT
#undef TTCODEGEN_MEMORY
#undef TTCODEGEN_CORES
#undef TTCODEGEN_NUMBER

}  // namespace ttnn
