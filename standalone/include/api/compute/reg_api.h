#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

ALWI void tile_regs_acquire(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).acquire(processor, here);
}

ALWI void tile_regs_commit(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).commit(processor, here);
}

ALWI void tile_regs_wait(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).wait(processor, here);
}

ALWI void tile_regs_release(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).release(processor, here);
}

[[deprecated("Use tile_regs_acquire() and tile_regs_wait() instead")]]
ALWI void acquire_dst(TTCODEGEN_HERE) {
    tile_regs_acquire(here);
    tile_regs_wait(here);
}

[[deprecated("Use tile_regs_commit() and tile_regs_release() instead")]]
ALWI void release_dst(TTCODEGEN_HERE) {
    tile_regs_commit(here);
    tile_regs_release(here);
}

}  // namespace ckernel
