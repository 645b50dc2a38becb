#include <functional>

#include "compute_testing.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#include "ttnn/operations/transformer/sdpa_decode/sdpa_decode.hpp"

using namespace compute_testing;

namespace {

constexpr std::uint32_t kWidth = 64;

/// Reads element `i` of a row of keys or values.
using Row =
    std::function<float(std::size_t user, std::size_t head, std::size_t key, std::size_t i)>;
/// The addend of a score; minus infinity hides the key.
using Mask =
    std::function<double(std::size_t user, std::size_t head, std::size_t query, std::size_t key)>;

struct Reference {
    std::size_t users, heads, cache_heads, queries, keys;
    double scale = 1 / std::sqrt(static_cast<double>(kWidth));
    /// One extra logit a head; none where empty.
    std::vector<float> sinks = {};

    std::vector<float> operator()(const std::vector<float>& q, const Row& k, const Row& v,
                                  const Mask& mask) const {
        std::vector<float> result(q.size());
        for (std::size_t row = 0; row < users * heads * queries; ++row) {
            const std::size_t query = row % queries;
            const std::size_t head = row / queries % heads;
            const std::size_t user = row / queries / heads;
            const std::size_t shared = head / (heads / cache_heads);
            std::vector<double> weights(keys);
            double sum = sinks.empty() ? 0 : std::exp(sinks[head] * scale);
            for (std::size_t key = 0; key < keys; ++key) {
                double score = 0;
                for (std::size_t i = 0; i < kWidth; ++i) {
                    score += static_cast<double>(q[row * kWidth + i]) * k(user, shared, key, i);
                }
                weights[key] = std::exp(score * scale + mask(user, head, query, key));
                sum += weights[key];
            }
            for (std::size_t i = 0; i < kWidth; ++i) {
                double value = 0;
                for (std::size_t key = 0; key < keys; ++key) {
                    value += weights[key] / sum * v(user, shared, key, i);
                }
                result[row * kWidth + i] = static_cast<float>(value);
            }
        }
        return result;
    }
};

const double kHidden = -std::numeric_limits<double>::infinity();
const Mask kAll = [](auto, auto, auto, auto) { return 0.0; };
const Mask kCausal = [](auto, auto, std::size_t query, std::size_t key) {
    return key <= query ? 0.0 : kHidden;
};

/// By default the reciprocal of a sum is within 4 %, and exponentials always are.
constexpr double kApproximate = 0.06;

Tensor draw_bf16(const Shape& shape, unsigned seed) {
    return draw_tensor(shape, DataType::BFLOAT16, Layout::TILE, seed);
}

/// Rows of a cache (users, heads, positions, width).
Row rows_of(const Tensor& cache) {
    const Shape& shape = cache.logical_shape();
    return [values = values_of(cache), heads = shape[1], positions = shape[2]](
               std::size_t user, std::size_t head, std::size_t key, std::size_t i) {
        return values[((user * heads + head) * positions + key) * kWidth + i];
    };
}

void test_prefill() {
    const Tensor q = draw_bf16(Shape({2, 6, 70, kWidth}), 1);
    const Tensor k = draw_bf16(Shape({2, 2, 70, kWidth}), 2);
    const Tensor v = draw_bf16(Shape({2, 2, 70, kWidth}), 3);
    const Reference reference{2, 6, 2, 70, 70};
    const auto check = [&](const Tensor& result, const Reference& expected, const Mask& mask) {
        expect_shape(result, q.logical_shape());
        expect(result.dtype() == DataType::BFLOAT16, "the type of Q");
        expect_close(values_of(result), expected(values_of(q), rows_of(k), rows_of(v), mask),
                     kApproximate);
    };
    const auto attend = ttnn::transformer::scaled_dot_product_attention;
    const auto run = [&](const std::optional<Tensor>& mask, bool causal,
                         std::optional<std::uint32_t> window = std::nullopt,
                         const std::optional<Tensor>& sink = std::nullopt) {
        return attend(q, k, v, mask, causal, std::nullopt, window, std::nullopt, std::nullopt,
                      std::nullopt, sink);
    };
    check(run(std::nullopt, true), reference, kCausal);
    check(run(std::nullopt, false), reference, kAll);
    check(run(std::nullopt, true, 9), reference,
          [](auto, auto, std::size_t query, std::size_t key) {
              return key <= query && key + 9 > query ? 0.0 : kHidden;
          });
    check(run(std::nullopt, false, 8), reference,
          [](auto, auto, std::size_t query, std::size_t key) {
              return key <= query + 4 && key + 4 >= query ? 0.0 : kHidden;
          });
    const Tensor mask = draw_bf16(Shape({2, 1, 70, 70}), 4);
    check(run(mask, false), reference,
          [values = values_of(mask)](std::size_t user, auto, std::size_t query, std::size_t key) {
              return static_cast<double>(values[(user * 70 + query) * 70 + key]);
          });
    const Tensor sink = draw_bf16(Shape({1, 6, 1, 1}), 5);
    Reference with_sinks = reference;
    with_sinks.sinks = values_of(sink);
    check(run(std::nullopt, true, std::nullopt, sink), with_sinks, kCausal);
}

void test_cross() {
    const Tensor q = draw_bf16(Shape({1, 2, 5, kWidth}), 1);
    const Tensor k = draw_bf16(Shape({1, 2, 300, kWidth}), 2);
    const Tensor v = draw_tensor(Shape({1, 2, 300, kWidth}), DataType::BFLOAT8_B, Layout::TILE, 3);
    const Reference reference{1, 2, 2, 5, 300, 0.25};
    expect_close(values_of(ttnn::transformer::scaled_dot_product_attention(q, k, v, std::nullopt,
                                                                           false, 0.25F)),
                 reference(values_of(q), rows_of(k), rows_of(v), kAll), kApproximate);
}

struct PagedCache {
    Tensor k = draw_bf16(Shape({7, 2, 32, kWidth}), 2);
    Tensor v = draw_bf16(Shape({7, 2, 32, kWidth}), 3);
    std::vector<float> pages = {3, 1, 6, 0, 5, -1};
    Tensor table = make_tensor(Shape({2, 3}), pages, DataType::INT32, Layout::ROW_MAJOR);

    Row rows_of(const Tensor& cache) const {
        return [values = values_of(cache), pages = pages](std::size_t user, std::size_t head,
                                                          std::size_t key, std::size_t i) {
            const float page = std::max(pages[user * 3 + key / 32], 0.0F);
            return values[((static_cast<std::size_t>(page) * 2 + head) * 32 + key % 32) * kWidth +
                          i];
        };
    }
};

void test_chunked() {
    const PagedCache cache;
    const Tensor q = draw_bf16(Shape({2, 4, 32, kWidth}), 1);
    const Reference reference{2, 4, 2, 32, 64};
    const auto expected = reference(values_of(q), cache.rows_of(cache.k), cache.rows_of(cache.v),
                                    [](auto, auto, std::size_t query, std::size_t key) {
                                        return key <= query + 32 ? 0.0 : kHidden;
                                    });
    expect_close(values_of(ttnn::transformer::chunked_scaled_dot_product_attention(
                     q, cache.k, cache.v, cache.table, std::int64_t{32})),
                 expected, kApproximate);
    const Tensor start = make_tensor(Shape({1}), {32}, DataType::INT32, Layout::ROW_MAJOR);
    expect_close(values_of(ttnn::transformer::chunked_scaled_dot_product_attention(
                     q, cache.k, cache.v, cache.table, start)),
                 expected, kApproximate);
}

void test_decode() {
    const Tensor q = draw_bf16(Shape({1, 3, 4, kWidth}), 1);
    const Tensor k = draw_bf16(Shape({3, 2, 96, kWidth}), 2);
    const Tensor v = draw_bf16(Shape({3, 2, 96, kWidth}), 3);
    const std::vector<std::uint32_t> positions{5, 95, 40};
    const Reference reference{3, 4, 2, 1, 96};
    const auto run = [&](const std::optional<const Tensor>& mask, bool causal,
                         const std::vector<std::uint32_t>& list,
                         const std::optional<const Tensor>& tensor,
                         std::optional<std::uint32_t> window = std::nullopt) {
        return ttnn::transformer::scaled_dot_product_attention_decode(
            q, k, v, causal, mask, list, tensor, std::nullopt, std::nullopt, window);
    };
    const auto check = [&](const Tensor& result, const Mask& mask) {
        expect_shape(result, q.logical_shape());
        expect_close(values_of(result), reference(values_of(q), rows_of(k), rows_of(v), mask),
                     kApproximate);
    };
    const Mask up_to_position = [&](std::size_t user, auto, auto, std::size_t key) {
        return key <= positions[user] ? 0.0 : kHidden;
    };
    check(run(std::nullopt, true, positions, std::nullopt), up_to_position);
    check(run(std::nullopt, true, {}, make_tensor(Shape({3}), {5, 95, 40}, DataType::INT32)),
          up_to_position);
    check(run(std::nullopt, true, positions, std::nullopt, 4),
          [&](std::size_t user, auto, auto, std::size_t key) {
              return key <= positions[user] && key + 4 > positions[user] ? 0.0 : kHidden;
          });
    const Tensor mask = draw_bf16(Shape({3, 1, 4, 96}), 4);
    check(run(mask, false, {}, std::nullopt),
          [values = values_of(mask)](std::size_t user, std::size_t head, auto, std::size_t key) {
              // The scale multiplies the mask too.
              return values[(user * 4 + head) * 96 + key] / 8.0;
          });
    const auto skipped =
        values_of(run(std::nullopt, true, {5, static_cast<std::uint32_t>(-1), 40}, std::nullopt));
    expect(skipped[4 * kWidth] == 0 && skipped[0] != 0, "a skipped user");
    expect_refused([&] { run(std::nullopt, true, {1, 2}, std::nullopt); }, "cur_pos must have");
    expect_refused([&] { run(std::nullopt, true, {1, 2, 96}, std::nullopt); }, "cur_pos must be");
    expect_refused([&] { run(mask, true, positions, std::nullopt); }, "Must not have attn_mask");
}

void test_paged_decode() {
    const PagedCache cache;
    const Tensor q = draw_bf16(Shape({1, 2, 4, kWidth}), 1);
    const std::vector<std::size_t> positions{70, 40};
    const Tensor tensor = make_tensor(Shape({2}), {70, 40}, DataType::INT32, Layout::ROW_MAJOR);
    const Reference reference{2, 4, 2, 1, 96};
    expect_close(values_of(ttnn::transformer::paged_scaled_dot_product_attention_decode(
                     q, cache.k, cache.v, cache.table, true, std::nullopt, tensor)),
                 reference(values_of(q), cache.rows_of(cache.k), cache.rows_of(cache.v),
                           [&](std::size_t user, auto, auto, std::size_t key) {
                               return key <= positions[user] ? 0.0 : kHidden;
                           }),
                 kApproximate);
    const Tensor far = make_tensor(Shape({2}), {70, 64}, DataType::INT32, Layout::ROW_MAJOR);
    expect_refused(
        [&] {
            ttnn::transformer::paged_scaled_dot_product_attention_decode(
                q, cache.k, cache.v, cache.table, true, std::nullopt, far);
        },
        "Page 2 of user 1 is not assigned");
}

void test_refusals() {
    const auto attend = [](const Shape& q, const Shape& k, const Shape& v, bool causal,
                           DataType dtype = DataType::BFLOAT16) {
        ttnn::transformer::scaled_dot_product_attention(
            draw_tensor(q, dtype), draw_tensor(k, dtype), draw_tensor(v, dtype), std::nullopt,
            causal);
    };
    const Shape shape({1, 8, 64, 64});
    expect_refused([&] { attend(shape, shape, shape, true, DataType::FLOAT32); }, "FLOAT32");
    expect_refused([&] { attend(shape, Shape({1, 3, 64, 64}), Shape({1, 3, 64, 64}), true); },
                   "divisible by K num_heads");
    expect_refused([&] { attend(shape, Shape({1, 8, 32, 64}), Shape({1, 8, 32, 64}), true); },
                   "same sequence length");
    expect_refused([&] { attend(shape, shape, Shape({1, 4, 64, 64}), true); },
                   "num_heads must match");
    const Shape narrow({1, 8, 64, 50});
    expect_refused([&] { attend(narrow, narrow, narrow, true); }, "head_dim");
}

void test_sums_of_weights() {
    const Tensor q = draw_bf16(Shape({1, 1, 32, kWidth}), 1);
    const Tensor k = draw_bf16(Shape({1, 1, 64, kWidth}), 2);
    const Tensor v =
        make_tensor(Shape({1, 1, 64, kWidth}), std::vector<float>(std::size_t{64} * kWidth, 1.0F),
                    DataType::BFLOAT16);
    const auto error = [&](const std::optional<ttnn::DeviceComputeKernelConfig>& config) {
        const auto found = values_of(ttnn::transformer::scaled_dot_product_attention(
            q, k, v, std::nullopt, false, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
            config));
        float largest = 0;
        for (const float value : found) {
            largest = std::max(largest, std::abs(value - 1.0F));
        }
        return largest;
    };
    const ttnn::DeviceComputeKernelConfig exact{.math_fidelity = tt::tt_metal::MathFidelity::HiFi4,
                                                .math_approx_mode = false,
                                                .fp32_dest_acc_en = true};
    expect(error(exact) <= 0.008F, "two steps of Newton's iteration");
    expect(error(std::nullopt) > 0.008F && error(std::nullopt) < 0.05F, "one step by default");
}

}  // namespace

int main() {
    test_sums_of_weights();
    test_prefill();
    test_cross();
    test_chunked();
    test_decode();
    test_paged_decode();
    test_refusals();
}
