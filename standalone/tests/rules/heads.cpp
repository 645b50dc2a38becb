// Heads and rotary embeddings.

#include <array>

#include "call.hpp"
#include "ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads_decode/nlp_create_qkv_heads_decode.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding/rotary_embedding.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_llama/rotary_embedding_llama.hpp"
#include "ttnn/operations/transformer/concatenate_heads/concatenate_heads.hpp"
#include "ttnn/operations/transformer/split_query_key_value_and_split_heads/split_query_key_value_and_split_heads.hpp"

namespace rules {

namespace {

Results of_three(const std::tuple<Tensor, Tensor, Tensor>& heads) {
    return {{std::get<0>(heads), std::get<1>(heads), std::get<2>(heads)}};
}

std::optional<std::uint32_t> count(Call& call, const char* key) {
    const auto number = call.integer(key);
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

Results split_heads(Call& call) {
    const std::uint32_t heads = count(call, "num_heads").value();
    const auto kv_heads = count(call, "num_kv_heads");
    const bool transpose = call.flag("transpose_key", true);
    std::optional<Tensor> keys_and_values;
    if (call.take("kv_input")) {
        keys_and_values = call.input(1);
    }
    return of_three(ttnn::transformer::split_query_key_value_and_split_heads(
        call.input(0), keys_and_values, heads, kv_heads, transpose, std::nullopt));
}

Results create_heads(Call& call) {
    const std::uint32_t heads = count(call, "num_heads").value();
    const auto kv_heads = count(call, "num_kv_heads");
    const bool transpose = call.flag("transpose_k_heads", false);
    std::optional<Tensor> keys_and_values;
    if (call.take("kv_input")) {
        keys_and_values = call.input(1);
    }
    return of_three(ttnn::experimental::nlp_create_qkv_heads(call.input(0), keys_and_values, heads,
                                                             kv_heads, transpose, std::nullopt));
}

Results create_heads_decode(Call& call) {
    const std::uint32_t heads = count(call, "num_heads").value();
    const std::optional<const std::uint32_t> kv_heads(count(call, "num_kv_heads"));
    std::optional<std::array<Tensor, 3>> outputs;
    return of_three(
        ttnn::experimental::nlp_create_qkv_heads_decode(call.input(0), heads, kv_heads, outputs));
}

Results rotary_embedding(Call& call) {
    call.take("mixed");
    const auto token = count(call, "token_idx");
    return ttnn::experimental::rotary_embedding(call.input(0), call.input(1), call.input(2), token);
}

Results rotary_embedding_llama(Call& call) {
    call.take("prefill");
    call.take("mixed");
    const bool decode = call.flag("is_decode_mode", false);
    return ttnn::experimental::rotary_embedding_llama(call.input(0), call.input(1), call.input(2),
                                                      call.input(3), decode);
}

}  // namespace

void add_heads(Operations& operations) {
    operations["transformer.split_query_key_value_and_split_heads"] = split_heads;
    operations["transformer.concatenate_heads"] = [](Call& call) -> Results {
        return ttnn::transformer::concatenate_heads(call.input(0));
    };
    operations["experimental.nlp_concat_heads"] = [](Call& call) -> Results {
        return ttnn::experimental::nlp_concat_heads(call.input(0));
    };
    operations["experimental.nlp_create_qkv_heads"] = create_heads;
    operations["experimental.nlp_create_qkv_heads_decode"] = create_heads_decode;
    operations["experimental.rotary_embedding"] = rotary_embedding;
    operations["experimental.rotary_embedding_llama"] = rotary_embedding_llama;
}

}  // namespace rules
