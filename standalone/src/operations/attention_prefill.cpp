#include <functional>

#include "core/chips.hpp"
#include "operations/attention.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"

namespace ttnn::transformer {
namespace {

using namespace ttcodegen::cpu;
using operations::transformer::SDPAProgramConfig;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

void set_mask(Weighting& weighting, const Tensor& mask) {
    const Shape& shape = mask.logical_shape();
    weighting.mask.emplace(mask);
    weighting.mask_width = shape[3];
    const int64_t head = int64_t{shape[2]} * shape[3];
    weighting.mask_strides = {shape[0] == 1 ? 0 : shape[1] * head, shape[1] == 1 ? 0 : head};
}

void check_prefill_operand(const Tensor& tensor) {
    TT_FATAL(on_device(tensor), "Operands to SDPA need to be on device");
    TT_FATAL(tensor.layout() == Layout::TILE, "Inputs to SDPA must be tilized");
    TT_FATAL(is_attention_type(tensor.dtype()),
             "Data type of input tensor must be BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is {}",
             tensor.dtype());
    TT_FATAL(!tensor.is_sharded(), "Operands to SDPA need to be DRAM/L1 interleaved");
    const Shape& shape = tensor.logical_shape();
    if (shape.rank() != 4) {
        TT_THROW("ShapeBase[] index out of range. SDPA takes tensors of rank 4, got {}", shape);
    }
    TT_FATAL(shape[3] % 32 == 0, "Padding is not supported on the head_dim dimension");
}

void check_heads(const Shape& q, const Shape& k, const Shape& v) {
    TT_FATAL(v[1] == k[1], "K and V num_heads must match. Got K: {}, V: {}", k[1], v[1]);
    TT_FATAL(k[3] == q[3] && v[3] == q[3], "K and V hidden dim must match. Got K: {}, V: {}", k[3],
             v[3]);
    TT_FATAL(q[1] >= k[1] && q[1] % k[1] == 0,
             "Q num_heads must be >= K num_heads and divisible by K num_heads. Got Q: {}, K: {}",
             q[1], k[1]);
}

void check_program(const Tensor& q, const std::optional<SDPAProgramConfig>& config) {
    if (config) {
        const auto& grid = config->compute_with_storage_grid_size;
        const CoreCoord device = q.device()->compute_with_storage_grid_size();
        const std::size_t cores = device.x * device.y;
        TT_FATAL(grid.x * grid.y <= cores,
                 "Provided grid must not contain more cores than the device. Got {} cores, "
                 "expected at most {} cores.",
                 grid.x * grid.y, cores);
        TT_FATAL(config->q_chunk_size % 32 == 0,
                 "q_chunk_size must be divisible by TILE_SIZE. Got q_chunk_size: {}, TILE_SIZE: 32",
                 config->q_chunk_size);
        TT_FATAL(config->k_chunk_size % 32 == 0,
                 "k_chunk_size must be divisible by TILE_SIZE. Got k_chunk_size: {}, TILE_SIZE: 32",
                 config->k_chunk_size);
    }
}

void check_prefill_mask(const Tensor& mask, const Shape& q, const Shape& k, bool is_causal) {
    TT_FATAL(!is_causal,
             "is_causal and attn_mask cannot both be present. Got is_causal: true, attn_mask: "
             "true");
    TT_FATAL(on_device(mask), "When mask is provided to SDPA, the tensor must be on device");
    TT_FATAL(mask.layout() == Layout::TILE, "When mask is provided to SDPA, it must be tilized");
    TT_FATAL(is_attention_type(mask.dtype()),
             "When mask is provided to SDPA, it must be in BF16, BFP8, or BFP4 dataformat");
    TT_FATAL(mask.memory_config().is_dram(),
             "When mask is provided to SDPA, it must be in DRAM, got {}",
             mask.memory_config().buffer_type());
    const Shape& shape = mask.logical_shape();
    TT_FATAL(shape.rank() == 4, "The mask of SDPA must have rank 4, got {}", shape);
    TT_FATAL(shape[0] == 1 || shape[0] == q[0],
             "Mask batch dim must either be 1 (to be broadcasted across all batches) or must match "
             "Q batch dimension");
    TT_FATAL(shape[1] == 1 || shape[1] == q[1],
             "Mask num_heads must either be 1 (to be broadcasted across all heads) or must match Q "
             "heads dimension");
    TT_FATAL(shape[2] == q[2], "Mask sequence length must match Q sequence length");
    TT_FATAL(shape[3] == k[2], "Mask sequence length must match K sequence length");
}

void set_prefill_sink(Weighting& weighting, const Tensor& sink, uint32_t heads) {
    require_on_device(sink, "Attention sink tensor");
    TT_FATAL(sink.layout() == Layout::TILE, "Attention sink must be tilized");
    TT_FATAL(is_attention_type(sink.dtype()),
             "Attention sink must be in BF16, BFP8, or BFP4 dataformat");
    TT_FATAL(sink.memory_config().is_dram(), "Attention sink must be in DRAM, got {}",
             sink.memory_config().buffer_type());
    const Shape& shape = sink.logical_shape();
    TT_FATAL(shape.rank() == 4 && shape[0] == 1, "Attention sink batch dimension must be 1. Got {}",
             shape);
    TT_FATAL(shape[1] == heads,
             "Attention sink num_heads must match Q num_heads. Got sink: {}, Q: {}", shape[1],
             heads);
    TT_FATAL(shape[2] == 1, "Attention sink sequence dimension must be 1. Got {}", shape[2]);
    TT_FATAL(shape[3] == 1, "Attention sink hidden dimension must be 1. Got {}", shape[3]);
    weighting.sinks.emplace(sink);
}

Tensor chunked(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& page_table,
               int64_t chunk_start, std::optional<float> scale,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<SDPAProgramConfig>& program_config,
               const std::optional<DeviceComputeKernelConfig>& compute) {
    for (const Tensor* operand : {&q, &k, &v}) {
        check_prefill_operand(*operand);
    }
    check_program(q, program_config);
    const Shape& shape = q.logical_shape();
    const Shape& cache = k.logical_shape();
    check_heads(shape, cache, v.logical_shape());
    TT_FATAL(v.logical_shape()[2] == cache[2],
             "K page size must match V page size. Got K: {}, V: {}", cache[2],
             v.logical_shape()[2]);
    TT_FATAL(chunk_start >= 0, "chunk_start_idx must be non-negative");
    const auto chunk_size =
        program_config ? static_cast<int64_t>(program_config->q_chunk_size) : int64_t{32};
    TT_FATAL(chunk_size > 0 && chunk_start % chunk_size == 0,
             "chunk_start_idx must be a multiple of q_chunk_size. Got chunk_start_idx: {}, "
             "q_chunk_size: {}",
             chunk_start, chunk_size);
    Attention attention{shape[0], shape[1], shape[2], shape[3], {cache[1], cache[2], {}, 0}, {}};
    set_pages(attention.cache, page_table, shape[0], cache[0]);
    attention.keys.assign(shape[0], chunk_start + shape[2]);
    check_pages_in_use(attention);
    Weighting weighting;
    weighting.scale = scale_of(scale, shape[3]);
    weighting.causal_from = chunk_start;
    attention.causal_from = chunk_start;
    const Tensor output = make_attention_output(q, memory_config);
    weighting.arithmetic = arithmetic_of_attention(q, k, compute);
    attend(q, k, v, attention, weighting.arithmetic, std::cref(weighting), output);
    return output;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& input_tensor_q, const Tensor& input_tensor_k,
                                    const Tensor& input_tensor_v,
                                    const std::optional<Tensor>& attn_mask, bool is_causal,
                                    std::optional<float> scale,
                                    std::optional<uint32_t> sliding_window_size,
                                    const std::optional<MemoryConfig>& memory_config,
                                    std::optional<SDPAProgramConfig> program_config,
                                    std::optional<DeviceComputeKernelConfig> compute_kernel_config,
                                    const std::optional<Tensor>& attention_sink) {
    TTCODEGEN_ON_EACH_CHIP(scaled_dot_product_attention, input_tensor_q, input_tensor_k,
                           input_tensor_v, attn_mask, is_causal, scale, sliding_window_size,
                           memory_config, program_config, compute_kernel_config, attention_sink);
    for (const Tensor* operand : {&input_tensor_q, &input_tensor_k, &input_tensor_v}) {
        check_prefill_operand(*operand);
    }
    const Shape& q = input_tensor_q.logical_shape();
    const Shape& k = input_tensor_k.logical_shape();
    const Shape& v = input_tensor_v.logical_shape();
    Weighting weighting;
    weighting.scale = scale_of(scale, q[3]);
    weighting.window = sliding_window_size.value_or(0);
    if (attn_mask) {
        check_prefill_mask(*attn_mask, q, k, is_causal);
        TT_FATAL(weighting.window == 0,
                 "SDPA ignores a mask beside a sliding window: put the window into the mask");
        set_mask(weighting, *attn_mask);
    }
    if (is_causal) {
        TT_FATAL(q[2] == k[2],
                 "Causal SDPA requires Q and K to have the same sequence length. Got Q: {}, K: {}",
                 q[2], k[2]);
        weighting.causal_from = 0;
    }
    TT_FATAL(k[0] == q[0] && v[0] == q[0], "K and V batch must match. Got K: {}, V: {}", k[0],
             v[0]);
    TT_FATAL(v[2] == k[2], "K and V sequence length must match. Got K: {}, V: {}", k[2], v[2]);
    check_heads(q, k, v);
    check_program(input_tensor_q, program_config);
    if (attention_sink) {
        set_prefill_sink(weighting, *attention_sink, q[1]);
    }
    const Attention attention{q[0],
                              q[1],
                              q[2],
                              q[3],
                              {k[1], k[2], {}, 0},
                              std::vector<int64_t>(q[0], k[2]),
                              weighting.causal_from};
    const Tensor output = make_attention_output(input_tensor_q, memory_config);
    weighting.arithmetic =
        arithmetic_of_attention(input_tensor_q, input_tensor_k, compute_kernel_config);
    attend(input_tensor_q, input_tensor_k, input_tensor_v, attention, weighting.arithmetic,
           std::cref(weighting), output);
    return output;
}

Tensor chunked_scaled_dot_product_attention(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v,
    const Tensor& page_table_tensor, int64_t chunk_start_idx, std::optional<float> scale,
    const std::optional<MemoryConfig>& memory_config,
    std::optional<SDPAProgramConfig> program_config,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(chunked_scaled_dot_product_attention, input_tensor_q, input_tensor_k,
                           input_tensor_v, page_table_tensor, chunk_start_idx, scale, memory_config,
                           program_config, compute_kernel_config);
    const std::size_t keys = program_config ? program_config->k_chunk_size : kTileSide;
    TT_FATAL(keys > 0 && chunk_start_idx % static_cast<int64_t>(keys) == 0,
             "chunk_start_idx must be a multiple of k_chunk_size. Got chunk_start_idx: {}, "
             "k_chunk_size: {}",
             chunk_start_idx, keys);
    return chunked(input_tensor_q, input_tensor_k, input_tensor_v, page_table_tensor,
                   chunk_start_idx, scale, memory_config, program_config, compute_kernel_config);
}

Tensor chunked_scaled_dot_product_attention(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v,
    const Tensor& page_table_tensor, const Tensor& chunk_start_idx_tensor,
    std::optional<float> scale, const std::optional<MemoryConfig>& memory_config,
    std::optional<SDPAProgramConfig> program_config,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(chunked_scaled_dot_product_attention, input_tensor_q, input_tensor_k,
                           input_tensor_v, page_table_tensor, chunk_start_idx_tensor, scale,
                           memory_config, program_config, compute_kernel_config);
    require_on_device(chunk_start_idx_tensor, "chunk_start_idx tensor");
    TT_FATAL(chunk_start_idx_tensor.dtype() == DataType::INT32,
             "chunk_start_idx tensor must be int32. Got {}", chunk_start_idx_tensor.dtype());
    TT_FATAL(chunk_start_idx_tensor.logical_volume() == 1,
             "chunk_start_idx tensor must have shape [1]. Got {}",
             chunk_start_idx_tensor.logical_shape());
    return chunked(input_tensor_q, input_tensor_k, input_tensor_v, page_table_tensor,
                   elements<int32_t>(chunk_start_idx_tensor)[0], scale, memory_config,
                   program_config, compute_kernel_config);
}
}  // namespace ttnn::transformer
