// The destination register that math moves rows in.
#pragma once

#include <cstdint>

#include "api/compute/bcast.h"
#include "api/compute/common.h"

namespace blocks {

/// Addresses a destination register before unary_bcast. Tiles of 32 bits are unpacked to the
/// register that unary_bcast is given, but math repeats their rows or columns in the one that it
/// addressed last (llk_math_eltwise_unary_datacopy.h).
ALWI void address_register(uint32_t dst) {
    MATH((ckernel::math::set_dst_write_addr<ckernel::DstTileShape::Tile32x32,
                                            ckernel::UnpackDestination::SrcRegs>(dst)));
}

}  // namespace blocks
