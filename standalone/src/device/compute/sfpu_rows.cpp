#include "device/compute/sfpu_rows.hpp"

#include <array>
#include <stdexcept>

namespace ttcodegen::device::compute {

namespace {

constexpr std::size_t kOperations = [] {
    std::size_t count = 0;
#define TTCODEGEN_SFPU_OPERATION(name) ++count;
#include "ttcodegen/device/sfpu_operations.inc"
#undef TTCODEGEN_SFPU_OPERATION
    return count;
}();

using RowIndex = std::array<const SfpuRow*, kOperations>;

RowIndex make_index() {
    RowIndex index{};
    for (const auto rows : {sfpu_unary_rows(), sfpu_binary_rows(), sfpu_integer_rows(),
                            sfpu_tile_rows(), sfpu_welford_rows()}) {
        for (const SfpuRow& row : rows) {
            index[static_cast<std::size_t>(row.operation)] = &row;
        }
    }
    return index;
}

}  // namespace

const SfpuRow& sfpu_row(SfpuOperation operation) {
    static const RowIndex index = make_index();
    const SfpuRow* row = index.at(static_cast<std::size_t>(operation));
    if (row == nullptr) {
        throw std::logic_error("an operation of the vector engine has no row");
    }
    return *row;
}

}  // namespace ttcodegen::device::compute
