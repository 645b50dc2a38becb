// Attention.

#include "call.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

namespace rules {

namespace {

std::optional<std::uint32_t> window_of(Call& call) {
    const auto size = call.integer("sliding_window_size");
    return size ? std::optional(static_cast<std::uint32_t>(*size)) : std::nullopt;
}

Results attention(Call& call) {
    const auto scale = call.number("scale");
    const auto window = window_of(call);
    const auto memory_config = call.memory_config();
    std::optional<ttnn::operations::transformer::SDPAProgramConfig> program;
    if (call.take("program_config")) {
        program.emplace();
        program->compute_with_storage_grid_size = {8, 8};
        program->q_chunk_size = static_cast<std::size_t>(*call.integer("q_chunk"));
        program->k_chunk_size = static_cast<std::size_t>(*call.integer("k_chunk"));
    }
    const bool is_default = call.take("is_causal default") || call.take("defaults");
    std::optional<Tensor> mask;
    if (call.take("attn_mask")) {
        mask = call.input(3);
    }
    std::optional<Tensor> sink;
    if (call.take("attention_sink")) {
        sink = call.input(3);
    }
    // A variant with a mask that does not mention causality was not causal.
    bool is_causal = is_default || !mask;
    is_causal = call.flag("is_causal", is_causal);
    for (const char* words : {"cross", "GQA", "seq 100"}) {
        call.take(words);
    }
    return ttnn::transformer::scaled_dot_product_attention(
        call.input(0), call.input(1), call.input(2), mask, is_causal, scale, window, memory_config,
        program, std::nullopt, sink);
}

/// "[5]", "[5,5,5]" or "[5]*4"
std::vector<std::uint32_t> positions_of(Call& call, std::size_t batch) {
    if (call.take("no cur_pos")) {
        return {};
    }
    const auto text = call.value("cur_pos");
    if (!text) {
        return std::vector<std::uint32_t>(batch, 5);
    }
    std::vector<std::uint32_t> positions;
    const std::size_t star = text->find('*');
    for (const std::int64_t position : numbers_of(text->substr(0, star))) {
        positions.push_back(static_cast<std::uint32_t>(position));
    }
    if (star != std::string::npos) {
        positions.resize(std::stoul(text->substr(star + 1)), positions.at(0));
    }
    return positions;
}

Results attention_decode(Call& call) {
    const auto window = window_of(call);
    const auto memory_config = call.memory_config();
    std::optional<bool> share;
    if (const auto text = call.value("share_cache")) {
        share = *text == "True";
    }
    std::optional<const Tensor> mask;
    if (call.take("attn_mask")) {
        mask.emplace(call.input(3));
    }
    const bool is_causal = call.flag("is_causal", true);
    const bool both = call.take("cur_pos and cur_pos_tensor");
    std::optional<const Tensor> position_tensor;
    if (call.take("cur_pos_tensor") || both) {
        position_tensor.emplace(call.input(3));
    }
    std::vector<std::uint32_t> positions;
    if (!position_tensor || both) {
        positions = positions_of(call, call.input(0).logical_shape()[1]);
    }
    if (!is_causal) {
        positions.clear();
    }
    call.take("cur_pos");
    return ttnn::transformer::scaled_dot_product_attention_decode(
        call.input(0), call.input(1), call.input(2), is_causal, mask, positions, position_tensor,
        std::nullopt, std::nullopt, window, memory_config, std::nullopt, std::nullopt, share);
}

}  // namespace

void add_attention(Operations& operations) {
    operations["transformer.scaled_dot_product_attention"] = attention;
    operations["transformer.scaled_dot_product_attention_decode"] = attention_decode;
    operations["transformer.paged_scaled_dot_product_attention_decode"] =
        [](Call& call) -> Results {
        call.take("page_table");
        // The positions come before the page table in the row.
        std::optional<const Tensor> positions;
        positions.emplace(call.input(3));
        return ttnn::transformer::paged_scaled_dot_product_attention_decode(
            call.input(0), call.input(1), call.input(2), call.input(4), true, std::nullopt,
            positions);
    };
    operations["transformer.chunked_scaled_dot_product_attention"] = [](Call& call) -> Results {
        call.take("start 0");
        return ttnn::transformer::chunked_scaled_dot_product_attention(
            call.input(0), call.input(1), call.input(2), call.input(3), std::int64_t{0});
    };
}

}  // namespace rules
