#pragma once

#include <optional>
#include <string>
#include <tt-metalium/core_coord.hpp>
#include <variant>

#include "ttcodegen/release.hpp"
#include "ttnn/operations/core/compute_kernel/compute_kernel_config.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/operations/matmul/device/config/matmul_program_config_types.hpp"
#include "ttnn/types.hpp"

#if TTCODEGEN_EXACT_8101
namespace tt::tt_metal::experimental {
class PrefetcherPipe;
}  // namespace tt::tt_metal::experimental
#endif

namespace ttnn {

using ttnn::operations::unary::UnaryOpType;
using ttnn::operations::unary::UnaryWithParam;

/// An activation, by name ("relu", "gelu", ...) or by type and parameters.
using Activation = std::variant<std::string, UnaryWithParam>;

namespace operations::matmul {

/// Matmul of (..., M, K) and (..., K, N), both tiled and on the device, to (..., M, N) in tiles, of
/// type `dtype` or that of `input_tensor_a`. Batch dimensions are equal, or all 1 in b; vectors as
/// in numpy.matmul.
Tensor matmul(
    const Tensor& input_tensor_a, const Tensor& input_tensor_b, bool transpose_a = false,
    bool transpose_b = false, const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    std::optional<const DataType> dtype = std::nullopt,
    const std::optional<const MatmulProgramConfig>& program_config = std::nullopt,
    const std::optional<const Activation>& activation = std::nullopt,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    std::optional<const CoreGrid> core_grid = std::nullopt,
    const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
    std::optional<Tensor> optional_output_tensor = std::nullopt,
    const std::optional<const GlobalCircularBuffer>& global_cb = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id =
        std::nullopt TTCODEGEN_ADDED_8101(
            , const std::vector<std::shared_ptr<tt::tt_metal::experimental::PrefetcherPipe>>&
                  prefetcher_pipes = {}));

/// matmul, then `bias` ((N), (1, N), (M, N) with leading ones) and the activation.
Tensor linear(
    const Tensor& input_tensor_a, const Tensor& input_tensor_b,
    const std::optional<const Tensor>& bias = std::nullopt, bool transpose_a = false,
    bool transpose_b = false, const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    std::optional<const DataType> dtype = std::nullopt,
    const std::optional<const MatmulProgramConfig>& program_config = std::nullopt,
    const std::optional<const Activation>& activation = std::nullopt,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    std::optional<const CoreGrid> core_grid = std::nullopt,
    const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
    std::optional<Tensor> optional_output_tensor = std::nullopt,
    const std::optional<const GlobalCircularBuffer>& global_cb = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id =
        std::nullopt TTCODEGEN_ADDED_8101(
            ,
            const std::vector<std::shared_ptr<tt::tt_metal::experimental::PrefetcherPipe>>&
                prefetcher_pipes = {},
            std::optional<uint32_t> in0_column_offset = std::nullopt));

/// beta * input_tensor + alpha * (mat1_tensor x mat2_tensor). The input has the matmul's shape.
Tensor addmm(const Tensor& input_tensor, const Tensor& mat1_tensor, const Tensor& mat2_tensor,
             float alpha = 1.0f, float beta = 1.0f,
             const std::optional<const MemoryConfig>& memory_config = std::nullopt,
             std::optional<const DataType> dtype = std::nullopt,
             const std::optional<const MatmulProgramConfig>& program_config = std::nullopt,
             std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
             std::optional<const CoreGrid> core_grid = std::nullopt,
             const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
             std::optional<Tensor> optional_output_tensor = std::nullopt);

/// Matmuls of those pairs of matrices of a and b whose flag in `sparsity` is not zero; the others
/// are zero. If a is sparse, matrices are paired by index, else each of a with each of b. The flags
/// are 16 bits each, ROW_MAJOR, in rows as long as b's batch. `nnz` is the number of nonzero flags;
/// without it they are counted.
Tensor sparse_matmul(
    const Tensor& input_tensor_a, const Tensor& input_tensor_b, const Tensor& sparsity,
    const MatmulProgramConfig& program_config, std::optional<uint32_t> nnz = std::nullopt,
    bool is_input_a_sparse = false, bool is_input_b_sparse = true,
    const std::optional<const MemoryConfig>& memory_config = std::nullopt,
    std::optional<const DataType> dtype = std::nullopt,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config = std::nullopt,
    std::optional<const CoreGrid> core_grid = std::nullopt,
    const std::optional<const tt::tt_metal::Tile>& output_tile = std::nullopt,
    const std::optional<Tensor>& optional_output_tensor = std::nullopt,
    const std::optional<const GlobalCircularBuffer>& global_cb = std::nullopt,
    const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id =
        std::nullopt TTCODEGEN_ADDED_8101(, const std::optional<Tensor>& indices = std::nullopt,
                                          const std::optional<Tensor>& bias = std::nullopt));

}  // namespace operations::matmul

using operations::matmul::addmm;
using operations::matmul::linear;
using operations::matmul::matmul;
using operations::matmul::sparse_matmul;

}  // namespace ttnn
