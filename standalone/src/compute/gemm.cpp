#include "compute/gemm.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

#include "core/parallel.hpp"
#include "tt-metalium/math.hpp"

namespace ttcodegen::cpu {
namespace {

// The register tile: rows x (vectors * lanes) accumulators, with registers left for one row of the
// panel and a broadcast.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kTileVectors = 2, kTileRows = 12;
#elif defined(__AVX2__)
constexpr int kLanes = 8, kTileVectors = 2, kTileRows = 6;
#elif defined(__aarch64__)
constexpr int kLanes = 4, kTileVectors = 3, kTileRows = 8;
#else
constexpr int kLanes = 4, kTileVectors = 2, kTileRows = 4;
#endif
constexpr std::int64_t kTileColumns = kTileVectors * kLanes;
constexpr std::size_t kAlignment = 64;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedVector =
    float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// Depths per instruction: bfloat16 elements are multiplied in pairs.
template <typename Element>
constexpr std::int64_t kPairing = std::is_same_v<Element, float> ? 1 : 2;

// Cache blocks: a left block (rows x depth) and its share of a panel stay in the second-level
// cache.
constexpr std::int64_t kBlockRows = tt::round_up(128, kTileRows);
constexpr std::int64_t kBlockColumns = 384 / kTileColumns * kTileColumns;
template <typename Element>
constexpr std::int64_t kBlockDepth = 1024 / static_cast<std::int64_t>(sizeof(Element));
// Depth of a tile, after which sums of 16 bits are rounded; blocks begin at a tile.
constexpr std::int64_t kTileDepth = 32;
static_assert(kBlockDepth<float> % kTileDepth == 0);
// Padding that keeps the rows of a left block in different cache sets.
constexpr std::int64_t kRowPadding = 16;

inline void multiply_add(Vector (&sums)[kTileVectors], const float* left, const float* panel) {
    const Vector factor = *left - Vector{};  // a broadcast: subtracting zero changes no bit
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
        sums[v] += factor * reinterpret_cast<const Vector*>(panel)[v];
    }
}

#if defined(__AVX512BF16__)
inline void multiply_add(Vector (&sums)[kTileVectors], const Bfloat16Bits* left,
                         const Bfloat16Bits* panel) {
    int pair;
    std::memcpy(&pair, left, sizeof pair);
    const __m512bh factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
        const auto lane_pairs =
            reinterpret_cast<__m512bh>(_mm512_load_si512(panel + v * 2 * kLanes));
        sums[v] = _mm512_dpbf16_ps(sums[v], factor, lane_pairs);
    }
}
#endif

/// Rounds to bfloat16, ties to even. The summands are bfloat16 or products of such numbers: no NaN
/// among them has a mantissa that the carry could overflow.
inline Vector rounded_to_bfloat16(Vector sums) {
    const Words bits = reinterpret_cast<Words>(sums);
    return reinterpret_cast<Vector>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

/// block[Rows x kTileColumns] (+)= left[Rows x depth] * panel[depth x kTileColumns].
template <typename Element, int Rows, Sums Kept>
void multiply_tile(const Element* left, std::int64_t left_stride, const Element* panel,
                   std::int64_t depth, float* block, std::int64_t block_stride, bool accumulate) {
    constexpr std::int64_t step = kPairing<Element>;
    Vector sums[Rows][kTileVectors] = {};
    if (accumulate) {
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
            for (int v = 0; v < kTileVectors; ++v) {
                sums[r][v] =
                    *reinterpret_cast<UnalignedVector*>(block + r * block_stride + v * kLanes);
            }
        }
    }
    const std::int64_t tile = Kept == Sums::Float32 ? depth : kTileDepth;
    for (std::int64_t begin = 0; begin < depth; begin += tile) {
        const std::int64_t end = std::min(depth, begin + tile);
        for (std::int64_t k = begin; k < end; k += step, panel += step * kTileColumns) {
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r) {
                multiply_add(sums[r], left + r * left_stride + k, panel);
            }
        }
        if constexpr (Kept == Sums::Bfloat16) {
#pragma GCC unroll 12
            for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
                for (int v = 0; v < kTileVectors; ++v) {
                    sums[r][v] = rounded_to_bfloat16(sums[r][v]);
                }
            }
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) {
            *reinterpret_cast<UnalignedVector*>(block + r * block_stride + v * kLanes) = sums[r][v];
        }
    }
}

template <typename Element>
using TileKernel = void (*)(const Element*, std::int64_t, const Element*, std::int64_t, float*,
                            std::int64_t, bool);

template <typename Element, Sums Kept, std::size_t... Index>
constexpr std::array<TileKernel<Element>, sizeof...(Index)> tile_kernels(
    std::index_sequence<Index...>) {
    return {&multiply_tile<Element, static_cast<int>(Index) + 1, Kept>...};
}

/// Kernels indexed by number of rows - 1, so that partial blocks cost no extra work.
template <typename Element, Sums Kept>
constexpr auto kTileKernels = tile_kernels<Element, Kept>(std::make_index_sequence<kTileRows>{});

/// Per-thread memory for blocks, kept between matmuls.
template <typename Element>
struct Workspace {
    std::vector<Element> left;
    std::vector<float> block;

    static Workspace& of_thread() {
        thread_local Workspace workspace;
        return workspace;
    }
};

/// Calls `function(index)` for [0, count) on the thread pool, in ranges large enough to pay for
/// waking a thread: `work` is the number of elementary operations of one index.
template <typename Function>
void for_each_index(std::int64_t count, std::int64_t work, const Function& function) {
    constexpr std::int64_t worthwhile = 1 << 17;
    const std::int64_t grain =
        std::max<std::int64_t>(1, worthwhile / std::max<std::int64_t>(1, work));
    parallel_for(static_cast<std::size_t>(count), static_cast<std::size_t>(grain),
                 [&](std::size_t begin, std::size_t end) {
                     for (std::size_t index = begin; index < end; ++index) {
                         function(static_cast<std::int64_t>(index));
                     }
                 });
}

/// Partition of a matmul into independent blocks.
struct Blocking {
    std::int64_t rows;
    std::int64_t panels;
    std::int64_t depth;

    template <typename Element>
    static Blocking of(std::int64_t batches, std::int64_t rows, const PackedMatrix<Element>& right,
                       std::int64_t threads) {
        Blocking blocking{std::min(rows, kBlockRows),
                          std::min(right.panels(), kBlockColumns / kTileColumns),
                          kBlockDepth<Element>};
        if (rows <= kTileRows) {
            blocking.depth =
                right.padded_depth();  // one pass over each panel: memory is read in order
        }
        // With too few blocks for the threads, split columns first (cheap), then rows.
        const auto blocks = [&] {
            return batches * tt::div_up(rows, blocking.rows) *
                   tt::div_up(right.panels(), blocking.panels);
        };
        while (blocks() < 3 * threads && blocking.panels > 1) {
            blocking.panels = (blocking.panels + 1) / 2;
        }
        while (blocks() < 2 * threads && blocking.rows > 2 * kTileRows) {
            blocking.rows = tt::round_up(blocking.rows / 2, kTileRows);
        }
        return blocking;
    }
};

template <typename Element>
void multiply_block(std::int64_t batch, std::int64_t row, std::int64_t rows,
                    std::int64_t first_panel, std::int64_t panels, std::int64_t block_depth,
                    const LeftOperand<Element>& left, const PackedMatrix<Element>& right, Sums sums,
                    const BlockConsumer& consume) {
    const auto& kernels = sums == Sums::Float32 ? kTileKernels<Element, Sums::Float32>
                                                : kTileKernels<Element, Sums::Bfloat16>;
    Workspace<Element>& workspace = Workspace<Element>::of_thread();
    const std::int64_t left_stride = std::min(block_depth, right.padded_depth()) + kRowPadding;
    const std::int64_t block_stride = panels * kTileColumns;
    workspace.left.resize(static_cast<std::size_t>(rows * left_stride));
    workspace.block.resize(static_cast<std::size_t>(rows * block_stride));
    const std::int64_t right_batch = right.batches() == 1 ? 0 : batch;
    for (std::int64_t depth = 0; depth < right.padded_depth(); depth += block_depth) {
        const std::int64_t present = std::min(block_depth, right.depth() - depth);
        const std::int64_t padded = std::min(block_depth, right.padded_depth() - depth);
        left(batch, row, rows, depth, present, workspace.left.data(), left_stride);
        if (padded > present) {
            for (std::int64_t r = 0; r < rows; ++r) {
                workspace.left[static_cast<std::size_t>(r * left_stride + present)] = Element{};
            }
        }
        for (std::int64_t p = 0; p < panels; ++p) {
            const Element* panel = right.panel(right_batch, first_panel + p, depth);
            for (std::int64_t r = 0; r < rows; r += kTileRows) {
                const auto kernel = kernels[static_cast<std::size_t>(
                    std::min<std::int64_t>(kTileRows, rows - r) - 1)];
                kernel(workspace.left.data() + r * left_stride, left_stride, panel, padded,
                       workspace.block.data() + r * block_stride + p * kTileColumns, block_stride,
                       depth > 0);
            }
        }
    }
    if (right.padded_depth() == 0) {
        std::fill(workspace.block.begin(), workspace.block.end(), 0.0F);
    }
    const std::int64_t column = first_panel * kTileColumns;
    consume(batch, row, rows, column, std::min(block_stride, right.columns() - column),
            workspace.block.data(), block_stride);
}

template <typename Element>
std::shared_ptr<Element[]> allocate_panels(std::size_t count) {
    constexpr std::align_val_t alignment{kAlignment};
    return std::shared_ptr<Element[]>(
        static_cast<Element*>(::operator new[](count * sizeof(Element), alignment)),
        [](Element* data) { ::operator delete[](data, alignment); });
}

}  // namespace

template <typename Element>
PackedMatrix<Element>::PackedMatrix(std::int64_t batches, std::int64_t depth, std::int64_t columns,
                                    std::shared_ptr<Element[]> data)
    : batches_(batches),
      depth_(depth),
      columns_(columns),
      padded_depth_(tt::round_up(depth, kPairing<Element>)),
      panels_(tt::div_up(columns, kTileColumns)),
      panel_size_(padded_depth_ * kTileColumns),
      batch_size_(panels_ * panel_size_),
      data_(std::move(data)) {}

template <typename Element>
PackedMatrix<Element>::PackedMatrix(std::int64_t batches, std::int64_t depth, std::int64_t columns)
    : PackedMatrix(batches, depth, columns, nullptr) {
    data_ = allocate_panels<Element>(size());
}

template <typename Element>
PackedMatrix<Element> PackedMatrix<Element>::leading(std::int64_t depth,
                                                     std::int64_t columns) const {
    PackedMatrix part = *this;
    part.depth_ = depth;
    part.padded_depth_ = tt::round_up(depth, kPairing<Element>);
    part.columns_ = columns;
    part.panels_ = tt::div_up(columns, kTileColumns);
    return part;
}

template <typename Element>
Element* PackedMatrix<Element>::panel_begin(std::int64_t batch, std::int64_t panel) {
    return data_.get() + batch * batch_size_ + panel * panel_size_;
}

template <typename Element>
const Element* PackedMatrix<Element>::panel(std::int64_t batch, std::int64_t panel,
                                            std::int64_t depth) const {
    return data_.get() + batch * batch_size_ + panel * panel_size_ + depth * kTileColumns;
}

template <typename Element>
template <typename Source>
void PackedMatrix<Element>::pack_panel(std::int64_t batch, std::int64_t panel, const Source* data,
                                       MatrixStrides strides, MantissaCut cut) {
    constexpr std::int64_t pairing = kPairing<Element>;
    // Depths packed at a time: the transposition stays in the first-level cache.
    constexpr std::int64_t chunk = 16;
    const std::int64_t first = panel * kTileColumns;
    const std::int64_t present = std::min(kTileColumns, columns_ - first);
    const Source* source = data + batch * strides.batch + first * strides.column;
    Element* target = panel_begin(batch, panel);
    const auto place = [&](std::int64_t k, std::int64_t n) -> Element& {
        return target[(k / pairing * kTileColumns + n) * pairing + k % pairing];
    };
    if (present < kTileColumns || padded_depth_ > depth_) {
        std::fill_n(target, panel_size_, Element{});
    }
    if (strides.column == 1) {
        for (std::int64_t k = 0; k < depth_; ++k) {
            for (std::int64_t n = 0; n < present; ++n) {
                place(k, n) = cut(convert_element<Element>(source[k * strides.row + n]));
            }
        }
        return;
    }
    for (std::int64_t begin = 0; begin < depth_; begin += chunk) {
        const std::int64_t end = std::min(depth_, begin + chunk);
        for (std::int64_t n = 0; n < present; ++n) {
            for (std::int64_t k = begin; k < end; ++k) {
                place(k, n) =
                    cut(convert_element<Element>(source[n * strides.column + k * strides.row]));
            }
        }
    }
}

template <typename Element>
template <typename Source>
PackedMatrix<Element> PackedMatrix<Element>::pack(std::int64_t batches, std::int64_t depth,
                                                  std::int64_t columns, const Source* data,
                                                  MatrixStrides strides, MantissaCut cut) {
    PackedMatrix packed(batches, depth, columns);
    for_each_index(batches * packed.panels_, depth * kTileColumns, [&](std::int64_t index) {
        packed.pack_panel(index / packed.panels_, index % packed.panels_, data, strides, cut);
    });
    return packed;
}

template <typename Element>
template <typename Source>
PackedMatrix<Element> PackedMatrix<Element>::pack_part(std::int64_t depth, std::int64_t first,
                                                       std::int64_t columns, const Source* data,
                                                       MatrixStrides strides, MantissaCut cut) {
    thread_local std::shared_ptr<Element[]> memory;
    thread_local std::size_t available = 0;
    PackedMatrix part(1, depth, columns, nullptr);
    if (part.size() > available) {
        memory = allocate_panels<Element>(part.size());
        available = part.size();
    }
    part.data_ = memory;
    for (std::int64_t panel = 0; panel < part.panels_; ++panel) {
        part.pack_panel(0, panel, data + first * strides.column, strides, cut);
    }
    return part;
}

template <typename Element, typename Source>
LeftOperand<Element> left_operand(const Source* data, MatrixStrides strides, MantissaCut cut) {
    return [data, strides, cut](std::int64_t batch, std::int64_t row, std::int64_t rows,
                                std::int64_t depth, std::int64_t depths, Element* out,
                                std::int64_t stride) {
        const Source* source =
            data + batch * strides.batch + row * strides.row + depth * strides.column;
        if (strides.column == 1) {
            for (std::int64_t r = 0; r < rows; ++r) {
                std::transform(
                    source + r * strides.row, source + r * strides.row + depths, out + r * stride,
                    [cut](Source element) { return cut(convert_element<Element>(element)); });
            }
            return;
        }
        for (std::int64_t k = 0; k < depths; ++k) {
            for (std::int64_t r = 0; r < rows; ++r) {
                out[r * stride + k] =
                    cut(convert_element<Element>(source[r * strides.row + k * strides.column]));
            }
        }
    };
}

template <typename Element>
void multiply(std::int64_t batches, std::int64_t rows, const LeftOperand<Element>& left,
              const PackedMatrix<Element>& right, Sums sums, const BlockConsumer& consume) {
    if (batches == 0 || rows == 0 || right.columns() == 0) {
        return;
    }
    const Blocking blocking =
        Blocking::of(batches, rows, right, static_cast<std::int64_t>(thread_count()));
    const std::int64_t row_blocks = tt::div_up(rows, blocking.rows);
    const std::int64_t panel_blocks = tt::div_up(right.panels(), blocking.panels);
    const std::int64_t work =
        blocking.rows * blocking.panels * right.padded_depth();  // in steps of one vector
    for_each_index(batches * row_blocks * panel_blocks, work, [&](std::int64_t index) {
        const std::int64_t batch = index / (row_blocks * panel_blocks);
        // Neighbouring indices share panels, usually the larger operand.
        const std::int64_t row = index % row_blocks * blocking.rows;
        const std::int64_t panel = index / row_blocks % panel_blocks * blocking.panels;
        multiply_block(batch, row, std::min(blocking.rows, rows - row), panel,
                       std::min(blocking.panels, right.panels() - panel), blocking.depth, left,
                       right, sums, consume);
    });
}

template <typename Element, typename Source>
void multiply_unpacked(std::int64_t batches, std::int64_t rows, const LeftOperand<Element>& left,
                       std::int64_t right_batches, std::int64_t depth, std::int64_t columns,
                       const Source* right, MatrixStrides strides, MantissaCut cut, Sums sums,
                       const BlockConsumer& consume) {
    const std::int64_t parts = tt::div_up(columns, kBlockColumns);
    if (batches * parts < 2 * static_cast<std::int64_t>(thread_count())) {
        multiply(batches, rows, left,
                 PackedMatrix<Element>::pack(right_batches, depth, columns, right, strides, cut),
                 sums, consume);
        return;
    }
    const std::int64_t work = rows * kBlockColumns / kLanes * depth;
    for_each_index(batches * parts, work, [&](std::int64_t index) {
        const std::int64_t batch = index / parts;
        const std::int64_t first = index % parts * kBlockColumns;
        const auto part = PackedMatrix<Element>::pack_part(
            depth, first, std::min(kBlockColumns, columns - first),
            right + (right_batches == 1 ? 0 : batch) * strides.batch, strides, cut);
        multiply_serially<Element>(
            batch, rows, left, part, sums,
            [&](std::int64_t block_batch, std::int64_t row, std::int64_t block_rows,
                std::int64_t column, std::int64_t block_columns, float* block,
                std::int64_t stride) {
                consume(block_batch, row, block_rows, first + column, block_columns, block, stride);
            });
    });
}

template <typename Element>
void multiply_serially(std::int64_t batch, std::int64_t rows, const LeftOperand<Element>& left,
                       const PackedMatrix<Element>& right, Sums sums,
                       const BlockConsumer& consume) {
    const Blocking blocking = Blocking::of(1, rows, right, 0);
    for (std::int64_t panel = 0; panel < right.panels(); panel += blocking.panels) {
        for (std::int64_t row = 0; row < rows; row += blocking.rows) {
            multiply_block(batch, row, std::min(blocking.rows, rows - row), panel,
                           std::min(blocking.panels, right.panels() - panel), blocking.depth, left,
                           right, sums, consume);
        }
    }
}

#define TTCODEGEN_INSTANTIATE_GEMM_OF(Element, Source)                                        \
    template PackedMatrix<Element> PackedMatrix<Element>::pack(                               \
        std::int64_t, std::int64_t, std::int64_t, const Source*, MatrixStrides, MantissaCut); \
    template void multiply_unpacked(std::int64_t, std::int64_t, const LeftOperand<Element>&,  \
                                    std::int64_t, std::int64_t, std::int64_t, const Source*,  \
                                    MatrixStrides, MantissaCut, Sums, const BlockConsumer&);  \
    template LeftOperand<Element> left_operand(const Source*, MatrixStrides, MantissaCut);

#define TTCODEGEN_INSTANTIATE_GEMM(Element)                                                  \
    template class PackedMatrix<Element>;                                                    \
    TTCODEGEN_INSTANTIATE_GEMM_OF(Element, float)                                            \
    TTCODEGEN_INSTANTIATE_GEMM_OF(Element, Bfloat16Bits)                                     \
    template void multiply(std::int64_t, std::int64_t, const LeftOperand<Element>&,          \
                           const PackedMatrix<Element>&, Sums, const BlockConsumer&);        \
    template void multiply_serially(std::int64_t, std::int64_t, const LeftOperand<Element>&, \
                                    const PackedMatrix<Element>&, Sums, const BlockConsumer&);

TTCODEGEN_INSTANTIATE_GEMM(float)
#if defined(__AVX512BF16__)
TTCODEGEN_INSTANTIATE_GEMM(Bfloat16Bits)
#endif
#undef TTCODEGEN_INSTANTIATE_GEMM
#undef TTCODEGEN_INSTANTIATE_GEMM_OF

}  // namespace ttcodegen::cpu
