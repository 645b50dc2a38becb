#include "ttnn/operations/kv_cache/kv_cache.hpp"

#include <cstring>

#include "compute/sharding.hpp"
#include "compute_testing.hpp"
#include "ttnn/operations/experimental/paged_cache/paged_cache.hpp"

using namespace compute_testing;

namespace {

constexpr std::size_t kWidth = 64;

/// A drawn tensor (1, users, heads, width) with one user a core.
Tensor draw_sharded(const Shape& shape, DataType dtype, unsigned seed) {
    using namespace ttcodegen::cpu;
    const Tensor values = draw_tensor(shape, dtype, Layout::TILE, seed);
    const Tensor sharded = allocate(
        make_spec(shape, dtype, Layout::TILE,
                  sharded_l1(TensorMemoryLayout::HEIGHT_SHARDED, shape[1] * 32, shape[3], 32)),
        device());
    std::memcpy(buffer_of(sharded).data(), buffer_of(values).data(), buffer_of(values).bytes());
    return sharded;
}

void copy_row(std::vector<float>& cache, std::size_t to, const std::vector<float>& input,
              std::size_t from) {
    for (std::size_t i = 0; i < kWidth; ++i) {
        cache[to * kWidth + i] = input[from * kWidth + i];
    }
}

void test_fill() {
    const Tensor cache = draw_tensor(Shape({3, 2, 96, kWidth}), DataType::BFLOAT16);
    const Tensor input =
        draw_tensor(Shape({1, 2, 40, kWidth}), DataType::BFLOAT16, Layout::TILE, 2);
    auto expected = values_of(cache);
    for (std::size_t head = 0; head < 2; ++head) {
        for (std::size_t position = 0; position < 40; ++position) {
            copy_row(expected, (1 * 2 + head) * 96 + position, values_of(input),
                     head * 40 + position);
        }
    }
    const Tensor result = ttnn::fill_cache(cache, input, 1);
    expect_close(values_of(cache), expected, 0);
    expect_close(values_of(result), expected, 0);
    expect_refused([&] { ttnn::fill_cache(cache, input, 3); }, "Batch index (3)");
    expect_refused([&] { ttnn::fill_cache(cache, draw_tensor(Shape({1, 2, 40, kWidth})), 0); },
                   "same dtype");
}

void test_update() {
    const Tensor cache = draw_tensor(Shape({3, 2, 96, kWidth}), DataType::BFLOAT16);
    const Tensor input = draw_tensor(Shape({1, 2, 32, kWidth}), DataType::FLOAT32, Layout::TILE, 2);
    auto expected = values_of(cache);
    for (std::size_t user = 0; user < 3; ++user) {
        for (std::size_t head = 0; head < 2; ++head) {
            copy_row(expected, (user * 2 + head) * 96 + 5, values_of(input), head * 32 + 4 + user);
        }
    }
    ttnn::update_cache(cache, input, 5, 4);
    expect_close(values_of(cache), expected, 0.005);
    expect_refused([&] { ttnn::update_cache(cache, input, 96); }, "outside of a cache");
    expect_refused([&] { ttnn::update_cache(cache, input, 5, 30); }, "must be <= 32");
}

void test_paged_update() {
    const Tensor cache = draw_tensor(Shape({6, 2, 32, kWidth}), DataType::BFLOAT16);
    const Tensor input = draw_sharded(Shape({1, 2, 2, kWidth}), DataType::BFLOAT16, 2);
    const Tensor table =
        make_tensor(Shape({2, 2}), {4, 1, 0, 3}, DataType::INT32, Layout::ROW_MAJOR);
    auto expected = values_of(cache);
    for (std::size_t head = 0; head < 2; ++head) {
        copy_row(expected, (1 * 2 + head) * 32 + 8, values_of(input), head);
    }
    const Tensor positions = make_tensor(Shape({2}), {40, -1}, DataType::INT32, Layout::ROW_MAJOR);
    const auto update = [&](const Tensor& tokens, const std::vector<std::uint32_t>& list,
                            const std::optional<const Tensor>& tensor) {
        ttnn::experimental::paged_update_cache(cache, tokens, list, tensor, std::nullopt, table, 0,
                                               std::nullopt, std::nullopt);
    };
    update(input, {}, positions);
    expect_close(values_of(cache), expected, 0);
    expect_refused([&] { update(input, {1, 2, 3}, std::nullopt); }, "should match batch size (2)");
    expect_refused([&] { update(input, {}, std::nullopt); }, "Not both or neither");
    expect_refused([&] { update(input, {3, 4}, std::nullopt); }, "requires update_idxs tensor");
    const Tensor beyond = make_tensor(Shape({2}), {64, 0}, DataType::INT32, Layout::ROW_MAJOR);
    expect_refused([&] { update(input, {}, beyond); }, "outside of a page table");
    expect_refused(
        [&] { update(draw_tensor(Shape({1, 2, 2, kWidth}), DataType::BFLOAT16), {1, 2}, {}); },
        "sharded");
}

void test_unpaged_update() {
    const Tensor cache = draw_tensor(Shape({2, 2, 32, kWidth}), DataType::BFLOAT8_B);
    const Tensor input = draw_sharded(Shape({1, 2, 2, kWidth}), DataType::FLOAT32, 2);
    auto expected = values_of(cache);
    for (std::size_t user = 0; user < 2; ++user) {
        for (std::size_t head = 0; head < 2; ++head) {
            copy_row(expected, (user * 2 + head) * 32 + 3 + user, values_of(input),
                     user * 2 + head);
        }
    }
    ttnn::experimental::paged_update_cache(cache, input, {3, 4}, std::nullopt, std::nullopt,
                                           std::nullopt, 0, std::nullopt, std::nullopt);
    expect_close(values_of(cache), expected, 0.02);
}

void test_paged_fill() {
    const Tensor cache = draw_tensor(Shape({6, 2, 32, kWidth}), DataType::BFLOAT16);
    const Tensor input =
        draw_tensor(Shape({1, 2, 50, kWidth}), DataType::BFLOAT16, Layout::TILE, 2);
    const Tensor table =
        make_tensor(Shape({2, 2}), {4, 1, 0, 3}, DataType::INT32, Layout::ROW_MAJOR);
    auto expected = values_of(cache);
    for (std::size_t head = 0; head < 2; ++head) {
        for (std::size_t position = 0; position < 50; ++position) {
            const std::size_t page = position < 32 ? 0 : 3;
            copy_row(expected, (page * 2 + head) * 32 + position % 32, values_of(input),
                     head * 50 + position);
        }
    }
    ttnn::experimental::paged_fill_cache(cache, input, table, std::nullopt, 1, std::nullopt,
                                         std::nullopt);
    expect_close(values_of(cache), expected, 0);
    expect_refused(
        [&] {
            ttnn::experimental::paged_fill_cache(cache, input, table, std::nullopt, 2, std::nullopt,
                                                 std::nullopt);
        },
        "user 2 is outside");
}

}  // namespace

int main() {
    test_fill();
    test_update();
    test_paged_update();
    test_unpaged_update();
    test_paged_fill();
}
