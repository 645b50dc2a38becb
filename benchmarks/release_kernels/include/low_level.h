// Low-level names that kernels take from below the API, in terms of the API. The emulated device
// runs what is for the unpacker, for math and for the packer one after the other.
#pragma once

#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/eltwise_unary/recip.h"
#include "api/compute/bcast.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reconfig_data_format.h"
#include "api/debug/assert.h"
#include "ckernel.h"

// What kernels assert concerns sizes that the emulated device checks itself.
#undef ASSERT
#define ASSERT(...)

#define MM_THROTTLE 0

enum class p_dim_stride_target { IGNORE };

constexpr std::uint32_t TILE_HEIGHT = 32;

inline void invalidate_l1_cache() {}

inline void llk_pack_relu_config(ckernel::ReluType type) {
    ckernel::pack_relu_config(static_cast<std::uint32_t>(type));
}

template <ckernel::DataCopyType source, bool fp32, ckernel::BroadcastType type, bool is_integer,
          bool tilize>
inline void llk_math_eltwise_unary_datacopy_init(std::uint32_t buffer) {
    llk_math_eltwise_unary_datacopy_init<source, fp32, type>(buffer);
}

inline void llk_pack_reconfig_l1_acc(std::uint32_t enable) { ckernel::pack_reconfig_l1_acc(enable); }

template <bool fp32, p_dim_stride_target target = p_dim_stride_target::IGNORE>
inline void llk_unpack_reconfig_data_format_srca(std::uint32_t before, std::uint32_t now) {
    ckernel::reconfig_data_format_srca(before, now);
}
template <bool fp32>
inline void llk_math_reconfig_data_format_srca(std::uint32_t, std::uint32_t) {}

/// Operands of a product between unpacking and math.
inline std::uint32_t unpacked[4];

inline void llk_unpack_AB_matmul_init(std::uint32_t left, std::uint32_t right, std::uint32_t transpose) {
    ckernel::mm_init_short(left, right, transpose);
}
inline void llk_unpack_AB_matmul(std::uint32_t left, std::uint32_t right, std::uint32_t left_tile,
                                 std::uint32_t right_tile) {
    unpacked[0] = left;
    unpacked[1] = right;
    unpacked[2] = left_tile;
    unpacked[3] = right_tile;
}
template <ckernel::MathFidelity fidelity, int throttle>
inline void llk_math_matmul_init(std::uint32_t, std::uint32_t, std::uint32_t) {}
template <ckernel::MathFidelity fidelity, int throttle>
inline void llk_math_matmul(std::uint32_t tile) {
    ckernel::matmul_tiles(unpacked[0], unpacked[1], unpacked[2], unpacked[3], tile);
}

template <ckernel::PoolType type, ckernel::ReduceDim dim>
inline void llk_unpack_AB_reduce_init(std::uint32_t, std::uint32_t) { __builtin_trap(); }
template <ckernel::PoolType type, ckernel::ReduceDim dim, bool fp32, ckernel::MathFidelity fidelity>
inline void llk_math_reduce_init() { __builtin_trap(); }

// What only one processor compiles consists of its own instructions; this is what it amounts to.
#undef TRISC_MATH
#undef TRISC_PACK

template <bool legacy = true>
inline void recip_tile_first_column(std::uint32_t tile) {
    ckernel::recip_tile(tile, ckernel::VectorMode::C);
}
template <bool approximate, std::uint16_t scale>
inline void exp_tile_first_column(std::uint32_t tile) {
    ckernel::exp_tile<false, true>(tile, ckernel::VectorMode::C, scale);
}
template <bool approximate, int mode = ckernel::VectorMode::C>
inline void fused_max_sub_exp_add_tile(std::uint32_t, int) { __builtin_trap(); }

inline void softplus_tile_first_column(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t) {
    __builtin_trap();
}
template <auto... constants, typename... Arguments>
inline void llk_math_eltwise_unary_sfpu_binop_with_scalar(Arguments...) { __builtin_trap(); }
template <auto... constants, typename... Arguments>
inline void sdpa_standard_v2(Arguments...) { __builtin_trap(); }

/// Pops pages that the kernel may know to be there without having waited for them.
template <typename... Place>
inline void pop_present(std::uint32_t buffer, std::uint32_t pages, Place... place) {
    ckernel::cb_wait_front(buffer, pages, place...);
    ckernel::cb_pop_front(buffer, pages, place...);
}
#define cb_pop_front pop_present
