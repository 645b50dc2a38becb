#pragma once

// Common parts of the tests of ttnn's conditions: placed tensors, and calls that violate one
// condition. Each refusal's message is printed: conditions.tsv names them.

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "compute_testing.hpp"

namespace conditions_testing {

using namespace compute_testing;
using tt::tt_metal::BufferType;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::ShardSpec;
using tt::tt_metal::TensorMemoryLayout;

inline const MemoryConfig kDRAM{};
inline const MemoryConfig kL1(TensorMemoryLayout::INTERLEAVED, BufferType::L1, std::nullopt);

/// The first columns x rows of cores.
inline CoreRangeSet core_rectangle(std::size_t columns, std::size_t rows) {
    return CoreRangeSet(CoreRange({0, 0}, {columns - 1, rows - 1}));
}

/// Shards of height x width on columns x rows of cores.
inline MemoryConfig sharded(TensorMemoryLayout kind, std::uint32_t height, std::uint32_t width,
                            std::size_t columns, std::size_t rows,
                            ShardOrientation orientation = ShardOrientation::ROW_MAJOR,
                            BufferType memory = BufferType::L1) {
    const std::array<std::uint32_t, 2> shape = {height, width};
    return MemoryConfig(kind, memory, ShardSpec(core_rectangle(columns, rows), shape, orientation));
}

inline constexpr auto kHeight = TensorMemoryLayout::HEIGHT_SHARDED;
inline constexpr auto kWidth = TensorMemoryLayout::WIDTH_SHARDED;
inline constexpr auto kBlock = TensorMemoryLayout::BLOCK_SHARDED;

/// A tensor of ones.
inline Tensor placed(const Shape& shape, const MemoryConfig& memory = kDRAM,
                     DataType dtype = DataType::BFLOAT16, Layout layout = Layout::TILE) {
    using namespace ttcodegen::cpu;
    Tensor tensor = allocate(make_spec(shape, dtype, layout, memory), device());
    if (tt::tt_metal::is_floating_point(dtype)) {
        const std::vector<float> ones(shape.volume(), 1.0F);
        store_floats(ones.data(), ones.size(), dtype, buffer_of(tensor).data());
        finish_block_float(tensor);
    } else {
        std::fill_n(buffer_of(tensor).data(), buffer_of(tensor).bytes(), std::byte{0});
    }
    return tensor;
}

/// Row-major zeros of 32-bit integers.
inline Tensor numbers(const Shape& shape, const MemoryConfig& memory = kDRAM) {
    return placed(shape, memory, DataType::INT32, Layout::ROW_MAJOR);
}

/// Expects `call` to be refused with a message that begins with `text` after its kind.
template <typename Call>
void refused(const std::string& text, const Call& call,
             std::source_location where = std::source_location::current()) {
    try {
        (void)call();
    } catch (const std::exception& error) {
        std::string message = error.what();
        std::replace(message.begin(), message.end(), '\n', ' ');
        expect(message.find(text) != std::string::npos, "refused with another message: " + message,
               where);
        std::printf("%s\n", message.c_str());
        return;
    }
    fail("accepted what should be refused with: " + text, where);
}

/// Expects `call` to be accepted: the violation is then the change in the refused call.
template <typename Call>
void accepted(const Call& call, std::source_location where = std::source_location::current()) {
    try {
        (void)call();
    } catch (const std::exception& error) {
        fail(std::string("refused: ") + error.what(), where);
    }
}

/// A row of a table: the change of a valid call, and the begin of the refusal's message.
template <typename Call>
struct Row {
    const char* message;
    std::function<void(Call&)> change;
};

/// Expects `right` to be accepted, and to be refused after each of the changes.
template <typename Call>
void check_rows(const Call& right, std::initializer_list<Row<Call>> rows) {
    accepted(right);
    for (const Row<Call>& row : rows) {
        Call call = right;
        row.change(call);
        refused(row.message, call);
    }
}

}  // namespace conditions_testing
