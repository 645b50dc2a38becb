#include <algorithm>

#include "core/chips.hpp"
#include "device/architecture.hpp"
#include "operations/attention.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

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

/// Checks that queries are in DRAM or height-sharded, and everything else is in DRAM.
void check_decode_memory(const DecodeArguments& arguments) {
    const MemoryConfig& q = arguments.q.memory_config();
    const auto is_by_height = [](const MemoryConfig& memory) {
        return memory.memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED;
    };
    TT_FATAL(q.is_sharded() || q.is_dram(),
             "Q tensor buffer type must be DRAM when not sharded but got {}", q.buffer_type());
    TT_FATAL(!q.is_sharded() || is_by_height(q),
             "Q tensor memory layout must be HEIGHT_SHARDED when sharded but got {}",
             q.memory_layout());
    for (const Tensor* operand : {&arguments.k, &arguments.v}) {
        TT_FATAL(operand->memory_config().is_dram(),
                 "K and V tensor buffer type must be DRAM but got {}",
                 operand->memory_config().buffer_type());
    }
    const MemoryConfig output = arguments.memory_config.value_or(MemoryConfig{});
    TT_FATAL(!output.is_sharded() || is_by_height(output),
             "Output memory config layout must be HEIGHT_SHARDED when sharded but got {}",
             output.memory_layout());
}

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
    check_decode_memory(arguments);
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
}

/// The maximum number of tree reduction rounds of a head's partial results in the kernels.
constexpr std::size_t kMostRounds = 6;
/// Arguments of the writer kernel besides those of cores.
constexpr std::size_t kWriterArguments = 16 + kMostRounds;

/// Refuses a grid that cannot be divided among users and heads (sdpa_decode_program_factory.cpp
/// of tt-metal 0.70.1), and one with more cores than the kernels' arguments can hold
/// (kernel.cpp).
void check_decode_cores(const Tensor& q, const Tensor& k,
                        const std::optional<SDPAProgramConfig>& config) {
    const CoreCoord all = q.device()->compute_with_storage_grid_size();
    const CoreCoord grid = config ? config->compute_with_storage_grid_size : all;
    const std::size_t cores = grid.x * grid.y;
    const std::size_t users = q.logical_shape()[1];
    const std::size_t heads = k.logical_shape()[1];
    TT_FATAL(cores <= all.x * all.y,
             "Num cores available in core grid: {} must be less than or equal to the device's: {}",
             cores, all.x * all.y);
    TT_FATAL(cores >= users, "Cores available ({}) must be >= batch size ({})", cores, users);
    const std::size_t most = config ? config->max_cores_per_head_batch : cores;
    TT_FATAL(most > 0, "max_cores_per_head_batch must be > 0");
    const std::size_t of_user = std::min(cores, most * users * heads) / users;
    const std::size_t of_head = std::max<std::size_t>(1, of_user / heads);
    std::size_t heads_at_once = std::max<std::size_t>(1, (heads + of_user - 1) / of_user);
    while (heads % heads_at_once != 0) {
        ++heads_at_once;
    }
    TT_FATAL(of_head <= std::size_t{1} << kMostRounds,
             "Tree reduction max {} rounds ({} cores/head), got {} cores/head", kMostRounds,
             std::size_t{1} << kMostRounds, of_head);
    const std::size_t reducers = heads * users / heads_at_once;
    const std::size_t arguments = kWriterArguments + 2 * (of_head + reducers + users);
    TT_FATAL(arguments <= ttcodegen::device::kMaxRuntimeArguments,
             "{} unique+common runtime args targeting the writer of SDPA decode are too large. Max "
             "allowable is {}",
             arguments, ttcodegen::device::kMaxRuntimeArguments);
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
    TT_FATAL(sink.padded_shape()[1] == kTileSide,
             "Attention sink must be a single tile wide, but got {}", sink.padded_shape()[1]);
    TT_FATAL(sink.memory_config().is_dram(), "Attention sink must be in DRAM memory, but got {}",
             sink.memory_config().buffer_type());
    weighting.sinks.emplace(sink);
    weighting.sink_stride = shape[1];
}

/// The number of keys of each user: up to and including its position, or all.
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

/// Checks chunk sizes; `length` is the length of the key sequence, unless the cache is paged.
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
    const Tensor output = make_attention_output(arguments.q, arguments.memory_config);
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
    check_decode_cores(input_tensor_q, input_tensor_k, program_config);
    check_key_chunks(program_config, input_tensor_k.logical_shape()[2]);
    const Shape& q = input_tensor_q.logical_shape();
    const Shape& k = input_tensor_k.logical_shape();
    TT_FATAL(!share_cache.value_or(false),
             "share_cache gives an output of one user only in this release; repeat the cache");
    const Shape& v = input_tensor_v.logical_shape();
    TT_FATAL(k[0] == q[1], "K tensor batch size ({}) must equal B ({})", k[0], q[1]);
    TT_FATAL(v[0] == q[1], "V tensor batch size ({}) must equal B ({})", v[0], q[1]);
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
    check_decode_cores(input_tensor_q, input_tensor_k, program_config);
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
    TT_FATAL(is_causal || limit % static_cast<int64_t>(program_config->k_chunk_size) == 0,
             "K sequence length must be multiple of chunk size, got: {} and {}", limit,
             program_config->k_chunk_size);
    TT_FATAL(!attn_mask || attn_mask->logical_shape()[-1] == limit,
             "Expect same sequence length in mask as in K, got {} and {}",
             attn_mask->logical_shape()[-1], limit);
    attention.keys = keys_of_users(positions, is_causal, q[1], limit);
    check_pages_in_use(attention);
    return decode(arguments, attention);
}

}  // namespace ttnn::transformer
