// Shapes, specs, storage, data types and memory of tensors.

#include <cstring>
#include <limits>

#include "compute_testing.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/copy/copy.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/full/full.hpp"
#include "ttnn/operations/rand/rand.hpp"

using namespace compute_testing;
using tt::tt_metal::PageConfig;
using tt::tt_metal::StorageType;
using tt::tt_metal::TensorLayout;
using tt::tt_metal::TensorSpec;

namespace {

TensorSpec spec(const Shape& shape, DataType dtype, Layout layout) {
    return TensorSpec(shape, TensorLayout(dtype, PageConfig(layout), MemoryConfig{}));
}

void shapes_take_negative_indices_and_pad_to_tiles() {
    const Shape shape({30, 50});
    expect(shape[-1] == 50 && shape[0] == 30 && shape[-4] == 1, "leading ones in front");
    expect_refused([&] { return shape[2]; }, "out of bounds");
    expect(shape.rank() == 2 && shape.volume() == 1500, "rank and volume");
    expect(spec(shape, DataType::BFLOAT16, Layout::TILE).padded_shape() == Shape({32, 64}), "2D");
    expect(spec(Shape({50}), DataType::BFLOAT16, Layout::TILE).padded_shape() == Shape({32, 64}),
           "1D");
    const Shape scalar(ttsl::SmallVector<std::uint32_t>{});
    expect(scalar.rank() == 0 && scalar.volume() == 1, "rank 0 has one element");
    expect(spec(scalar, DataType::BFLOAT16, Layout::TILE).padded_shape() == Shape({32, 32}), "0D");
    expect(spec(shape, DataType::BFLOAT16, Layout::ROW_MAJOR).padded_shape() == shape, "rows");
}

void small_vectors_grow_beyond_their_storage() {
    ttsl::SmallVector<int> numbers;
    for (int i = 0; i < 20; ++i) {
        numbers.push_back(i);
    }
    const ttsl::SmallVector<int> copy = numbers;
    numbers.insert(numbers.begin() + 3, numbers[19]);
    numbers.erase(numbers.begin());
    expect(numbers.size() == 20 && numbers[2] == 19 && numbers[3] == 3, "insert and erase");
    const ttsl::SmallVector<int> moved = std::move(numbers);
    expect(moved.size() == 20 && copy[19] == 19 && copy.size() == 20, "copies are their own");
}

void core_ranges_do_not_overlap() {
    using tt::tt_metal::CoreRange;
    using tt::tt_metal::CoreRangeSet;
    const CoreRangeSet cores(std::vector<CoreRange>{{{0, 0}, {7, 0}}, {{0, 1}, {1, 1}}});
    expect(cores.num_cores() == 10 && cores.contains(CoreRange({1, 1}, {1, 1})), "cores");
    expect(cores.bounding_box() == CoreRange({0, 0}, {7, 1}), "bounding box");
    expect_refused([] { CoreRangeSet(std::vector<CoreRange>{{{0, 0}, {3, 3}}, {{3, 3}, {4, 4}}}); },
                   "overlap");
    expect_refused([] { CoreRange({2, 0}, {1, 0}); }, "Invalid core range");
}

void vectors_go_in_and_come_out() {
    const std::vector<std::int32_t> numbers{1, -2, 3, 4, 5, 1 << 30};
    const Tensor tensor = Tensor::from_vector(
        numbers, spec(Shape({2, 3}), DataType::INT32, Layout::ROW_MAJOR), device());
    expect(tensor.to_vector<std::int32_t>() == numbers, "i32");
    expect(tensor.storage_type() == StorageType::DEVICE && tensor.device() == device(), "device");
    expect_refused([&] { return tensor.to_vector<float>(); }, "no elements of");
    expect_refused(
        [&] {
            return Tensor::from_vector(numbers,
                                       spec(Shape({2, 2}), DataType::INT32, Layout::ROW_MAJOR));
        },
        "different from shape volume");
    expect_refused([&] { return Tensor::from_vector(std::vector<float>(6), tensor.tensor_spec()); },
                   "cannot fill a tensor");
}

/// Reference: round to nearest, ties to even, NaN stays NaN.
void bfloat16_rounds_to_nearest_even() {
    const std::vector<float> values{1.0F + 1.0F / 256, 1.0F + 3.0F / 256, 1.0F + 1.01F / 256,
                                    -0.0F};
    const std::vector<float> expected{1.0F, 1.0F + 4.0F / 256, 1.0F + 2.0F / 256, -0.0F};
    expect_close(values_of(make_tensor(Shape({4}), values, DataType::BFLOAT16)), expected, 0.0);
    expect(std::isnan(ttcodegen::cpu::round_to_bf16(std::nanf(""))), "NaN");
    expect(std::isinf(ttcodegen::cpu::round_to_bf16(3.4e38F)), "overflow becomes infinite");
    expect(static_cast<float>(bfloat16(values[1])) == expected[1], "class bfloat16");
}

/// Sixteen neighbours share the largest exponent: much smaller ones lose bits.
void block_floats_share_an_exponent() {
    std::vector<float> values(32, 0.0F);
    values[0] = 1.0F;
    values[1] = 1.0F / 64;
    values[2] = 1.0F / 256;   // below half a unit of the group, which is 1/64
    values[3] = 3.0F / 128;   // a tie: rounds to the even 2/64
    values[17] = 1.0F / 256;  // another group
    const std::vector<float> found =
        values_of(make_tensor(Shape({1, 32}), values, DataType::BFLOAT8_B));
    expect(found[0] == 1.0F && found[1] == 1.0F / 64, "bf8 keeps what fits");
    expect(found[2] == 0.0F && found[3] == 2.0F / 64, "bf8 rounds to nearest even");
    expect(found[17] == 1.0F / 256, "each group has its own exponent");
    const std::vector<float> coarse =
        values_of(make_tensor(Shape({1, 32}), values, DataType::BFLOAT4_B));
    expect(coarse[0] == 1.0F && coarse[1] == 0.0F, "bf4 has three bits");
    values.assign(32, 0.99F);
    expect(values_of(make_tensor(Shape({1, 32}), values, DataType::BFLOAT4_B))[0] == 0.875F,
           "a mantissa that rounds up saturates");
}

void typecast_truncates_wraps_and_rounds() {
    const Tensor floats = make_tensor(Shape({5}), {1.9F, -1.9F, 3.0e9F, -5.0F, 70000.0F});
    expect(ttnn::typecast(floats, DataType::INT32).to_vector<std::int32_t>() ==
               std::vector<std::int32_t>{1, -1, std::numeric_limits<std::int32_t>::lowest(), -5,
                                         70000},
           "f32 to i32");
    expect(ttnn::typecast(floats, DataType::UINT16).to_vector<std::uint16_t>() ==
               std::vector<std::uint16_t>{2, 0, 65535, 0, 65535},
           "f32 to u16 rounds and saturates");
    const Tensor integers = ttnn::typecast(floats, DataType::INT32);
    expect(ttnn::typecast(integers, DataType::UINT16).to_vector<std::uint16_t>() ==
               std::vector<std::uint16_t>{1, 0, 0, 0, 65535},
           "i32 to u16 saturates");
    expect(ttnn::typecast(integers, DataType::UINT8).to_vector<std::uint8_t>()[4] == 70000 % 256,
           "i32 to u8 wraps");
    const Tensor rows = make_tensor(Shape({4}), {1, 2, 3, 4}, DataType::FLOAT32, Layout::ROW_MAJOR);
    expect_refused([&] { return ttnn::typecast(rows, DataType::BFLOAT8_B); }, "row-major");
    expect(ttnn::to_dtype(ttnn::from_device(rows), DataType::BFLOAT8_B).layout() == Layout::TILE,
           "block floats on the host are tiles");
    expect_refused([&] { return ttnn::to_dtype(rows, DataType::BFLOAT16); }, "HostStorage");
}

void bitcast_keeps_the_bits() {
    const Tensor floats = make_tensor(Shape({3}), {1.0F, -2.0F, 0.5F});
    const Tensor integers = ttnn::bitcast(floats, DataType::UINT32);
    expect(integers.to_vector<std::uint32_t>() ==
               std::vector<std::uint32_t>{0x3F800000, 0xC0000000, 0x3F000000},
           "the bits of floats");
    expect(
        ttnn::bitcast(integers, DataType::FLOAT32).to_vector<float>() == floats.to_vector<float>(),
        "there and back");
    expect_refused([&] { return ttnn::bitcast(floats, DataType::BFLOAT16); }, "cannot be read");
    expect_refused([&] { return ttnn::bitcast(floats, DataType::BFLOAT8_B); }, "cannot be read");
}

void layouts_change_as_the_release_does() {
    const Tensor tiles = draw_tensor(Shape({30, 50}), DataType::BFLOAT8_B);
    expect(ttnn::to_layout(tiles, Layout::ROW_MAJOR).dtype() == DataType::BFLOAT16, "bf8 to bf16");
    const Tensor rows = draw_tensor(Shape({30, 50}), DataType::FLOAT32, Layout::ROW_MAJOR);
    const Tensor cast = ttnn::to_layout(rows, Layout::TILE, DataType::BFLOAT16);
    expect(cast.dtype() == DataType::BFLOAT16 && cast.padded_shape() == Shape({32, 64}), "cast");
    expect(
        ttnn::to_layout(cast, Layout::ROW_MAJOR, DataType::FLOAT32).dtype() == DataType::BFLOAT16,
        "the data type counts only towards tiles");
    expect_refused(
        [] {
            return ttnn::to_layout(draw_tensor(Shape({4}), DataType::UINT8, Layout::ROW_MAJOR),
                                   Layout::TILE);
        },
        "Can only tilize");
}

void memory_configurations_move_data() {
    const Tensor tensor = draw_tensor(Shape({64, 64}), DataType::BFLOAT16);
    const Tensor moved = ttnn::to_memory_config(tensor, ttnn::L1_MEMORY_CONFIG);
    expect(moved.memory_config().is_l1() && values_of(moved) == values_of(tensor), "to L1");
    expect(&ttcodegen::cpu::buffer_of(ttnn::to_memory_config(moved, ttnn::L1_MEMORY_CONFIG)) ==
               &ttcodegen::cpu::buffer_of(moved),
           "the same configuration is the same tensor");
    expect_refused(
        [] {
            return ttnn::to_memory_config(draw_tensor(Shape({64, 64}), DataType::UINT16),
                                          ttnn::L1_MEMORY_CONFIG);
        },
        "ttnn.copy only supports");
    expect_refused(
        [&] { return ttnn::to_memory_config(ttnn::from_device(tensor), ttnn::L1_MEMORY_CONFIG); },
        "Device storage");
}

/// Deallocation through a view frees the original; after the reverse the view dangles.
void deallocation_reaches_whoever_shares_the_memory() {
    Tensor tensor = draw_tensor(Shape({64, 64}));
    Tensor view = ttnn::reshape(tensor, Shape({2, 32, 64}));
    ttnn::deallocate(tensor, false);
    expect(tensor.is_allocated() && view.is_allocated(), "without force shared memory stays");
    ttnn::deallocate(view);
    expect(!tensor.is_allocated() && !view.is_allocated(), "the view frees its original");
    expect_refused([&] { return ttnn::clone(tensor, {}, {}, {}); }, "not allocated");
    ttnn::deallocate(tensor);

    Tensor original = draw_tensor(Shape({64, 64}));
    const Tensor other = ttnn::reshape(original, Shape({2, 32, 64}));
    ttnn::deallocate(original);
    expect(other.is_allocated(), "as in the release");
    expect_refused([&] { return ttnn::clone(other, {}, {}, {}); }, "its memory is gone");

    Tensor host = ttnn::from_device(draw_tensor(Shape({4})));
    ttnn::deallocate(host);
    expect(host.is_allocated(), "the host's memory is not freed");
    expect(host.dtype() == DataType::FLOAT32 && original.logical_shape() == Shape({64, 64}),
           "what describes a tensor outlives its memory");
}

void creation_fills_what_it_makes() {
    const Tensor ones = ttnn::ones(Shape({2, 3}));
    expect(ones.dtype() == DataType::BFLOAT16 && ones.layout() == Layout::ROW_MAJOR &&
               ones.storage_type() == StorageType::HOST,
           "bf16 rows on the host by default");
    const Tensor full = ttnn::full(Shape({2, 3}), 16777217, DataType::INT32, Layout::TILE,
                                   *device(), ttnn::DRAM_MEMORY_CONFIG);
    expect(full.to_vector<std::int32_t>()[5] == 16777217, "integers need no float");
    expect(ttnn::full_like(full, 1.5F, DataType::FLOAT32).dtype() == DataType::INT32,
           "the release forgets a float type next to tiles");
    expect(
        ttnn::zeros_like(ttnn::from_device(full), DataType::FLOAT32).dtype() == DataType::FLOAT32,
        "but not on the host");
    expect_close(values_of(ttnn::arange(1, 8, 3, DataType::FLOAT32)), {1, 4, 7}, 0.0);
    expect_close(values_of(ttnn::arange(3, -1, -2, DataType::INT32)), {3, 1}, 0.0);
    expect_refused([] { return ttnn::arange(0, 4, 0); }, "Step must be nonzero");
    expect_refused([] { return ttnn::arange(4, 0, 1); }, "Step direction");
    expect_refused([] { return ttnn::zeros(Shape({4}), DataType::BFLOAT8_B, Layout::ROW_MAJOR); },
                   "Block float types");
    expect(ttnn::moreh_full(ttsl::SmallVector<std::uint32_t>{4}, 2.0F, device()).layout() ==
               Layout::TILE,
           "moreh_full makes tiles");
    expect(ttnn::empty(Shape({3}), DataType::UINT8, Layout::TILE, device(), {}).is_allocated(),
           "empty");
    const Tensor drawn = ttnn::rand(Shape({1000}), *device(), DataType::FLOAT32, Layout::TILE,
                                    ttnn::DRAM_MEMORY_CONFIG, 2.0F, 3.0F, 7);
    for (const float value : values_of(drawn)) {
        expect(value >= 2.0F && value <= 3.0F, "within the range");
    }
    expect_refused(
        [] {
            return ttnn::rand(Shape({4}), *device(), DataType::BFLOAT16, Layout::TILE,
                              ttnn::DRAM_MEMORY_CONFIG, 1.0F, 1.0F);
        },
        "from must be lower");
}

void copies_have_their_own_memory() {
    const Tensor tensor = draw_tensor(Shape({32, 32}), DataType::BFLOAT16);
    const Tensor clone = ttnn::clone(tensor, DataType::FLOAT32, std::nullopt, std::nullopt);
    expect(clone.dtype() == DataType::FLOAT32 && values_of(clone) == values_of(tensor), "clone");
    const Tensor target = ttnn::zeros(Shape({32, 32}), DataType::BFLOAT16, Layout::TILE, *device());
    ttnn::copy(tensor, target);
    expect(values_of(target) == values_of(tensor), "copy");
    expect_refused(
        [&] { return ttnn::assign(tensor, ttnn::zeros(Shape({4}), {}, Layout::TILE, *device())); },
        "cannot be copied");
}

void devices_close() {
    const auto mesh = ttnn::open_mesh_device(0);
    expect(mesh->num_devices() == 1 && mesh->compute_with_storage_grid_size().x == 8, "n150");
    ttnn::close_device(*mesh);
    expect_refused([&] { return ttnn::ones(Shape({4}), {}, {}, *mesh); }, "closed");
    expect_refused([] { return ttnn::open_mesh_device(1); }, "does not exist");
}

}  // namespace

int main() {
    shapes_take_negative_indices_and_pad_to_tiles();
    small_vectors_grow_beyond_their_storage();
    core_ranges_do_not_overlap();
    vectors_go_in_and_come_out();
    bfloat16_rounds_to_nearest_even();
    block_floats_share_an_exponent();
    typecast_truncates_wraps_and_rounds();
    bitcast_keeps_the_bits();
    layouts_change_as_the_release_does();
    memory_configurations_move_data();
    deallocation_reaches_whoever_shares_the_memory();
    creation_fills_what_it_makes();
    copies_have_their_own_memory();
    devices_close();
}
