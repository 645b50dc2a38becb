#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/sliding_window/op_slicing/op_slicing.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

// Pools over NHWC pixels on the device; the result is (1, 1, batch * output height * output width,
// channels).
namespace ttnn::operations::pool {

using op_slicing::Op2DSliceConfig;

/// One tensor or, with `return_indices`, a second one: the flat u16 index of each maximum in its
/// image.
std::vector<Tensor> max_pool2d(
    const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h, uint32_t input_w,
    uint32_t channels, std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
    std::array<uint32_t, 2> dilation, bool ceil_mode = false,
    const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    const std::optional<Op2DSliceConfig>& dram_slice_config = std::nullopt,
    std::optional<const TensorMemoryLayout> applied_shard_scheme = std::nullopt,
    bool deallocate_input = false, bool reallocate_halo_output = true, bool return_indices = false,
    DataType dtype = DataType::BFLOAT16, Layout output_layout = Layout::ROW_MAJOR,
    bool config_tensor_in_dram = false);

Tensor avg_pool2d(
    const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h, uint32_t input_w,
    uint32_t channels, std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding, bool ceil_mode = false,
    bool count_include_pad = true, std::optional<int32_t> divisor_override = std::nullopt,
    const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    const std::optional<Op2DSliceConfig>& dram_slice_config = std::nullopt,
    std::optional<const TensorMemoryLayout> applied_shard_scheme = std::nullopt,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config = std::nullopt,
    bool deallocate_input = false, bool reallocate_halo_output = true,
    DataType dtype = DataType::BFLOAT16, Layout output_layout = Layout::ROW_MAJOR,
    bool config_tensor_in_dram = false);

}  // namespace ttnn::operations::pool

namespace ttnn {

using ttnn::operations::pool::avg_pool2d;
using ttnn::operations::pool::max_pool2d;

}  // namespace ttnn
