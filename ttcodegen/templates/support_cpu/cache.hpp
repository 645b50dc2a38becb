#pragma once

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Rows of a tile: the device writes whole tiles.
constexpr std::size_t tile_rows = 32;
/// A position or page with this value is skipped.
constexpr double skipped = -1;

struct FillCache {
    std::size_t batch_offset = 0;
};

/// Copies rows of keys or values, of `size` elements each, to the first rows of a cache and zeroes
/// the rest of the last tile.
inline void fill_rows(const double* source, std::size_t rows, double* cache, std::size_t capacity,
                      std::size_t size) {
    const std::size_t cleared = (rows + tile_rows - 1) / tile_rows * tile_rows;
    std::copy_n(source, rows * size, cache);
    std::fill(cache + rows * size, cache + std::min(cleared, capacity) * size, 0.0);
}

/// Writes entries (users, heads, positions, size) to the first positions of a cache.
inline void fill_cache(Tensor& cache, const Tensor& entry, const FillCache& attributes) {
    const std::size_t rows = entry.shape[2];
    const std::size_t capacity = cache.shape[2];
    const std::size_t size = cache.shape[3];
    const std::size_t heads = cache.shape[1];
    for (std::size_t i = 0; i < entry.shape[0] * heads; ++i) {
        const std::size_t place = attributes.batch_offset * heads + i;
        fill_rows(entry.elements.data() + i * rows * size, rows,
                  cache.elements.data() + place * capacity * size, capacity, size);
    }
    cache = rounded({cache.element, cache.shape}, std::move(cache.elements));
}

struct UpdateCache {
    std::size_t batch_offset = 0;
};

/// Writes an entry (1, heads, users, size) to a position of a cache (users, heads, positions,
/// size): one position for all users, or one for each.
inline void update_cache(Tensor& cache, const Tensor& entry, const Tensor& positions,
                         const UpdateCache& attributes) {
    const std::size_t heads = entry.shape[1];
    const std::size_t users = entry.shape[2];
    const std::size_t size = entry.shape[3];
    for (std::size_t user = 0; user < users; ++user) {
        const std::size_t index = positions.elements.size() > 1 ? user : 0;
        const auto position = static_cast<std::size_t>(positions.elements[index]);
        if (position >= cache.shape[2]) {
            continue;
        }
        for (std::size_t head = 0; head < heads; ++head) {
            const std::size_t row = (attributes.batch_offset + user) * cache.shape[1] + head;
            for (std::size_t i = 0; i < size; ++i) {
                cache.elements[(row * cache.shape[2] + position) * size + i] =
                    rounded(entry.elements[(head * users + user) * size + i], cache.element);
            }
        }
    }
}

/// Writes entries (users, heads, positions, size) to the pages (pages, heads, positions of a page,
/// size) that the page table assigns to each user; `users` are indices of its rows.
inline void paged_fill_cache(Tensor& cache, const Tensor& entry, const Tensor& table,
                             const Optional& users) {
    const std::size_t heads = entry.shape[1];
    const std::size_t positions = entry.shape[2];
    const std::size_t size = entry.shape[3];
    const std::size_t page_rows = cache.shape[2];
    for (std::size_t i = 0; i < entry.shape[0]; ++i) {
        const auto user = users ? static_cast<std::size_t>(users->elements[i]) : i;
        for (std::size_t first = 0; first < positions; first += page_rows) {
            const double page = table.elements[user * table.shape[1] + first / page_rows];
            if (page == skipped) {
                continue;
            }
            for (std::size_t head = 0; head < heads; ++head) {
                const std::size_t row = static_cast<std::size_t>(page) * cache.shape[1] + head;
                fill_rows(entry.elements.data() + ((i * heads + head) * positions + first) * size,
                          std::min(page_rows, positions - first),
                          cache.elements.data() + row * page_rows * size, page_rows, size);
            }
        }
    }
    cache = rounded({cache.element, cache.shape}, std::move(cache.elements));
}

struct PagedUpdateCache {
    bool share_cache = false;
};

/// Writes an entry (1, users, heads, size) to a position of each user, in the user's own cache or
/// in the page that the page table assigns to that position.
inline void paged_update_cache(Tensor& cache, const Tensor& entry, const Tensor& positions,
                               const Optional& table, const PagedUpdateCache& attributes) {
    const std::size_t heads = cache.shape[1];
    const std::size_t page_rows = cache.shape[2];
    const std::size_t size = cache.shape[3];
    for (std::size_t user = 0; user < positions.elements.size(); ++user) {
        if (positions.elements[user] == skipped) {
            continue;
        }
        auto position = static_cast<std::size_t>(positions.elements[user]);
        std::size_t page = attributes.share_cache ? 0 : user;
        if (table) {
            const std::size_t place = user * table->shape[1] + position / page_rows;
            page = static_cast<std::size_t>(table->elements[place]);
            position %= page_rows;
        }
        for (std::size_t head = 0; head < heads; ++head) {
            const std::size_t row = (page * heads + head) * page_rows + position;
            for (std::size_t i = 0; i < size; ++i) {
                cache.elements[row * size + i] = rounded(
                    entry.elements[(user * entry.shape[2] + head) * size + i], cache.element);
            }
        }
    }
}

}  // namespace support::cpu
