// Functions that tt-metal 0.81.1 takes in another form: programs for that release get their
// declarations (ttcodegen/release.hpp), and they forward to those of 0.70.1, declared here. So do
// functions in the same form that refuse or give something else, as measured on a mocked device.

#include <cmath>
#include <limits>

#include "core/chips.hpp"
#include "core/describe.hpp"
#include "core/tensor_data.hpp"
#include "tt_stl/assert.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/conv/conv1d/conv1d.hpp"
#include "ttnn/operations/data_movement/sort/sort.hpp"
#include "ttnn/operations/eltwise/ternary/ternary.hpp"
#include "ttnn/operations/eltwise/unary/common/unary_op_types.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/unary_backward/gelu_backward/gelu_backward.hpp"
#include "ttnn/operations/kv_cache/kv_cache.hpp"
#include "ttnn/operations/normalization/groupnorm/groupnorm.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"

namespace {

/// Refuses what 0.81.1 offers beyond 0.70.1.
void refuse(bool given, const char* function, const char* parameter) {
    TT_FATAL(!given, "The CPU backend does not support '{}' of {}", parameter, function);
}

}  // namespace

namespace ttnn {

namespace {

using operations::ternary::TensorScalarVariant;

/// Refuses a number that an integer type does not have once it is a float, as which it is passed.
void require_number_of(const TensorScalarVariant& value, DataType dtype) {
    const float* given = std::get_if<float>(&value);
    const float number = given != nullptr ? *given : static_cast<float>(std::get<int>(value));
    const bool is_signed = dtype == DataType::INT32;
    const double least = is_signed ? std::numeric_limits<std::int32_t>::min() : 0;
    const double greatest = is_signed ? std::numeric_limits<std::int32_t>::max()
                                      : std::numeric_limits<std::uint32_t>::max();
    TT_FATAL(std::trunc(number) == number && number >= least && number <= greatest,
             "ttnn.where with a {} tensor cannot represent the scalar {}", dtype, number);
}

/// Refuses what `where` of a predicate, one tensor of values and a number does not take.
void check_where(const Tensor& predicate, const Tensor& values, const TensorScalarVariant& number,
                 const char* operation) {
    using ttcodegen::cpu::is_integer;
    const auto is_narrow = [](DataType dtype) {
        return dtype == DataType::UINT16 || dtype == DataType::UINT8;
    };
    const DataType a = predicate.dtype();
    const DataType b = values.dtype();
    if (is_integer(b) && !is_narrow(b)) {
        require_number_of(number, b);
    }
    TT_FATAL(!is_narrow(a) || !is_integer(b),
             "Input tensor A dtype {} is not supported for binary operation BinaryOpType::{}", a,
             operation);
    TT_FATAL(!is_narrow(b),
             "Input tensor B dtype {} is not supported for binary operation BinaryOpType::{}", b,
             operation);
    TT_FATAL(a == b || (is_integer(a) && !is_integer(b)),
             "Mixed dtype is not supported for binary operation BinaryOpType::{}, dtype A: {}, "
             "dtype B: {}",
             operation, a, b);
}

}  // namespace

Tensor all_gather(
    const Tensor& input_tensor, std::int32_t dim, std::optional<std::uint32_t> cluster_axis,
    const std::optional<MemoryConfig>& memory_config,
    const std::optional<Tensor>& persistent_output_tensor,
    const std::optional<tt::tt_metal::SubDeviceId>& subdevice_id,
    const std::optional<CoreRangeSet>& sub_core_grid, std::optional<std::uint32_t> num_links,
    std::optional<tt::tt_fabric::Topology> topology, std::optional<std::uint32_t> chunks_per_sync,
    std::optional<std::uint32_t> num_workers_per_link,
    std::optional<std::uint32_t> num_buffers_per_channel, bool use_l1_small_for_semaphores) {
    return all_gather(input_tensor, dim, cluster_axis, subdevice_id, memory_config,
                      persistent_output_tensor, num_links, topology, chunks_per_sync,
                      num_workers_per_link, num_buffers_per_channel, sub_core_grid,
                      use_l1_small_for_semaphores);
}

Tensor argmax(const Tensor& input_tensor, const std::optional<int>& dim, bool keepdim,
              const std::optional<CoreRangeSet>& sub_core_grids,
              const std::optional<MemoryConfig>& memory_config,
              std::optional<Tensor> optional_output_tensor, std::optional<bool>) {
    // The flag went with the program on one core.
    return argmax(input_tensor, dim, keepdim, sub_core_grids, /*use_multicore=*/true, memory_config,
                  std::move(optional_output_tensor));
}

/// The slices, which are stages of the same computation, change no result.
Conv1dResult conv1d(const ttnn::Tensor& input_tensor, const ttnn::Tensor& weight_tensor,
                    MeshDevice* device, uint32_t in_channels, uint32_t out_channels,
                    uint32_t batch_size, uint32_t input_length, uint32_t kernel_size,
                    uint32_t stride, std::variant<std::array<uint32_t, 2>, uint32_t> padding,
                    uint32_t dilation, uint32_t groups, const std::optional<const DataType>& dtype,
                    const std::optional<const ttnn::Tensor>& bias_tensor,
                    const std::optional<const Conv1dConfig>& conv_config,
                    const std::optional<const DeviceComputeKernelConfig>& compute_config,
                    const std::optional<const MemoryConfig>& memory_config,
                    const std::optional<const ttnn::operations::op_slicing::Op2DSliceConfig>&,
                    bool return_output_dim, bool return_weights_and_bias) {
    return conv1d(input_tensor, weight_tensor, device, in_channels, out_channels, batch_size,
                  input_length, kernel_size, stride, padding, dilation, groups, dtype, bias_tensor,
                  conv_config, compute_config, memory_config, return_output_dim,
                  return_weights_and_bias);
}

Tensor fill_cache(const Tensor& cache_tensor, const Tensor& input_tensor, uint32_t batch_idx,
                  uint32_t update_idx) {
    refuse(update_idx != 0, "fill_cache", "update_idx");
    return fill_cache(cache_tensor, input_tensor, batch_idx);
}

Tensor fill_cache_for_user_(const Tensor& cache, const Tensor& input, uint32_t batch_index,
                            uint32_t update_index) {
    return fill_cache(cache, input, batch_index, update_index);
}

std::vector<std::optional<Tensor>> gelu_bw(const Tensor& grad_tensor, const Tensor& input_tensor,
                                           operations::unary::GeluVariant variant,
                                           const std::optional<MemoryConfig>& memory_config,
                                           std::optional<Tensor> input_grad) {
    using enum operations::unary::GeluVariant;
    refuse(variant == FAST_LUT, "gelu_bw", "FAST_LUT");
    return {experimental::gelu_bw(grad_tensor, input_tensor, variant == TANH ? "tanh" : "none",
                                  memory_config, std::move(input_grad))};
}

Tensor group_norm(const Tensor& input_tensor, int num_groups, float epsilon,
                  const std::optional<Tensor>& input_mask, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias,
                  const std::optional<MemoryConfig>& memory_config, std::optional<DataType> dtype,
                  std::optional<CoreGrid> core_grid, std::optional<bool> inplace,
                  std::optional<Layout> output_layout, std::optional<int> num_out_blocks,
                  std::optional<DeviceComputeKernelConfig> compute_kernel_config,
                  const std::optional<Tensor>& negative_mask, bool use_welford) {
    const std::optional<Tensor> reciprocals;
    return group_norm(input_tensor, num_groups, epsilon, input_mask, weight, bias, reciprocals,
                      memory_config, dtype, core_grid, inplace, output_layout, num_out_blocks,
                      compute_kernel_config, negative_mask, use_welford);
}

std::vector<Tensor> sort(const Tensor& input_tensor, std::int8_t dim, bool descending, bool stable,
                         const std::optional<MemoryConfig>& memory_config,
                         std::optional<std::tuple<Tensor&, Tensor&>> optional_output_tensors,
                         ttcodegen::Since8101 rules) {
    TTCODEGEN_ON_EACH_CHIP(sort, input_tensor, dim, descending, stable, memory_config,
                           optional_output_tensors, rules);
    namespace cpu = ttcodegen::cpu;
    if (optional_output_tensors || !cpu::on_device(input_tensor) ||
        input_tensor.layout() != Layout::TILE || input_tensor.dtype() == DataType::BFLOAT16 ||
        cpu::is_block(input_tensor.dtype())) {
        return sort(input_tensor, dim, descending, stable, memory_config, optional_output_tensors);
    }
    const Shape& shape = input_tensor.logical_shape();
    const MemoryConfig target = memory_config.value_or(input_tensor.memory_config());
    Tensor values =
        cpu::allocate_like(input_tensor, shape, input_tensor.dtype(), Layout::TILE, target);
    Tensor indices =
        cpu::allocate_like(input_tensor, shape, DataType::UINT32, Layout::TILE, target);
    return sort(input_tensor, dim, descending, stable, memory_config,
                std::tuple<Tensor&, Tensor&>(values, indices));
}

Tensor where(const Tensor& predicate, const TensorScalarVariant& value_true,
             const TensorScalarVariant& value_false,
             const std::optional<MemoryConfig>& memory_config, const std::optional<Tensor>& output,
             const std::optional<CoreRangeSet>& sub_core_grids, ttcodegen::Since8101 rules) {
    TTCODEGEN_ON_EACH_CHIP(where, predicate, value_true, value_false, memory_config, output,
                           sub_core_grids, rules);
    const Tensor* on_true = std::get_if<Tensor>(&value_true);
    const Tensor* on_false = std::get_if<Tensor>(&value_false);
    if (on_true == nullptr && on_false == nullptr) {
        TT_FATAL(predicate.dtype() != DataType::UINT16 && predicate.dtype() != DataType::UINT8,
                 "Unary: UnaryOpType::WHERE_TSS does not support integer input dtype {}",
                 predicate.dtype());
    } else if (on_false == nullptr) {
        check_where(predicate, *on_true, value_false, "WHERE_TTS");
    } else if (on_true == nullptr) {
        check_where(predicate, *on_false, value_true, "WHERE_TST");
    }
    return where(predicate, value_true, value_false, memory_config, output, sub_core_grids);
}

}  // namespace ttnn

namespace ttnn::experimental {

std::tuple<Tensor, Tensor, Tensor> nlp_create_qkv_heads(
    const Tensor& input_tensor_q, const std::optional<Tensor>& input_tensor_kv,
    uint32_t num_q_heads, std::optional<uint32_t> num_kv_heads, bool transpose_k_heads,
    bool kv_tied, const std::optional<MemoryConfig>& memory_config,
    const std::optional<std::vector<std::optional<Tensor>>>& optional_output_tensors) {
    refuse(kv_tied, "nlp_create_qkv_heads", "kv_tied");
    return nlp_create_qkv_heads(input_tensor_q, input_tensor_kv, num_q_heads, num_kv_heads,
                                transpose_k_heads, memory_config, optional_output_tensors);
}

Tensor paged_update_cache(
    const Tensor& cache_tensor, const Tensor& input_tensor,
    const std::vector<uint32_t>& update_idxs, const std::optional<const Tensor>& update_idxs_tensor,
    std::optional<bool> share_cache, const std::optional<const Tensor>& page_table,
    uint32_t batch_offset,
    std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords,
    std::optional<uint32_t> block_size, std::optional<uint32_t> num_kv_heads,
    std::optional<uint32_t> cache_position_modulo) {
    refuse(block_size.has_value(), "paged_update_cache", "block_size");
    refuse(num_kv_heads.has_value(), "paged_update_cache", "num_kv_heads");
    refuse(cache_position_modulo.has_value(), "paged_update_cache", "cache_position_modulo");
    return paged_update_cache(cache_tensor, input_tensor, update_idxs, update_idxs_tensor,
                              share_cache, page_table, batch_offset, compute_kernel_config,
                              mesh_coords);
}

Tensor paged_fill_cache(const Tensor& cache_tensor, const Tensor& input_tensor,
                        const Tensor& page_table,
                        const std::optional<const Tensor>& batch_idx_tensor, uint32_t batch_idx,
                        std::optional<const ttnn::DeviceComputeKernelConfig> compute_kernel_config,
                        const std::optional<const std::set<ttnn::MeshCoordinate>>& mesh_coords,
                        std::optional<uint32_t> block_size,
                        std::optional<uint32_t> cache_position_modulo,
                        const std::optional<const Tensor>& valid_seq_len_tensor) {
    refuse(block_size.has_value(), "paged_fill_cache", "block_size");
    refuse(cache_position_modulo.has_value(), "paged_fill_cache", "cache_position_modulo");
    refuse(valid_seq_len_tensor.has_value(), "paged_fill_cache", "valid_seq_len_tensor");
    return paged_fill_cache(cache_tensor, input_tensor, page_table, batch_idx_tensor, batch_idx,
                            compute_kernel_config, mesh_coords);
}

}  // namespace ttnn::experimental
