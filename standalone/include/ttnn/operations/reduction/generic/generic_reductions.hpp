#pragma once

#include <cstdint>
#include <optional>
#include <tt-metalium/core_coord.hpp>
#include <variant>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/types.hpp"

// Reductions over one, several or (no dim_arg, or an empty list) all dimensions. The result is
// always TILE; `scalar` multiplies it. sum, mean, max, min take bf16, f32, bfp8 and u32; std and
// var bf16, f32 and bfp8, with Bessel's `correction`.
namespace ttnn {

Tensor sum(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt TTCODEGEN_ADDED_8101(
        , bool fast_and_approximate_mode = false,
        const std::optional<Layout>& output_layout = std::nullopt));

Tensor mean(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt TTCODEGEN_ADDED_8101(
        , bool fast_and_approximate_mode = false,
        const std::optional<Layout>& output_layout = std::nullopt));

Tensor max(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids =
        std::nullopt TTCODEGEN_ADDED_8101(, bool fast_and_approximate_mode = false));

Tensor min(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids =
        std::nullopt TTCODEGEN_ADDED_8101(, bool fast_and_approximate_mode = false));

Tensor std(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids =
        std::nullopt TTCODEGEN_REMOVED_8101(, bool use_legacy = false));

Tensor var(
    const Tensor& input_tensor_arg,
    const std::optional<std::variant<int, int64_t, SmallVector<int>>>& dim_arg = std::nullopt,
    bool keepdim = false, const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    float scalar = 1.0f, bool correction = true,
    const std::optional<CoreRangeSet>& sub_core_grids =
        std::nullopt TTCODEGEN_REMOVED_8101(, bool use_legacy = false));

}  // namespace ttnn
