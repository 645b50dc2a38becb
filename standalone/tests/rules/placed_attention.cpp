// Attention, rotary embeddings and caches of placed tensors.

#include <regex>

#include "call.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"
#include "ttnn/operations/kv_cache/kv_cache.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

namespace rules {

namespace {

using ttnn::operations::transformer::SDPAProgramConfig;

/// "SDPA(grid=8x8,q=32,k=64)", or without the word
std::optional<SDPAProgramConfig> take_program(Call& call) {
    static const std::regex form(R"(SDPA\((?:grid=)?(\d+)x(\d+),q=(\d+),k=(\d+)\))");
    const std::string variant = call.row().variant;
    std::smatch found;
    const auto cores = call.integer("max_cores_per_head_batch");
    if (!std::regex_search(variant, found, form)) {
        if (!cores) {
            return std::nullopt;
        }
        SDPAProgramConfig config;
        config.compute_with_storage_grid_size = {8, 8};
        config.q_chunk_size = 0;
        config.k_chunk_size = 0;
        config.max_cores_per_head_batch = static_cast<std::uint32_t>(*cores);
        return config;
    }
    call.take(found[0].str());
    SDPAProgramConfig config;
    config.compute_with_storage_grid_size = {std::stoul(found[1].str()),
                                             std::stoul(found[2].str())};
    config.q_chunk_size = std::stoul(found[3].str());
    config.k_chunk_size = std::stoul(found[4].str());
    return config;
}

Results attention(Call& call) {
    const auto program = take_program(call);
    std::optional<ttnn::DeviceComputeKernelConfig> compute;
    if (call.take("fp32acc")) {
        compute.emplace().fp32_dest_acc_en = true;
    }
    if (call.take("HiFi2")) {
        compute.emplace();
    }
    const auto memory_config = call.memory_config();
    std::optional<Tensor> mask;
    if (call.take("mask")) {
        mask = call.input(3);
    }
    bool is_causal = call.flag("causal", !mask);
    if (call.take("causal")) {
        is_causal = true;
    }
    const Tensor query = call.input(0);
    // A row whose inputs are alike names them once.
    const Tensor key = call.inputs() > 1 ? call.input(1) : query;
    const Tensor value = call.inputs() > 2 ? call.input(2) : query;
    return ttnn::transformer::scaled_dot_product_attention(
        query, key, value, mask, is_causal, std::nullopt, std::nullopt, memory_config, program);
}

Results attention_decode(Call& call) {
    const auto program = take_program(call);
    const auto memory_config = call.memory_config();
    std::optional<const Tensor> positions;
    positions.emplace(call.input(3));
    return ttnn::transformer::scaled_dot_product_attention_decode(
        call.input(0), call.input(1), call.input(2), true, std::nullopt, {}, positions,
        std::nullopt, std::nullopt, std::nullopt, memory_config, program);
}

Results paged_attention_decode(Call& call) {
    const auto program = take_program(call);
    const auto memory_config = call.memory_config();
    std::optional<const Tensor> positions;
    positions.emplace(call.input(4));
    return ttnn::transformer::paged_scaled_dot_product_attention_decode(
        call.input(0), call.input(1), call.input(2), call.input(3), true, std::nullopt, positions,
        std::nullopt, std::nullopt, std::nullopt, memory_config, program);
}

Results rotary_embedding(Call& call) {
    const auto memory_config = call.memory_config();
    const auto token = call.integer("token_idx");
    return ttnn::experimental::rotary_embedding(
        call.input(0), call.input(1), call.input(2),
        token ? std::optional(static_cast<std::uint32_t>(*token)) : std::nullopt, memory_config);
}

Results rotary_embedding_llama(Call& call) {
    call.take("prefill");
    call.take("batch vs cores");
    const auto memory_config = call.memory_config();
    const bool decode = call.flag("is_decode_mode", false);
    return ttnn::experimental::rotary_embedding_llama(call.input(0), call.input(1), call.input(2),
                                                      call.input(3), decode, memory_config);
}

std::uint32_t index_of(Call& call, const char* key) {
    return static_cast<std::uint32_t>(call.integer(key).value_or(0));
}

Results paged_update_cache(Call& call) {
    std::vector<std::uint32_t> list;
    std::optional<const Tensor> positions;
    std::optional<const Tensor> page_table;
    std::optional<bool> is_shared;
    if (call.take("share_cache")) {
        is_shared = true;
        list.resize(call.input(1).logical_shape()[1], 3);
    }
    if (call.take("idxs_tensor+page_table")) {
        positions.emplace(call.input(2));
        page_table.emplace(call.input(3));
    } else if (call.take("update_idxs_tensor")) {
        positions.emplace(call.input(2));
    } else if (call.take("update_idxs=list")) {
        list.resize(call.input(1).logical_shape()[1], 3);
    }
    return ttnn::experimental::paged_update_cache(call.input(0), call.input(1), list, positions,
                                                  is_shared, page_table, 0, std::nullopt,
                                                  std::nullopt);
}

}  // namespace

void add_placed_attention(Operations& operations) {
    operations["transformer.scaled_dot_product_attention"] = attention;
    operations["transformer.scaled_dot_product_attention_decode"] = attention_decode;
    operations["transformer.paged_scaled_dot_product_attention_decode"] = paged_attention_decode;
    operations["experimental.rotary_embedding"] = rotary_embedding;
    operations["experimental.rotary_embedding_llama"] = rotary_embedding_llama;
    operations["experimental.paged_update_cache"] = paged_update_cache;
    operations["update_cache"] = [](Call& call) -> Results {
        return ttnn::update_cache(call.input(0), call.input(1), index_of(call, "idx"), 0);
    };
    operations["kv_cache.update_cache_for_token_"] = [](Call& call) -> Results {
        const std::uint32_t index = index_of(call, "idx");
        return ttnn::update_cache_for_token_(call.input(0), call.input(1), index,
                                             index_of(call, "off"));
    };
    operations["fill_cache"] = [](Call& call) -> Results {
        return ttnn::fill_cache(call.input(0), call.input(1), index_of(call, "batch"));
    };
}

}  // namespace rules
