// The initialisation of a broadcast that leaves the destination registers alone.
#pragma once

#include <cstdint>

#include "api/compute/bcast.h"
#include "api/compute/common.h"

namespace blocks {

/// Sets unpacking and math up for unary_bcast of tiles of `cb`, between tile_regs_acquire and
/// tile_regs_commit. unary_bcast_init is a full initialisation: it starts again at the first half
/// of the destination registers, so from the second tile on math and packer disagree.
template <BroadcastType broadcast>
ALWI void unary_bcast_init_short(uint32_t cb) {
#if defined(TRISC_UNPACK) || defined(TRISC_MATH)
    const uint32_t format = get_operand_dst_format(cb);
    // Elements of 32 bits do not fit source register B: they are unpacked to the destination.
    const bool to_destination = format == static_cast<uint32_t>(DataFormat::Float32) ||
                                format == static_cast<uint32_t>(DataFormat::UInt32) ||
                                format == static_cast<uint32_t>(DataFormat::Int32);
    constexpr auto kept = EltwiseBinaryReuseDestType::NONE;
    if (to_destination) {
        UNPACK((llk_unpack_A_init<broadcast, false, kept, true>(false, false, cb)));
        MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, DST_ACCUM_MODE, broadcast>(
            cb)));
    } else {
        UNPACK((llk_unpack_A_init<broadcast, false, kept, false>(false, false, cb)));
        MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::B2D, DST_ACCUM_MODE, broadcast>(
            cb)));
    }
#endif
}

}  // namespace blocks
