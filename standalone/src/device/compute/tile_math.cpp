#include "device/compute/tile_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace ttcodegen::device::compute {

namespace {

/// A row of a face. Registers of 32 bytes hold it in two halves.
using Row = float __attribute__((vector_size(64)));
using Index = std::size_t;

/// Rows of the result that are computed together: as many as fit the registers.
#ifdef __AVX512F__
constexpr Index kRowsAtOnce = 8;
#else
constexpr Index kRowsAtOnce = 4;
#endif

constexpr Index face_start(Index face_row, Index face_column) {
    return (face_row * 2 + face_column) * kFaceElements;
}

/// By reference: without AVX-512, returning a vector of this width is outside the calling
/// convention.
void load_row(Row& row, const float* from) { std::memcpy(&row, from, sizeof(Row)); }

/// Sets elements that are not finite to zero: the difference of such a number and itself is NaN.
void keep_finite(Row& row) { row = row - row == 0.0F ? row : Row{}; }

/// Computes kRowsAtOnce rows of a face of the result, over both faces of `a` in the row and of `b`
/// in the column. `dropped` products are subtracted where they are finite.
template <bool dropped>
void multiply_rows(const float* a, const float* b, float* output) {
    Row sums[kRowsAtOnce];
    for (Index row = 0; row < kRowsAtOnce; ++row) {
        load_row(sums[row], output + row * kFaceWidth);
    }
    for (Index face = 0; face < 2; ++face) {
        const float* a_face = a + face_start(0, face);
        const float* b_face = b + face_start(face, 0);
        for (Index inner = 0; inner < kFaceWidth; ++inner) {
            Row b_row;
            load_row(b_row, b_face + inner * kFaceWidth);
            for (Index row = 0; row < kRowsAtOnce; ++row) {
                const float factor = a_face[row * kFaceWidth + inner];
                if constexpr (dropped) {
                    Row product = factor * b_row;
                    keep_finite(product);
                    sums[row] -= product;
                } else {
                    sums[row] += factor * b_row;
                }
            }
        }
    }
    for (Index row = 0; row < kRowsAtOnce; ++row) {
        std::memcpy(output + row * kFaceWidth, &sums[row], sizeof(Row));
    }
}

template <bool dropped>
void multiply_tiles(const float* a, const float* b, float* output) {
    for (Index face_row = 0; face_row < 2; ++face_row) {
        for (Index face_column = 0; face_column < 2; ++face_column) {
            for (Index row = 0; row < kFaceWidth; row += kRowsAtOnce) {
                multiply_rows<dropped>(
                    a + face_start(face_row, 0) + row * kFaceWidth, b + face_start(0, face_column),
                    output + face_start(face_row, face_column) + row * kFaceWidth);
            }
        }
    }
}

constexpr std::uint32_t kept_mask(int bits) { return 0xffffffffU << (23 - bits); }

float cut_mantissa(float value, int bits) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & kept_mask(bits));
}

using Line = std::array<float, kFaceWidth>;

float first_value(Pool pool) {
    return pool == Pool::Maximum ? -std::numeric_limits<float>::infinity() : 0.0F;
}

float pooled(Pool pool, float sum, float value) {
    if (pool == Pool::Maximum) {
        return value > sum ? value : sum;
    }
    return sum + value;
}

/// Pools each row of a face into `line`.
void pool_rows(Pool pool, const float* face, const float* scaler, Line& line) {
    for (Index row = 0; row < kFaceWidth; ++row) {
        for (Index column = 0; column < kFaceWidth; ++column) {
            line[row] = pooled(pool, line[row], face[row * kFaceWidth + column] * scaler[column]);
        }
    }
}

/// Pools each column of a face into `line`.
void pool_columns(Pool pool, const float* face, const float* scaler, Line& line) {
    for (Index row = 0; row < kFaceWidth; ++row) {
        for (Index column = 0; column < kFaceWidth; ++column) {
            line[column] =
                pooled(pool, line[column], face[row * kFaceWidth + column] * scaler[row]);
        }
    }
}

Line line_of(Pool pool, bool continues, const float* from) {
    Line line;
    line.fill(first_value(pool));
    if (continues) {
        std::copy_n(from, kFaceWidth, line.begin());
    }
    return line;
}

void reduce_rows(Pool pool, const float* input, const float* scaler, ReductionStart start,
                 float* output) {
    for (Index face_row = 0; face_row < 2; ++face_row) {
        float* left = output + face_start(face_row, 0);
        Line line = line_of(pool, start.continues, left);
        for (Index face_column = 0; face_column < 2; ++face_column) {
            const Index face = face_start(face_row, face_column);
            pool_rows(pool, input + face, scaler + face, line);
        }
        // The totals of all tiles up to this one go through a source register to their columns.
        for (float& total : line) {
            total = cut_mantissa(total, start.row_bits);
        }
        std::copy(line.begin(), line.end(), left);
        for (Index row = 1; row < kFaceWidth; ++row) {
            left[row * kFaceWidth] = line[row];
        }
    }
}

void reduce_columns(Pool pool, const float* input, const float* scaler, bool continues,
                    float* output) {
    for (Index face_column = 0; face_column < 2; ++face_column) {
        float* upper = output + face_start(0, face_column);
        Line line = line_of(pool, continues, upper);
        for (Index face_row = 0; face_row < 2; ++face_row) {
            const Index face = face_start(face_row, face_column);
            pool_columns(pool, input + face, scaler + face, line);
        }
        std::copy(line.begin(), line.end(), upper);
    }
}

void reduce_all(Pool pool, const float* input, const float* scaler, ReductionStart start,
                float* output) {
    Line columns;
    columns.fill(first_value(pool));
    for (Index face = 0; face < kFaces; ++face) {
        pool_columns(pool, input + face * kFaceElements, scaler + face * kFaceElements, columns);
    }
    // The column sums return to a source register before they are reduced themselves.
    const float* last = scaler + (kFaces - 1) * kFaceElements;
    float result = start.continues ? output[0] : first_value(pool);
    for (Index column = 0; column < kFaceWidth; ++column) {
        const float value = cut_mantissa(columns[column], start.source_bits);
        result = pooled(pool, result, value * last[column]);
    }
    output[0] = result;
}

}  // namespace

void multiply_matrices(const float* a, const float* b, float* output) {
    multiply_tiles<false>(a, b, output);
}

void subtract_dropped_product(const float* a, const float* b, float* output) {
    multiply_tiles<true>(a, b, output);
}

void transpose_tile(const std::uint32_t* input, bool faces, bool within_faces,
                    std::uint32_t* output) {
    for (Index face = 0; face < kFaces; ++face) {
        const Index source = faces && (face == 1 || face == 2) ? 3 - face : face;
        const std::uint32_t* from = input + source * kFaceElements;
        std::uint32_t* to = output + face * kFaceElements;
        if (!within_faces) {
            std::copy_n(from, kFaceElements, to);
            continue;
        }
        for (Index row = 0; row < kFaceWidth; ++row) {
            for (Index column = 0; column < kFaceWidth; ++column) {
                to[row * kFaceWidth + column] = from[column * kFaceWidth + row];
            }
        }
    }
}

void broadcast_tile(const std::uint32_t* input, Broadcast broadcast, std::uint32_t row,
                    std::uint32_t* output) {
    switch (broadcast) {
        case Broadcast::None:
            std::copy_n(input, kTileElements, output);
            return;
        case Broadcast::Scalar:
            std::fill_n(output, kTileElements, input[0]);
            return;
        case Broadcast::Column:
            for (Index line = 0; line < kTileWidth; ++line) {
                const std::uint32_t value = input[tile_offset(line, 0)];
                std::fill_n(output + tile_offset(line, 0), kFaceWidth, value);
                std::fill_n(output + tile_offset(line, kFaceWidth), kFaceWidth, value);
            }
            return;
        case Broadcast::Row:
            for (Index line = 0; line < kTileWidth; ++line) {
                for (const Index column : {Index{0}, kFaceWidth}) {
                    std::copy_n(input + tile_offset(row, column), kFaceWidth,
                                output + tile_offset(line, column));
                }
            }
            return;
    }
}

void cut_mantissas(const float* input, int bits, float* output) {
    for (Index i = 0; i < kTileElements; ++i) {
        output[i] = cut_mantissa(input[i], bits);
    }
}

void mantissa_rests(const float* input, int bits, float* output) {
    for (Index i = 0; i < kTileElements; ++i) {
        // Infinities and NaN have no rest; the first product has their result.
        output[i] = std::isfinite(input[i]) ? input[i] - cut_mantissa(input[i], bits) : 0.0F;
    }
}

void reduce_tile(Pool pool, Reduction reduction, const float* input, const float* scaler,
                 ReductionStart start, float* output) {
    if (!start.continues) {
        std::fill_n(output, kTileElements, 0.0F);
    }
    switch (reduction) {
        case Reduction::Row:
            reduce_rows(pool, input, scaler, start, output);
            return;
        case Reduction::Column:
            reduce_columns(pool, input, scaler, start.continues, output);
            return;
        case Reduction::Scalar:
            reduce_all(pool, input, scaler, start, output);
            return;
    }
}

}  // namespace ttcodegen::device::compute
