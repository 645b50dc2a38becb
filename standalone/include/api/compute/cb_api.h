#pragma once

#include "api/compute/common_globals.h"
#include "api/debug/assert.h"

namespace ckernel {

ALWI void cb_wait_front(std::uint32_t cbid, std::uint32_t ntiles, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_wait_front(processor, cbid, ntiles, here);
}

ALWI void cb_pop_front(std::uint32_t cbid, std::uint32_t ntiles, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->cb_pop_front(processor, cbid, ntiles, here);
}

ALWI void cb_reserve_back(std::uint32_t cbid, std::uint32_t ntiles, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).reserve_back(processor, cbid, ntiles, here);
}

ALWI void cb_push_back(std::uint32_t cbid, std::uint32_t ntiles, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).push_back(processor, cbid, ntiles, here);
}

/// The L1 address of a tile that was waited for.
ALWI std::uint32_t get_tile_address(std::uint32_t cb_id, std::uint32_t tile_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    return compute_of(processor).tile_address(processor, cb_id, tile_index, here);
}

/// A 32-bit word of a tile that was waited for.
ALWI std::uint32_t read_tile_value(std::uint32_t cb_id, std::uint32_t tile_index,
                                   std::uint32_t element_offset, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    return compute_of(processor).tile_word(processor, cb_id, tile_index, element_offset, here);
}

}  // namespace ckernel
