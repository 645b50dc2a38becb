#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tt_stl/small_vector.hpp"
#include "tt_stl/span.hpp"
#include "ttnn/types.hpp"

namespace ttnn {

/// Elements begins[i], begins[i] + step[i], ... up to but without ends[i] of each dimension;
/// negative bounds count from the end.
template <typename T>
ttnn::Tensor slice(const ttnn::Tensor& input_tensor, ttsl::Span<const T> begins,
                   ttsl::Span<const T> ends, ttsl::Span<const T> step,
                   const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                   const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                   const std::optional<float>& pad_value = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

template <typename T>
ttnn::Tensor slice(const ttnn::Tensor& input_tensor, const ttnn::SmallVector<T>& begins,
                   const ttnn::SmallVector<T>& ends, const ttnn::SmallVector<T>& step,
                   const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                   const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                   const std::optional<float>& pad_value = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt) {
    return slice(input_tensor, ttsl::Span<const T>(begins), ttsl::Span<const T>(ends),
                 ttsl::Span<const T>(step), memory_config_arg, optional_output_tensor, pad_value,
                 sub_core_grids);
}

template <typename T, std::size_t N>
ttnn::Tensor slice(const ttnn::Tensor& input_tensor, const std::array<T, N>& output_tensor_start,
                   const std::array<T, N>& output_tensor_end, const std::array<T, N>& step,
                   const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                   const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                   const std::optional<float>& pad_value = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

/// Bounds in tensors; for tiles, with steps of 1, `slice_dim` and `num_devices` are required.
template <typename T>
ttnn::Tensor slice(const ttnn::Tensor& input_tensor, const ttnn::Tensor& output_tensor_start,
                   const ttnn::Tensor& output_tensor_end,
                   const std::optional<ttnn::SmallVector<T>>& step = std::nullopt,
                   const std::optional<MemoryConfig>& memory_config_arg = std::nullopt,
                   const std::optional<Tensor>& optional_output_tensor = std::nullopt,
                   const std::optional<float>& pad_value = std::nullopt,
                   const std::optional<std::uint32_t>& slice_dim = std::nullopt,
                   const std::optional<std::uint32_t>& num_devices = std::nullopt,
                   const std::optional<CoreRangeSet>& sub_core_grids = std::nullopt);

}  // namespace ttnn
