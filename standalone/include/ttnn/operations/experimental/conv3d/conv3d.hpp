#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "device/conv3d_device_operation_types.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace ttnn::experimental {

/// Convolution of an (N, T, H, W, C) row-major bf16 tensor with prepared weights
/// (prepare_conv3d_weights) and a bias (1, out_channels): (N, T', H', W', out_channels).
ttnn::Tensor conv3d(const ttnn::Tensor& input_tensor, const ttnn::Tensor& weight_tensor,
                    std::optional<ttnn::MeshDevice*> device,
                    const std::optional<ttnn::Tensor>& bias_tensor,
                    const std::optional<ttnn::experimental::prim::Conv3dConfig>& config,
                    tt::tt_metal::DataType dtype_, uint32_t output_channels_,
                    const std::array<uint32_t, 3>& kernel_size_,
                    const std::array<uint32_t, 3>& stride_ = std::array<uint32_t, 3>{1, 1, 1},
                    const std::array<uint32_t, 3>& padding_ = std::array<uint32_t, 3>{0, 0, 0},
                    const std::array<uint32_t, 3>& dilation_ = std::array<uint32_t, 3>{1, 1, 1},
                    const std::string& padding_mode_ = "zeros", uint32_t groups_ = 1,
                    const std::optional<MemoryConfig>& memory_config = std::nullopt,
                    std::optional<DeviceComputeKernelConfig> compute_kernel_config =
                        std::nullopt TTCODEGEN_ADDED_8101(
                            , const std::optional<ttnn::Tensor>& halo_buffer = std::nullopt,
                            uint32_t logical_h_mask = 0, uint32_t logical_w_mask = 0,
                            const std::optional<ttnn::Tensor>& pad_offset_tensor = std::nullopt,
                            uint32_t output_pad_h = 0, uint32_t output_pad_w = 0,
                            const std::optional<ttnn::Tensor>& weight_lo_tensor = std::nullopt));

}  // namespace ttnn::experimental
