// Heads of placed tensors.

#include <array>

#include "call.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads_decode/nlp_concat_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp"
#include "ttnn/operations/transformer/split_query_key_value_and_split_heads/split_query_key_value_and_split_heads.hpp"

namespace rules {

namespace {

Results of_three(const std::tuple<Tensor, Tensor, Tensor>& heads) {
    return {{std::get<0>(heads), std::get<1>(heads), std::get<2>(heads)}};
}

std::uint32_t heads_of(Call& call) {
    return static_cast<std::uint32_t>(call.integer("heads").value());
}

/// "kv=8", or "kv=None" for as many as there are of the queries
std::optional<std::uint32_t> kv_heads_of(Call& call) {
    const auto text = call.value("kv");
    if (!text || *text == "None") {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(std::stoul(*text));
}

Results split_heads(Call& call) {
    const std::uint32_t heads = heads_of(call);
    const auto kv_heads = kv_heads_of(call);
    const bool transpose = call.flag("transpose_key", true);
    const auto memory_config = call.memory_config();
    return of_three(ttnn::transformer::split_query_key_value_and_split_heads(
        call.input(0), std::nullopt, heads, kv_heads, transpose, memory_config));
}

Results create_heads(Call& call) {
    const std::uint32_t heads = heads_of(call);
    const auto kv_heads = kv_heads_of(call);
    const bool transpose = call.flag("transpose_k", true);
    const auto memory_config = call.memory_config();
    return of_three(ttnn::experimental::nlp_create_qkv_heads(call.input(0), std::nullopt, heads,
                                                             kv_heads, transpose, memory_config));
}

Results create_heads_decode(Call& call) {
    const std::uint32_t heads = heads_of(call);
    const auto kv = kv_heads_of(call);
    std::optional<const std::uint32_t> kv_heads;
    if (kv) {
        kv_heads.emplace(*kv);
    }
    const auto memory_config = call.memory_config();
    const auto text = call.value("overlap");
    const std::optional<const bool> overlap(!(text && *text == "False"));
    std::optional<std::array<Tensor, 3>> outputs;
    return of_three(ttnn::experimental::nlp_create_qkv_heads_decode(call.input(0), heads, kv_heads,
                                                                    outputs, overlap, std::nullopt,
                                                                    std::nullopt, memory_config));
}

Results concat_heads_decode(Call& call) {
    const auto heads = static_cast<std::uint32_t>(call.integer("num_heads").value());
    return ttnn::experimental::nlp_concat_heads_decode(call.input(0), heads);
}

}  // namespace

void add_placed_heads(Operations& operations) {
    operations["transformer.split_query_key_value_and_split_heads"] = split_heads;
    operations["transformer.concatenate_heads"] = [](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return ttnn::transformer::concatenate_heads(call.input(0), memory_config);
    };
    operations["experimental.nlp_concat_heads"] = [](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return ttnn::experimental::nlp_concat_heads(call.input(0), memory_config);
    };
    operations["experimental.nlp_create_qkv_heads"] = create_heads;
    operations["experimental.nlp_create_qkv_heads_decode"] = create_heads_decode;
    operations["experimental.nlp_concat_heads_decode"] = concat_heads_decode;
}

}  // namespace rules
