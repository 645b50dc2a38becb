#include "support/pages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace support {

namespace {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;

constexpr std::size_t tile_side = 32;
constexpr std::size_t face_side = 16;
constexpr std::size_t tile_elements = tile_side * tile_side;
/// The elements of a block float block, which share an exponent: a row of a face.
constexpr std::size_t block_elements = face_side;
constexpr std::size_t tile_exponents = tile_elements / block_elements;

/// The bits of a block float element, sign included; 0 for other data types.
std::size_t block_bits(DataType data_type) {
    switch (data_type) {
        case DataType::BFLOAT8_B:
            return 8;
        case DataType::BFLOAT4_B:
            return 4;
        default:
            return 0;
    }
}

std::size_t tile_bytes(DataType data_type) {
    const std::size_t bits = block_bits(data_type);
    return bits != 0 ? tile_exponents + tile_elements * bits / 8
                     : tile_elements * element_size(element_type(data_type));
}

/// The matrices of a tensor.
struct Matrices {
    std::size_t count = 1;
    std::size_t rows = 1;
    std::size_t columns = 1;

    explicit Matrices(std::span<const std::uint64_t> shape) {
        const std::size_t rank = shape.size();
        columns = rank > 0 ? shape[rank - 1] : 1;
        rows = rank > 1 ? shape[rank - 2] : 1;
        count = rank > 2 ? element_count(shape.first(rank - 2)) : 1;
    }

    std::size_t tile_rows() const { return (rows + tile_side - 1) / tile_side; }
    std::size_t tile_columns() const { return (columns + tile_side - 1) / tile_side; }
};

/// Calls `copy(element, tile, offset, count)` for each row of each face that holds elements:
/// `count` elements, starting at `element` of the array, are at `offset` of the tile.
template <typename Copy>
void for_each_face_row(const Matrices& matrices, Copy copy) {
    const std::size_t tiles_across = matrices.tile_columns();
    for (std::size_t matrix = 0; matrix < matrices.count; ++matrix) {
        for (std::size_t row = 0; row < matrices.rows; ++row) {
            const std::size_t first_tile =
                (matrix * matrices.tile_rows() + row / tile_side) * tiles_across;
            const std::size_t element = (matrix * matrices.rows + row) * matrices.columns;
            const std::size_t row_in_tile = row % tile_side;
            const std::size_t row_offset = row_in_tile / face_side * 2 * face_side * face_side +
                                           row_in_tile % face_side * face_side;
            for (std::size_t column = 0; column < matrices.columns; column += face_side) {
                const std::size_t face = column % tile_side / face_side;
                copy(element + column, first_tile + column / tile_side,
                     row_offset + face * face_side * face_side,
                     std::min(face_side, matrices.columns - column));
            }
        }
    }
}

/// The magnitude of a float in `bits` bits below a shared exponent, rounded to nearest, ties to
/// even. Bits that are shifted out by the alignment to the shared exponent do not affect the
/// rounding, as in tt-metal's packing.
std::uint32_t block_mantissa(std::uint32_t value, std::uint32_t shared_exponent, std::size_t bits) {
    const std::uint32_t exponent = value >> 23 & 0xff;
    if (exponent == 0) {
        return 0;
    }
    const std::uint32_t shift = std::min<std::uint32_t>(shared_exponent - exponent, 31);
    const std::uint32_t mantissa = ((value & 0x7fffff) | 0x800000) >> shift;
    const std::size_t dropped = 24 - bits;
    const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
    const std::uint32_t lost = mantissa & (2 * half - 1);
    std::uint32_t kept = mantissa >> dropped;
    if (lost > half || (lost == half && (kept & 1) != 0)) {
        ++kept;
    }
    // A mantissa that would round up into the next exponent saturates.
    return std::min(kept, (std::uint32_t{1} << bits) - 1);
}

/// Packs a tile of floats as block floats: all shared exponents, then the elements.
void pack_tile(const float* elements, std::size_t bits, std::byte* tile) {
    std::byte* const packed = tile + tile_exponents;
    for (std::size_t block = 0; block < tile_exponents; ++block) {
        std::array<std::uint32_t, block_elements> values{};
        std::memcpy(values.data(), elements + block * block_elements, sizeof values);
        std::uint32_t shared = 0;
        for (const std::uint32_t value : values) {
            shared = std::max(shared, value >> 23 & 0xff);
        }
        tile[block] = static_cast<std::byte>(shared);
        for (std::size_t i = 0; i < block_elements; ++i) {
            const std::uint32_t mantissa = block_mantissa(values[i], shared, bits - 1);
            const std::uint32_t sign = mantissa != 0 ? values[i] >> 31 : 0;
            const std::uint32_t element = sign << (bits - 1) | mantissa;
            const std::size_t bit = (block * block_elements + i) * bits;
            packed[bit / 8] |= static_cast<std::byte>(element << bit % 8);
        }
    }
}

void unpack_tile(const std::byte* tile, std::size_t bits, float* elements) {
    const std::byte* const packed = tile + tile_exponents;
    const std::uint32_t largest = (std::uint32_t{1} << (bits - 1)) - 1;
    for (std::size_t i = 0; i < tile_elements; ++i) {
        const auto exponent = static_cast<int>(tile[i / block_elements]);
        const std::uint32_t element =
            static_cast<std::uint32_t>(packed[i * bits / 8]) >> i * bits % 8;
        const std::uint32_t mantissa = element & largest;
        // NaN: the exponent of infinity and mantissa bits below the leading one.
        const bool is_nan = exponent == 0xff && mantissa > (largest + 1) / 2;
        const float magnitude = is_nan ? std::numeric_limits<float>::quiet_NaN()
                                       : std::ldexp(static_cast<float>(mantissa),
                                                    exponent - (127 + static_cast<int>(bits) - 2));
        elements[i] = (element >> (bits - 1) & 1) != 0 ? -magnitude : magnitude;
    }
}

/// Tilizes elements that need no packing.
std::vector<std::byte> tilized(const Matrices& matrices, const std::byte* elements,
                               std::size_t size) {
    const std::size_t tiles = matrices.count * matrices.tile_rows() * matrices.tile_columns();
    std::vector<std::byte> result(tiles * tile_elements * size);
    for_each_face_row(matrices, [&](std::size_t element, std::size_t tile, std::size_t offset,
                                    std::size_t count) {
        std::memcpy(result.data() + (tile * tile_elements + offset) * size,
                    elements + element * size, count * size);
    });
    return result;
}

void untilize(const Matrices& matrices, const std::byte* tiles, std::size_t size,
              std::byte* elements) {
    for_each_face_row(matrices, [&](std::size_t element, std::size_t tile, std::size_t offset,
                                    std::size_t count) {
        std::memcpy(elements + element * size, tiles + (tile * tile_elements + offset) * size,
                    count * size);
    });
}

std::vector<std::byte> packed(std::span<const std::byte> tiles, std::size_t bits) {
    const std::size_t count = tiles.size() / (tile_elements * sizeof(float));
    const std::size_t size = tile_exponents + tile_elements * bits / 8;
    std::vector<std::byte> result(count * size);
    std::array<float, tile_elements> elements{};
    for (std::size_t tile = 0; tile < count; ++tile) {
        std::memcpy(elements.data(), tiles.data() + tile * sizeof elements, sizeof elements);
        pack_tile(elements.data(), bits, result.data() + tile * size);
    }
    return result;
}

std::vector<std::byte> unpacked(std::span<const std::byte> tiles, std::size_t bits) {
    const std::size_t size = tile_exponents + tile_elements * bits / 8;
    const std::size_t count = tiles.size() / size;
    std::vector<std::byte> result(count * tile_elements * sizeof(float));
    std::array<float, tile_elements> elements{};
    for (std::size_t tile = 0; tile < count; ++tile) {
        unpack_tile(tiles.data() + tile * size, bits, elements.data());
        std::memcpy(result.data() + tile * sizeof elements, elements.data(), sizeof elements);
    }
    return result;
}

}  // namespace

Pages pages_of(std::span<const std::uint64_t> shape, DataType data_type, Layout layout) {
    const Matrices matrices(shape);
    std::uint64_t count = matrices.count * matrices.rows;
    std::uint64_t size = 0;
    if (layout == Layout::TILE) {
        count = matrices.count * matrices.tile_rows() * matrices.tile_columns();
        size = tile_bytes(data_type);
    } else if (block_bits(data_type) != 0) {
        throw std::runtime_error("block floats exist in tiles only");
    } else {
        const std::uint64_t row = matrices.columns * element_size(element_type(data_type));
        size =
            (std::max<std::uint64_t>(row, 1) + row_alignment - 1) / row_alignment * row_alignment;
    }
    constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
    if (count > largest || size > largest) {
        throw std::runtime_error("a tensor of the shape " + shape_text(shape) + " is too large");
    }
    return {static_cast<std::uint32_t>(std::max<std::uint64_t>(count, 1)),
            static_cast<std::uint32_t>(size)};
}

std::vector<std::byte> to_pages(const ArrayView& array, DataType data_type, Layout layout) {
    const ElementType type = element_type(data_type);
    const Pages pages = pages_of(array.shape, data_type, layout);
    // Weights are large: elements are copied only if they need conversion.
    const std::vector<std::byte> converted_elements =
        array.type == type ? std::vector<std::byte>{} : converted(array, type);
    const auto* const elements =
        array.type == type ? static_cast<const std::byte*>(array.data) : converted_elements.data();
    const Matrices matrices(array.shape);
    std::vector<std::byte> result;
    if (layout == Layout::TILE) {
        result = tilized(matrices, elements, element_size(type));
        if (const std::size_t bits = block_bits(data_type); bits != 0) {
            result = packed(result, bits);
        }
    }
    result.resize(static_cast<std::size_t>(pages.count) * pages.size);
    if (layout != Layout::TILE) {
        const std::size_t row = matrices.columns * element_size(type);
        for (std::size_t i = 0; row != 0 && i < matrices.count * matrices.rows; ++i) {
            std::memcpy(result.data() + i * pages.size, elements + i * row, row);
        }
    }
    return result;
}

Array from_pages(std::span<const std::byte> pages, std::span<const std::uint64_t> shape,
                 DataType data_type, Layout layout) {
    const ElementType type = element_type(data_type);
    const std::size_t size = element_size(type);
    Array array{type, {shape.begin(), shape.end()}, {}};
    array.bytes.resize(element_count(shape) * size);
    if (array.bytes.empty()) {
        return array;
    }
    const Matrices matrices(shape);
    if (layout == Layout::TILE) {
        const std::size_t bits = block_bits(data_type);
        const std::vector<std::byte> floats =
            bits != 0 ? unpacked(pages, bits) : std::vector<std::byte>{};
        untilize(matrices, bits != 0 ? floats.data() : pages.data(), size, array.bytes.data());
        return array;
    }
    const std::size_t row = matrices.columns * size;
    const std::size_t page = pages_of(shape, data_type, layout).size;
    for (std::size_t i = 0; i < matrices.count * matrices.rows; ++i) {
        std::memcpy(array.bytes.data() + i * row, pages.data() + i * page, row);
    }
    return array;
}

}  // namespace support
