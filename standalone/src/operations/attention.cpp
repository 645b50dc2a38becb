#include "compute/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "compute/approximation.hpp"
#include "compute/rows.hpp"
#include "core/chips.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

namespace ttnn::transformer {
namespace {

using namespace ttcodegen::cpu;
using operations::transformer::SDPAProgramConfig;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

constexpr std::size_t kCores = 64;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

bool is_attention_type(DataType dtype) { return dtype == DataType::BFLOAT16 || is_block(dtype); }

float scale_of(std::optional<float> scale, uint32_t width) {
    return scale.value_or(1.0F / std::sqrt(static_cast<float>(width)));
}

Arithmetic arithmetic_of_attention(const Tensor& queries, const Tensor& keys,
                                   const std::optional<DeviceComputeKernelConfig>& compute) {
    return arithmetic_of(compute, ComputeDefault::attention,
                         std::array{queries.dtype(), keys.dtype()}, false);
}

/// Everything that happens between the dot products and the weights of a query.
struct Weighting {
    float scale = 1.0F;
    Arithmetic arithmetic;
    /// Position of query 0 in the sequence; queries see keys up to their own position.
    std::optional<int64_t> causal_from;
    /// Keys of the sliding window; 0 is no window.
    int64_t window = 0;
    /// (1 or users, 1 or heads, queries, keys).
    std::optional<FloatElements> mask;
    std::array<int64_t, 2> mask_strides = {0, 0};
    int64_t mask_width = 0;
    /// What the mask is multiplied with: the decode kernels add it before they scale.
    float mask_scale = 1.0F;
    /// One logit for each head.
    std::optional<FloatElements> sinks;
    int64_t sink_stride = 1;

    /// The kernels leave the scale to the exponent, and divide by the sum of the exponentials at
    /// the end; what goes from step to step is bfloat16.
    float operator()(int64_t user, int64_t head, int64_t query, float* scores,
                     std::size_t count) const {
        for (std::size_t i = 0; i < count; ++i) {
            scores[i] = round_to_bf16(scores[i]);
        }
        if (mask) {
            const float* added =
                mask->data() + user * mask_strides[0] + head * mask_strides[1] + query * mask_width;
            for (std::size_t i = 0; i < count; ++i) {
                scores[i] = round_to_bf16(scores[i] + round_to_bf16(added[i] * mask_scale / scale));
            }
        }
        const auto [first, last] = visible(query, static_cast<int64_t>(count));
        std::fill(scores, scores + first, kMinusInfinity);
        std::fill(scores + last, scores + count, kMinusInfinity);
        float maximum = maximum_of(scores, count);
        // The kernels scale a sink like the scores that it stands next to.
        const float sink =
            sinks ? (*sinks)[static_cast<std::size_t>(head * sink_stride)] : kMinusInfinity;
        maximum = std::max(maximum, sink);
        std::array<float, kTile> sums{};
        for (std::size_t i = 0; i < count; ++i) {
            scores[i] = power(scores[i], maximum);
            sums[i % kTile] = round_to_bf16(sums[i % kTile] + scores[i]);
        }
        float sum = round_to_bf16(std::accumulate(sums.begin(), sums.end(), 0.0F));
        if (sinks) {
            sum = round_to_bf16(sum + power(sink, maximum));
        }
        return arithmetic.in_destination(iterated_reciprocal(sum, arithmetic));
    }

    /// The exponential of a score below the maximum, an approximation whatever is configured.
    float power(float score, float maximum) const {
        const float difference = arithmetic.in_destination(score - maximum) * scale;
        // The packer turns what the approximation makes of large negative numbers into zero.
        return difference < -88.0F ? 0.0F : round_to_bf16(fast_exponential(difference));
    }

    static constexpr std::size_t kTile = 32;

    /// The keys [first, last) that a query sees.
    std::pair<int64_t, int64_t> visible(int64_t query, int64_t count) const {
        if (causal_from) {
            const int64_t position = *causal_from + query;
            const int64_t first = window > 0 ? position - window + 1 : 0;
            return {std::clamp<int64_t>(first, 0, count),
                    std::clamp<int64_t>(position + 1, 0, count)};
        }
        if (window > 0) {
            return {std::clamp<int64_t>(query - window / 2, 0, count),
                    std::clamp<int64_t>(query + window / 2 + 1, 0, count)};
        }
        return {0, count};
    }
};

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

void check_program(const std::optional<SDPAProgramConfig>& config) {
    if (config) {
        const auto& grid = config->compute_with_storage_grid_size;
        TT_FATAL(grid.x * grid.y <= kCores,
                 "Provided grid must not contain more cores than the device. Got {} cores, "
                 "expected at most {} cores.",
                 grid.x * grid.y, kCores);
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

Tensor make_output(const Tensor& queries, const std::optional<MemoryConfig>& memory_config) {
    return allocate_like(queries, queries.logical_shape(), queries.dtype(), queries.layout(),
                         memory_config.value_or(MemoryConfig{}));
}

/// Page numbers of all users, each a page that the cache has.
void set_pages(CacheLayout& layout, const Tensor& page_table, int64_t users, int64_t pages) {
    require_on_device(page_table, "Page table tensor");
    TT_FATAL(page_table.dtype() == DataType::INT32,
             "Error: SDPA currently only supports INT32 datatype");
    TT_FATAL(page_table.layout() == Layout::ROW_MAJOR,
             "Page table tensor layout must be ROW_MAJOR but got {}", page_table.layout());
    const Shape& shape = page_table.logical_shape();
    TT_FATAL(shape.rank() == 2 && shape[0] == users,
             "Page table batch size must match input batch size. Got Page table: {}, Input: {}",
             shape, users);
    const auto table = elements<int32_t>(page_table);
    layout.pages.assign(table.begin(), table.end());
    layout.pages_per_user = shape[1];
    for (const int64_t page : layout.pages) {
        // Entries after a user's last page are often -1; they are looked at when they are used.
        TT_FATAL(page < pages, "Page {} is outside of a cache of {} pages", page, pages);
    }
}

/// Refuses users whose keys reach beyond their pages.
void check_pages_in_use(const Attention& attention) {
    const CacheLayout& layout = attention.cache;
    for (int64_t user = 0; user < attention.users; ++user) {
        const int64_t keys = attention.keys[static_cast<std::size_t>(user)];
        const int64_t used = (keys + layout.positions - 1) / layout.positions;
        TT_FATAL(used <= layout.pages_per_user,
                 "User {} needs {} pages for {} keys, its page table has {}", user, used, keys,
                 layout.pages_per_user);
        for (int64_t i = 0; i < used; ++i) {
            TT_FATAL(layout.pages[static_cast<std::size_t>(user * layout.pages_per_user + i)] >= 0,
                     "Page {} of user {} is not assigned", i, user);
        }
    }
}

Tensor chunked(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& page_table,
               int64_t chunk_start, std::optional<float> scale,
               const std::optional<MemoryConfig>& memory_config,
               const std::optional<SDPAProgramConfig>& program_config,
               const std::optional<DeviceComputeKernelConfig>& compute) {
    for (const Tensor* operand : {&q, &k, &v}) {
        check_prefill_operand(*operand);
    }
    check_program(program_config);
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
    const Tensor output = make_output(q, memory_config);
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
    check_program(program_config);
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
    const Tensor output = make_output(input_tensor_q, memory_config);
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

namespace {

/// Arguments of both decode operations.
struct DecodeArguments {
    const Tensor& q;
    const Tensor& k;
    const Tensor& v;
    bool is_causal;
    const std::optional<const Tensor>& mask;
    const std::optional<const Tensor>& sink;
    std::optional<float> scale;
    int64_t window;
    const std::optional<MemoryConfig>& memory_config;
    const std::optional<DeviceComputeKernelConfig>& compute;
};

void check_decode_operands(const DecodeArguments& arguments) {
    const Tensor& q = arguments.q;
    for (const Tensor* operand : {&q, &arguments.k, &arguments.v}) {
        TT_FATAL(on_device(*operand), "Operands to SDPA need to be on device!");
        TT_FATAL(is_attention_type(operand->dtype()), "Unsupported data type {}.",
                 operand->dtype());
        TT_FATAL(operand->logical_shape().rank() == 4,
                 "SDPA decode takes tensors of rank 4, got {}", operand->logical_shape());
        TT_FATAL(operand == &q || operand->layout() == Layout::TILE,
                 "Inputs to SDPA must be tilized except for Q");
    }
    TT_FATAL(q.is_sharded() || q.memory_config().is_dram(),
             "Q tensor buffer type must be DRAM when not sharded but got {}",
             q.memory_config().buffer_type());
    const Shape& shape = q.logical_shape();
    const Shape& keys = arguments.k.logical_shape();
    const Shape& values = arguments.v.logical_shape();
    TT_FATAL(shape[0] == 1, "Q tensor batch size must be 1 for decode mode but got {}", shape[0]);
    // A row-major Q has no padding, K and V have.
    TT_FATAL(keys[3] == shape[3] && values[3] == shape[3] &&
                 (q.layout() == Layout::TILE || shape[3] % 32 == 0),
             "K tensor hidden dimension ({}) must equal Q tensor hidden dimension ({})", keys[3],
             shape[3]);
    TT_FATAL(keys[2] == values[2],
             "K and V tensors must have the same sequence length. K: {}, V: {}", keys[2],
             values[2]);
    TT_FATAL(keys[1] == values[1],
             "Flash decode expects K and V to have same number of heads, but got {} and {}",
             keys[1], values[1]);
    TT_FATAL(keys[1] == 1 || q.dtype() == DataType::BFLOAT16,
             "GQA expects BFLOAT16 input tensor, but got {}", q.dtype());
    TT_FATAL(keys[1] == 1 || !arguments.memory_config || !arguments.memory_config->is_sharded(),
             "Sharded output not supported for GQA");
    TT_FATAL(shape[2] % keys[1] == 0,
             "GQA expects Q to have a multiple of K heads, but got {} and {}", shape[2], keys[1]);
    TT_FATAL(shape[1] <= 64, "Cores available (64) must be >= batch size ({})", shape[1]);
}

void set_decode_mask(Weighting& weighting, const DecodeArguments& arguments) {
    if (!arguments.mask) {
        return;
    }
    const Tensor& mask = *arguments.mask;
    TT_FATAL(!arguments.is_causal, "Must not have attn_mask tensor for non-causal attention");
    require_on_device(mask, "mask tensor");
    TT_FATAL(is_attention_type(mask.dtype()), "Unsupported data type for mask tensor: {}.",
             mask.dtype());
    const Shape& shape = mask.logical_shape();
    const Shape& q = arguments.q.logical_shape();
    TT_FATAL(shape.rank() == 4 && shape[1] == 1 && (shape[0] == 1 || shape[0] == q[1]),
             "The mask of SDPA decode must be (1 or batch, 1, heads, keys), got {}", shape);
    TT_FATAL(shape[2] == q[2], "Expect same number of heads in mask as in Q, got {} and {}",
             shape[2], q[2]);
    weighting.mask.emplace(mask);
    weighting.mask_scale = weighting.scale;
    weighting.mask_strides = {shape[0] == 1 ? 0 : int64_t{shape[2]} * shape[3], shape[3]};
}

void set_decode_sink(Weighting& weighting, const DecodeArguments& arguments) {
    if (!arguments.sink) {
        return;
    }
    const Tensor& sink = *arguments.sink;
    require_on_device(sink, "Attention sink");
    const Shape& shape = sink.logical_shape();
    TT_FATAL(shape.rank() == 2, "Attention sink must have 2 dimensions");
    TT_FATAL(shape[0] >= arguments.q.logical_shape()[2] && shape[0] <= 32 * 32,
             "Attention sink must have the same padded num heads as Q but got {}", shape[0]);
    TT_FATAL(sink.dtype() == DataType::BFLOAT16, "Attention sink must by a BF16 tensor, but got {}",
             sink.dtype());
    TT_FATAL(sink.layout() == Layout::TILE, "Attention sink must be in TILE layout, but got {}",
             sink.layout());
    weighting.sinks.emplace(sink);
    weighting.sink_stride = shape[1];
}

/// How many keys each user has: up to and including its position, or all.
std::vector<int64_t> keys_of_users(const std::vector<int64_t>& positions, bool is_causal,
                                   int64_t users, int64_t limit) {
    std::vector<int64_t> keys(static_cast<std::size_t>(users), limit);
    if (!is_causal) {
        return keys;
    }
    TT_FATAL(static_cast<int64_t>(positions.size()) >= users,
             "cur_pos must have one position for each of {} users, got {}", users,
             positions.size());
    for (std::size_t user = 0; user < keys.size(); ++user) {
        TT_FATAL(positions[user] < limit,
                 "cur_pos must be <= K sequence dim: {} of user {} is beyond {} keys",
                 positions[user], user, limit);
        keys[user] = std::max<int64_t>(positions[user] + 1, 0);
    }
    return keys;
}

std::vector<int64_t> positions_of(const Tensor& tensor) {
    require_on_device(tensor, "cur_pos tensor");
    const auto values = load_integers(tensor);
    return {values.get(), values.get() + tensor.logical_volume()};
}

/// `length`: of the sequence of keys, where they do not lie in pages.
void check_key_chunks(const std::optional<SDPAProgramConfig>& program_config, uint32_t length = 0) {
    const std::size_t size = program_config ? program_config->k_chunk_size : 0;
    TT_FATAL((size & (size - 1)) == 0, "User provided k_chunk_size must be power of 2, got: {}",
             size);
    TT_FATAL(size % 32 == 0, "User provided k_chunk_size must be multiple of 32, got: {}", size);
    TT_FATAL(size == 0 || length % size == 0,
             "K sequence length must be multiple of chunk size, got: {} and {}", length, size);
}

Tensor decode(const DecodeArguments& arguments, const Attention& attention) {
    Weighting weighting;
    weighting.scale = scale_of(arguments.scale, arguments.q.logical_shape()[3]);
    set_decode_mask(weighting, arguments);
    set_decode_sink(weighting, arguments);
    const Tensor output = make_output(arguments.q, arguments.memory_config);
    const auto weigh = [&](int64_t user, int64_t head, int64_t, float* scores, std::size_t count) {
        const auto hidden = static_cast<int64_t>(count) - arguments.window;
        if (arguments.window > 0 && hidden > 0) {
            std::fill_n(scores, hidden, kMinusInfinity);
        }
        return weighting(user, head, 0, scores, count);
    };
    attend(arguments.q, arguments.k, arguments.v, attention,
           arithmetic_of_attention(arguments.q, arguments.k, arguments.compute), weigh, output);
    return output;
}

}  // namespace

Tensor scaled_dot_product_attention_decode(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v,
    bool is_causal, const std::optional<const Tensor>& attn_mask,
    const std::vector<uint32_t>& cur_pos, const std::optional<const Tensor>& cur_pos_tensor,
    const std::optional<const Tensor>& attention_sink, std::optional<float> scale,
    std::optional<uint32_t> sliding_window_size, const std::optional<MemoryConfig>& memory_config,
    std::optional<SDPAProgramConfig> program_config,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config,
    std::optional<bool> share_cache) {
    TTCODEGEN_ON_EACH_CHIP(scaled_dot_product_attention_decode, input_tensor_q, input_tensor_k,
                           input_tensor_v, is_causal, attn_mask, cur_pos, cur_pos_tensor,
                           attention_sink, scale, sliding_window_size, memory_config,
                           program_config, compute_kernel_config, share_cache);
    const DecodeArguments arguments{
        input_tensor_q, input_tensor_k,       input_tensor_v, is_causal,
        attn_mask,      attention_sink,       scale,          sliding_window_size.value_or(0),
        memory_config,  compute_kernel_config};
    check_decode_operands(arguments);
    check_key_chunks(program_config, input_tensor_k.logical_shape()[2]);
    const Shape& q = input_tensor_q.logical_shape();
    const Shape& k = input_tensor_k.logical_shape();
    TT_FATAL(!share_cache.value_or(false),
             "share_cache gives an output of one user only in this release; repeat the cache");
    TT_FATAL(k[0] == q[1], "K tensor batch size ({}) must equal B ({})", k[0], q[1]);
    TT_FATAL(k[2] % 32 == 0,
             "Chunk size must be multiple of 32, but the sequence of K has length {}", k[2]);
    TT_FATAL(!attn_mask || attn_mask->logical_shape()[-1] == k[2],
             "Expect same sequence length in mask as in K, got {} and {}",
             attn_mask->logical_shape()[-1], k[2]);
    std::vector<int64_t> positions;
    if (cur_pos_tensor) {
        positions = positions_of(*cur_pos_tensor);
    } else {
        for (const uint32_t position : cur_pos) {
            positions.push_back(static_cast<int32_t>(position));
        }
    }
    const Attention attention{
        q[1], q[2], 1, q[3], {k[1], k[2], {}, 0}, keys_of_users(positions, is_causal, q[1], k[2])};
    return decode(arguments, attention);
}

Tensor paged_scaled_dot_product_attention_decode(
    const Tensor& input_tensor_q, const Tensor& input_tensor_k, const Tensor& input_tensor_v,
    const Tensor& page_table_tensor, bool is_causal, const std::optional<const Tensor>& attn_mask,
    const std::optional<const Tensor>& cur_pos_tensor,
    const std::optional<const Tensor>& attention_sink, std::optional<float> scale,
    std::optional<uint32_t> sliding_window_size, const std::optional<MemoryConfig>& memory_config,
    std::optional<SDPAProgramConfig> program_config,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(paged_scaled_dot_product_attention_decode, input_tensor_q,
                           input_tensor_k, input_tensor_v, page_table_tensor, is_causal, attn_mask,
                           cur_pos_tensor, attention_sink, scale, sliding_window_size,
                           memory_config, program_config, compute_kernel_config);
    const DecodeArguments arguments{
        input_tensor_q, input_tensor_k,       input_tensor_v, is_causal,
        attn_mask,      attention_sink,       scale,          sliding_window_size.value_or(0),
        memory_config,  compute_kernel_config};
    check_decode_operands(arguments);
    check_key_chunks(program_config);
    const Shape& q = input_tensor_q.logical_shape();
    const Shape& k = input_tensor_k.logical_shape();
    std::vector<int64_t> positions;
    if (is_causal) {
        TT_FATAL(cur_pos_tensor.has_value(),
                 "Must have cur_pos tensor for paged attention in causal mode");
        TT_FATAL(cur_pos_tensor->dtype() == DataType::INT32, "Expect cur_pos to be INT32, got {}",
                 cur_pos_tensor->dtype());
        TT_FATAL(cur_pos_tensor->layout() == Layout::ROW_MAJOR,
                 "Expect cur_pos to be ROW_MAJOR, got {}", cur_pos_tensor->layout());
        TT_FATAL(cur_pos_tensor->logical_shape()[0] == q[1],
                 "cur_pos must have batch size equal to Q, got {} and {}",
                 cur_pos_tensor->logical_shape()[0], q[1]);
        positions = positions_of(*cur_pos_tensor);
    } else {
        TT_FATAL(program_config && program_config->k_chunk_size > 0,
                 "Must provide k_chunk_size if paged and non-causal!");
    }
    Attention attention{q[1], q[2], 1, q[3], {k[1], k[2], {}, 0}, {}};
    set_pages(attention.cache, page_table_tensor, q[1], k[0]);
    const int64_t limit = attention.cache.pages_per_user * k[2];
    TT_FATAL(!attn_mask || attn_mask->logical_shape()[-1] == limit,
             "Expect same sequence length in mask as in K, got {} and {}",
             attn_mask->logical_shape()[-1], limit);
    attention.keys = keys_of_users(positions, is_causal, q[1], limit);
    check_pages_in_use(attention);
    return decode(arguments, attention);
}

}  // namespace ttnn::transformer
