#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

struct Attention {
    double scale = 1;
    bool is_causal = true;
    /// Window of keys up to the current one that a query sees; 0 for all.
    std::size_t sliding_window_size = 0;
    /// Of paged_flash_multi_latent_attention_decode: elements of a key that are its value.
    std::size_t head_dim_v = 0;
};

/// Gathers keys or values (users, heads, positions, size) from pages (pages, heads, positions of a
/// page, size) by the page table (users, pages of each).
inline Tensor unpaged(const Tensor& pages, const Tensor& table) {
    const std::size_t users = table.shape[0];
    const std::size_t heads = pages.shape[1];
    const std::size_t page_size = pages.shape[2] * pages.shape[3];
    const double last = static_cast<double>(pages.shape[0]) - 1;
    Tensor result{
        pages.element, {users, heads, table.shape[1] * pages.shape[2], pages.shape[3]}, {}};
    for (std::size_t user = 0; user < users; ++user) {
        for (std::size_t head = 0; head < heads; ++head) {
            for (std::size_t i = 0; i < table.shape[1]; ++i) {
                const double named = table.elements[user * table.shape[1] + i];
                const auto page = static_cast<std::size_t>(std::clamp(named, 0.0, last));
                const auto first = pages.elements.begin() +
                                   static_cast<std::ptrdiff_t>((page * heads + head) * page_size);
                result.elements.insert(result.elements.end(), first,
                                       first + static_cast<std::ptrdiff_t>(page_size));
            }
        }
    }
    return result;
}

/// The mean of values (keys, size), weighted by the softmax of the scores; `sink_score` is the
/// score of an attention sink, whose value is 0.
inline void attend(std::vector<double>& scores, const Optional& sink, double sink_score,
                   const double* values, std::size_t size, double* result) {
    double top = sink ? sink_score : -std::numeric_limits<double>::infinity();
    for (const double score : scores) {
        top = std::max(top, score);
    }
    double total = sink ? std::exp(sink_score - top) : 0;
    for (double& score : scores) {
        score = std::exp(score - top);
        total += score;
    }
    for (std::size_t key = 0; key < scores.size(); ++key) {
        for (std::size_t i = 0; i < size; ++i) {
            result[i] += scores[key] / total * values[key * size + i];
        }
    }
}

/// The dot product of two vectors.
inline double dot(const double* x, const double* y, std::size_t size) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
        sum += x[i] * y[i];
    }
    return sum;
}

/// Attention of one token of each user: query and result (1, users, heads, size), keys and values
/// (users, heads of keys, positions, size), a mask that broadcasts to (users, 1, heads, positions),
/// the current position of each user, and the score of a sink for each head.
inline Tensor scaled_dot_product_attention_decode(const Type& type, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Optional& attention_mask,
                                                  const Optional& cur_pos_tensor,
                                                  const Optional& attention_sink,
                                                  const Attention& attributes) {
    const std::size_t users = query.shape[1];
    const std::size_t heads = query.shape[2];
    const std::size_t size = query.shape[3];
    const std::size_t keys = key.shape[2];
    const std::size_t value_size = value.shape[3];
    const std::size_t window = attributes.sliding_window_size;
    std::vector<double> values(users * heads * value_size, 0);
    const Shape mask_strides =
        attention_mask ? broadcast_strides(attention_mask->shape, {users, 1, heads, keys})
                       : Shape(4, 0);
    for (std::size_t user = 0; user < users; ++user) {
        double current = static_cast<double>(keys) - 1;
        if (cur_pos_tensor && attributes.is_causal) {
            current = cur_pos_tensor->elements[cur_pos_tensor->elements.size() > 1 ? user : 0];
        }
        const double first = window == 0 ? 0 : current - static_cast<double>(window) + 1;
        for (std::size_t head = 0; head < heads; ++head) {
            const std::size_t group = user * key.shape[1] + head * key.shape[1] / heads;
            const double* const asked = query.elements.data() + (user * heads + head) * size;
            std::vector<double> scores(keys, -std::numeric_limits<double>::infinity());
            for (std::size_t k = 0; k < keys; ++k) {
                if (static_cast<double>(k) < first || static_cast<double>(k) > current) {
                    continue;
                }
                double score = dot(asked, key.elements.data() + (group * keys + k) * size, size);
                if (attention_mask) {
                    score += attention_mask->elements[user * mask_strides[0] +
                                                      head * mask_strides[2] + k * mask_strides[3]];
                }
                scores[k] = score * attributes.scale;
            }
            const std::size_t sink_row = attention_sink ? attention_sink->shape[1] : 0;
            const double sink_score =
                attention_sink ? attention_sink->elements[head * sink_row] * attributes.scale : 0;
            attend(scores, attention_sink, sink_score,
                   value.elements.data() + group * keys * value_size, value_size,
                   values.data() + (user * heads + head) * value_size);
        }
    }
    return rounded(type, std::move(values));
}

/// The same with a paged KV cache.
inline Tensor paged_scaled_dot_product_attention_decode(
    const Type& type, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& page_table, const Optional& attention_mask, const Optional& cur_pos_tensor,
    const Optional& attention_sink, const Attention& attributes) {
    return scaled_dot_product_attention_decode(type, query, unpaged(key, page_table),
                                               unpaged(value, page_table), attention_mask,
                                               cur_pos_tensor, attention_sink, attributes);
}

/// The same; without separate values, they are the first `head_dim_v` elements of the keys.
inline Tensor paged_flash_multi_latent_attention_decode(
    const Type& type, const Tensor& query, const Tensor& key, const Optional& value,
    const Tensor& page_table, const Optional& attention_mask, const Optional& cur_pos_tensor,
    const Optional& attention_sink, const Attention& attributes) {
    const Tensor keys = unpaged(key, page_table);
    if (value) {
        return scaled_dot_product_attention_decode(type, query, keys, unpaged(*value, page_table),
                                                   attention_mask, cur_pos_tensor, attention_sink,
                                                   attributes);
    }
    const std::size_t size = keys.shape[3];
    Tensor values{
        keys.element, {keys.shape[0], keys.shape[1], keys.shape[2], attributes.head_dim_v}, {}};
    for (std::size_t row = 0; row < keys.elements.size() / size; ++row) {
        const auto first = keys.elements.begin() + static_cast<std::ptrdiff_t>(row * size);
        values.elements.insert(values.elements.end(), first,
                               first + static_cast<std::ptrdiff_t>(attributes.head_dim_v));
    }
    return scaled_dot_product_attention_decode(type, query, keys, values, attention_mask,
                                               cur_pos_tensor, attention_sink, attributes);
}

/// Attention of queries (users, heads, queries, size), starting at a position of a paged KV cache.
inline Tensor chunked_scaled_dot_product_attention(const Type& type, const Tensor& query,
                                                   const Tensor& key, const Tensor& value,
                                                   const Tensor& page_table,
                                                   const Tensor& chunk_start_idx,
                                                   const Attention& attributes) {
    const Tensor keys = unpaged(key, page_table);
    const Tensor all_values = unpaged(value, page_table);
    const std::size_t heads = query.shape[1];
    const std::size_t queries = query.shape[2];
    const std::size_t size = query.shape[3];
    const std::size_t count = keys.shape[2];
    const std::size_t value_size = all_values.shape[3];
    std::vector<double> values(query.shape[0] * heads * queries * value_size, 0);
    for (std::size_t i = 0; i < query.shape[0] * heads; ++i) {
        const std::size_t group = i / heads * keys.shape[1] + i % heads * keys.shape[1] / heads;
        for (std::size_t q = 0; q < queries; ++q) {
            const double last = chunk_start_idx.elements[0] + static_cast<double>(q);
            std::vector<double> scores(count, -std::numeric_limits<double>::infinity());
            for (std::size_t k = 0; k < count && static_cast<double>(k) <= last; ++k) {
                const double product = dot(query.elements.data() + (i * queries + q) * size,
                                           keys.elements.data() + (group * count + k) * size, size);
                scores[k] = product * attributes.scale;
            }
            attend(scores, std::nullopt, 0, all_values.elements.data() + group * count * value_size,
                   value_size, values.data() + (i * queries + q) * value_size);
        }
    }
    return rounded(type, std::move(values));
}

}  // namespace support::cpu
