#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(sigmoid_tile_init, sigmoid);
template <int vec_mode = VectorMode::RC, bool fast_and_approx = false>
ALWI void sigmoid_tile(std::uint32_t idst, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(sigmoid, {idst}, {}, vec_mode);
}

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(log_tile_init, log);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_UNARY(log_tile, log);

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(log_with_base_tile_init, log_with_base);
/// The natural logarithm times `base_scale`, the bits of a float.
template <bool fast_and_approx = false>
ALWI void log_with_base_tile(std::uint32_t idst, std::uint32_t base_scale, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(log_with_base, {idst}, {base_scale});
}

template <bool fast_and_approx = false>
TTCODEGEN_SFPU_INIT(tanh_tile_init, tanh);
template <bool fast_and_approx = false>
TTCODEGEN_SFPU_UNARY(tanh_tile, tanh);

template <bool approx = false>
TTCODEGEN_SFPU_INIT(expm1_tile_init, expm1);
template <bool approx = false>
TTCODEGEN_SFPU_UNARY(expm1_tile, expm1);

TTCODEGEN_SFPU_UNARY_PAIR(signbit);
TTCODEGEN_SFPU_INIT(signbit_tile_int32_init, signbit_int32);
TTCODEGEN_SFPU_UNARY(signbit_tile_int32, signbit_int32);
TTCODEGEN_SFPU_UNARY_PAIR(abs);
TTCODEGEN_SFPU_UNARY(abs_tile_int32, abs_int32);
TTCODEGEN_SFPU_UNARY_PAIR(sign);
TTCODEGEN_SFPU_UNARY_PAIR(square);
TTCODEGEN_SFPU_UNARY_PAIR(exp2);
TTCODEGEN_SFPU_UNARY_PAIR(silu);
/// Multiplies complex numbers, whose parts are the elements at even columns and the next ones, by
/// the imaginary unit.
TTCODEGEN_SFPU_UNARY_PAIR(alt_complex_rotate90);

// The parameters are the bits of floats, or integers for operations so named.
TTCODEGEN_SFPU_UNARY_PAIR_1(power);
/// The exponent is an unsigned integer.
TTCODEGEN_SFPU_UNARY_PAIR_1(power_iterative);
TTCODEGEN_SFPU_UNARY_PAIR_1(heaviside);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_max);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_min);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_max_int32);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_min_int32);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_max_uint32);
TTCODEGEN_SFPU_UNARY_PAIR_1(unary_min_uint32);

/// Reduces the columns of a tile into its first row, or its rows into its first column.
template <PoolType pool_type, DataFormat format, ReduceDim reduce_dim = ReduceDim::REDUCE_COL>
ALWI void sfpu_reduce(std::uint32_t idst, std::uint32_t ct_dim = 1, std::uint32_t rt_dim = 1,
                      TTCODEGEN_HERE) {
    static_assert(reduce_dim == ReduceDim::REDUCE_COL ||
                      (reduce_dim == ReduceDim::REDUCE_ROW &&
                       (pool_type == PoolType::SUM || pool_type == PoolType::MAX)),
                  "Rows are reduced by SUM and MAX only");
    if (ct_dim != 1 || rt_dim != 1) {
        auto& processor = ttcodegen::device::current();
        processor.functions->fail(processor, here,
                                  "the emulated device reduces one tile at a time, not %u x %u",
                                  rt_dim, ct_dim);
    }
    TTCODEGEN_SFPU_RUN(reduce, {idst},
                       {static_cast<std::uint32_t>(format), static_cast<std::uint32_t>(pool_type),
                        static_cast<std::uint32_t>(reduce_dim)});
}

template <PoolType pool_type, DataFormat format>
ALWI void sfpu_reduce_init(TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    init_sfpu_operation(
        SfpuOperation::reduce, "sfpu_reduce_init", here,
        {static_cast<std::uint32_t>(format), static_cast<std::uint32_t>(pool_type)});
}

TTCODEGEN_SFPU_INIT(sfpu_add_top_row_init, add_top_row);
/// The sum of the first rows of two tiles.
template <DataFormat format>
ALWI void sfpu_add_top_row(std::uint32_t dst_tile_0, std::uint32_t dst_tile_1,
                           std::uint32_t dst_tile_out, TTCODEGEN_HERE) {
    TTCODEGEN_SFPU_RUN(add_top_row, {dst_tile_0, dst_tile_1, dst_tile_out},
                       {static_cast<std::uint32_t>(format)});
}

}  // namespace ckernel
