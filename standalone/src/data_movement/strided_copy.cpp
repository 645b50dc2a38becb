#include "data_movement/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "core/conversion.hpp"
#include "core/parallel.hpp"

namespace ttcodegen::cpu {

namespace {

// Minimum elements per thread.
constexpr std::size_t kGrain = std::size_t{1} << 14;
// Edge of the square blocks of a transposition, so that both sides stay in the cache.
constexpr std::size_t kBlock = 64;

struct Loop {
    std::size_t size;
    std::ptrdiff_t source;
    std::ptrdiff_t target;
};
using Loops = ttsl::SmallVector<Loop>;

/// Merges contiguous dimensions of the loops and removes those of size 1.
Loops merged_loops(const StridedSource& source, const StridedTarget& target, const Extents& sizes) {
    Loops loops;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Loop loop{sizes[i], source.strides[i], target.strides[i]};
        if (loop.size == 1) {
            continue;
        }
        const auto size = static_cast<std::ptrdiff_t>(loop.size);
        if (!loops.empty() && loops.back().source == loop.source * size &&
            loops.back().target == loop.target * size) {
            loops.back() = {loops.back().size * loop.size, loop.source, loop.target};
        } else {
            loops.push_back(loop);
        }
    }
    if (loops.empty()) {
        loops.push_back({1, 1, 1});
    }
    return loops;
}

template <typename Element>
void copy_run(const Element* source, Element* target, const Loop& loop) {
    if (loop.source == 1 && loop.target == 1) {
        std::memcpy(target, source, loop.size * sizeof(Element));
    } else if (loop.source == 0 && loop.target == 1) {
        std::fill_n(target, loop.size, *source);
    } else {
        for (std::size_t i = 0; i < loop.size; ++i) {
            const auto step = static_cast<std::ptrdiff_t>(i);
            target[step * loop.target] = source[step * loop.source];
        }
    }
}

/// Transposes: the source is contiguous along `column`, the target usually along `row`.
///
/// Each block goes through a buffer: source rows a power of two apart would otherwise evict each
/// other from the cache before their next element is read.
template <typename Element>
void copy_block(const Element* source, Element* target, const Loop& column, const Loop& row) {
    Element block[kBlock][kBlock];
    for (std::size_t i = 0; i < column.size; i += kBlock) {
        const std::size_t height = std::min(column.size - i, kBlock);
        for (std::size_t j = 0; j < row.size; j += kBlock) {
            const std::size_t width = std::min(row.size - j, kBlock);
            const auto across = static_cast<std::ptrdiff_t>(j);
            const auto down = static_cast<std::ptrdiff_t>(i);
            const Element* from = source + across * row.source + down;
            for (std::size_t b = 0; b < width; ++b) {
                std::memcpy(block[b], from + static_cast<std::ptrdiff_t>(b) * row.source,
                            height * sizeof(Element));
            }
            Element* to = target + across * row.target + down * column.target;
            for (std::size_t a = 0; a < height; ++a) {
                Element* line = to + static_cast<std::ptrdiff_t>(a) * column.target;
                if (width == kBlock && row.target == 1) {
                    for (std::size_t b = 0; b < kBlock; ++b) {
                        line[b] = block[b][a];
                    }
                    continue;
                }
                for (std::size_t b = 0; b < width; ++b) {
                    line[static_cast<std::ptrdiff_t>(b) * row.target] = block[b][a];
                }
            }
        }
    }
}

/// Calls `body(source, target)` for every combination of `outer` indices.
template <typename Element, typename Body>
void for_each_outer(const Element* source, Element* target, const Loops& outer, std::size_t work,
                    const Body& body) {
    std::size_t count = 1;
    for (const Loop& loop : outer) {
        count *= loop.size;
    }
    const std::size_t grain = std::max<std::size_t>(1, kGrain / std::max<std::size_t>(work, 1));
    parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t flat = begin; flat < end; ++flat) {
            std::size_t rest = flat;
            std::ptrdiff_t from = 0;
            std::ptrdiff_t to = 0;
            for (std::size_t i = outer.size(); i-- > 0;) {
                const auto index = static_cast<std::ptrdiff_t>(rest % outer[i].size);
                rest /= outer[i].size;
                from += index * outer[i].source;
                to += index * outer[i].target;
            }
            body(source + from, target + to);
        }
    });
}

/// Splits a long loop, so that several threads can share it.
void split(Loops& loops, std::size_t index, std::size_t piece) {
    const Loop loop = loops[index];
    if (loop.size >= 2 * piece && loop.size % piece == 0) {
        const auto step = static_cast<std::ptrdiff_t>(piece);
        loops[index].size = piece;
        loops.insert(loops.begin(),
                     Loop{loop.size / piece, loop.source * step, loop.target * step});
    }
}

template <typename Element>
void copy(const Element* source, Element* target, Loops loops) {
    const auto transposed = loops.back().source == 1
                                ? loops.end()
                                : std::find_if(loops.begin(), loops.end(), [](const Loop& loop) {
                                      return loop.source == 1 && loop.size > 1;
                                  });
    if (transposed != loops.end()) {
        const auto position = static_cast<std::size_t>(transposed - loops.begin());
        const std::size_t before = loops.size();
        split(loops, position, 4 * kBlock);
        const Loop column = loops[position + loops.size() - before];
        const Loop row = loops.back();
        loops.erase(loops.begin() + (position + loops.size() - before));
        loops.pop_back();
        for_each_outer(
            source, target, loops, column.size * row.size,
            [&](const Element* from, Element* to) { copy_block(from, to, column, row); });
        return;
    }
    split(loops, loops.size() - 1, kGrain);
    const Loop row = loops.back();
    loops.pop_back();
    for_each_outer(source, target, loops, row.size,
                   [&](const Element* from, Element* to) { copy_run(from, to, row); });
}

}  // namespace

void strided_copy(const StridedSource& source, const StridedTarget& target, const Extents& sizes,
                  std::size_t element_size) {
    if (std::find(sizes.begin(), sizes.end(), std::size_t{0}) != sizes.end()) {
        return;
    }
    const Loops loops = merged_loops(source, target, sizes);
    const auto copy_as = [&]<typename Element>(Element) {
        copy(reinterpret_cast<const Element*>(source.first),
             reinterpret_cast<Element*>(target.first), loops);
    };
    switch (element_size) {
        case 1:
            return copy_as(std::uint8_t{});
        case 2:
            return copy_as(std::uint16_t{});
        default:
            return copy_as(std::uint32_t{});
    }
}

Strides signed_strides(const Shape& shape) {
    const auto strides = element_strides(shape);
    return Strides(strides.begin(), strides.end());
}

Extents extents(const Shape& shape) { return Extents(shape.begin(), shape.end()); }

void fill_elements(std::byte* first, std::size_t count, DataType dtype, float value) {
    with_element(dtype, [&](auto element) {
        using Element = decltype(element);
        auto* typed = reinterpret_cast<typename Element::Stored*>(first);
        std::fill_n(typed, count, Element::store(value));
    });
}

}  // namespace ttcodegen::cpu
