// Operations of the vector engine on tiles of integers. They wrap around, as on the device.

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "device/compute/sfpu_rows.hpp"

namespace ttcodegen::device::compute {

namespace {

using Signed = std::int32_t;
using Unsigned = std::uint32_t;

Unsigned truth_bit(bool value) { return value ? 1U : 0U; }
Signed signed_of(Unsigned word) { return static_cast<Signed>(word); }
Unsigned larger(Signed a, Signed b) { return static_cast<Unsigned>(a > b ? a : b); }
Unsigned smaller(Signed a, Signed b) { return static_cast<Unsigned>(a < b ? a : b); }
/// Shifts by 32 or more give 0; `fill` is the sign.
Unsigned shifted_left(Unsigned a, Unsigned by) { return by < 32 ? a << by : 0; }
Unsigned shifted_right(Unsigned a, Unsigned by) { return by < 32 ? a >> by : 0; }
Unsigned shifted_right_signed(Unsigned a, Unsigned by) {
    return static_cast<Unsigned>(signed_of(a) >> (by < 32 ? by : 31));
}
/// 64-bit quotients, so that the lowest integer over -1 does not overflow.
std::int64_t quotient(Unsigned a, Unsigned b) {
    const std::int64_t divisor = signed_of(b);
    return divisor == 0 ? 0 : signed_of(a) / divisor;
}
std::int64_t floored_quotient(Unsigned a, Unsigned b) {
    const std::int64_t divisor = signed_of(b);
    const std::int64_t truncated = quotient(a, b);
    const bool exact = divisor == 0 || truncated * divisor == signed_of(a);
    return exact || (signed_of(a) < 0) == (divisor < 0) ? truncated : truncated - 1;
}
Unsigned rest(Unsigned a, Unsigned b, std::int64_t result) {
    return b == 0 ? 0 : static_cast<Unsigned>(signed_of(a) - result * signed_of(b));
}
Unsigned divisor_of(Unsigned a, Unsigned b) {
    return static_cast<Unsigned>(std::gcd(std::int64_t{signed_of(a)}, std::int64_t{signed_of(b)}));
}
Unsigned multiple_of(Unsigned a, Unsigned b) {
    return static_cast<Unsigned>(std::lcm(std::int64_t{signed_of(a)}, std::int64_t{signed_of(b)}));
}

/// Quotients of integers are floats unless they are rounded down or towards zero.
void divide(const SfpuOperands& operands) {
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const auto dividend = static_cast<float>(operands.inputs[0]->integers()[i]);
        const auto divisor = static_cast<float>(operands.inputs[1]->integers()[i]);
        operands.output->floats()[i] = dividend / divisor;
    }
}

#define UNARY(OPERATION, NAME, INIT, CONSTANTS, EXPRESSION)                \
    TTCODEGEN_SFPU_ROW(OPERATION, NAME, INIT, CONSTANTS, Integer, Integer, \
                       TTCODEGEN_SFPU_1(Unsigned, EXPRESSION))
#define COMPARE(OPERATION, OPERATOR)                                                              \
    UNARY(unary_##OPERATION##_int32, "unary_" #OPERATION "_tile_int32", unary_##OPERATION, false, \
          truth_bit(signed_of(a) OPERATOR p.i0))
#define WITH_ZERO(OPERATION, OPERATOR)                                   \
    UNARY(OPERATION##_int32, #OPERATION "_tile_int32", OPERATION, false, \
          truth_bit(signed_of(a) OPERATOR 0))
#define BINARY(OPERATION, INIT, CONSTANTS, EXPRESSION)                                   \
    TTCODEGEN_SFPU_ROW(OPERATION, #OPERATION "_tile", INIT, CONSTANTS, Integer, Integer, \
                       TTCODEGEN_SFPU_2(Unsigned, EXPRESSION))

constexpr std::array kIntegerRows{
    UNARY(abs_int32, "abs_tile_int32", abs, false, signed_of(a) < 0 ? 0U - a : a),
    UNARY(negative_int32, "negative_tile_int32", negative, false, 0U - a),
    UNARY(signbit_int32, "signbit_tile_int32", signbit_int32, true, a >> 31),
    UNARY(relu_int32, "relu_tile_int32", relu, false, larger(signed_of(a), 0)),
    UNARY(relu_max_int32, "relu_max_tile_int32", relu_max, false,
          larger(signed_of(smaller(signed_of(a), p.i0)), 0)),
    UNARY(relu_min_int32, "relu_min_tile_int32", relu, false, larger(signed_of(a), p.i0)),
    UNARY(clamp_int32, "clamp_tile_int32", clamp, false,
          smaller(signed_of(larger(signed_of(a), p.i0)), p.i1)),
    UNARY(unary_max_int32, "unary_max_int32_tile", unary_max_int32, true,
          larger(signed_of(a), p.i0)),
    UNARY(unary_min_int32, "unary_min_int32_tile", unary_min_int32, true,
          smaller(signed_of(a), p.i0)),
    UNARY(unary_max_uint32, "unary_max_uint32_tile", unary_max_uint32, true, a > p.u0 ? a : p.u0),
    UNARY(unary_min_uint32, "unary_min_uint32_tile", unary_min_uint32, true, a < p.u0 ? a : p.u0),
    COMPARE(eq, ==),
    COMPARE(ne, !=),
    COMPARE(gt, >),
    COMPARE(ge, >=),
    COMPARE(lt, <),
    COMPARE(le, <=),
    WITH_ZERO(eqz, ==),
    WITH_ZERO(nez, !=),
    WITH_ZERO(gtz, >),
    WITH_ZERO(gez, >=),
    WITH_ZERO(ltz, <),
    WITH_ZERO(lez, <=),
    UNARY(bitwise_not, "bitwise_not_tile", bitwise_not, false, ~a),
    UNARY(bitwise_and, "bitwise_and_tile", bitwise_and, false, a& p.u0),
    UNARY(bitwise_or, "bitwise_or_tile", bitwise_or, false, a | p.u0),
    UNARY(bitwise_xor, "bitwise_xor_tile", bitwise_xor, false, a ^ p.u0),
    UNARY(left_shift, "left_shift_tile", left_shift, false, shifted_left(a, p.u0)),
    UNARY(right_shift, "right_shift_tile", right_shift, false, shifted_right_signed(a, p.u0)),
    UNARY(add_unary_int32, "add_unary_tile_int32", add_unary, false, a + p.u0),
    UNARY(sub_unary_int32, "sub_unary_tile_int32", add_unary, false, a - p.u0),
    UNARY(rsub_unary_int32, "rsub_unary_int32_tile", rsub_unary_int32, true, p.u0 - a),
    TTCODEGEN_SFPU_ROW(fill_int, "fill_tile_int", fill, false, None, Integer,
                       TTCODEGEN_SFPU_1(Unsigned, (void(a), p.u0))),

    BINARY(add_int, add_int, false, a + b),
    BINARY(sub_int, sub_int, false, a - b),
    BINARY(rsub_int, rsub_int, false, b - a),
    BINARY(mul_int, mul_int, true, a* b),
    BINARY(lt_int, lt_int, false, truth_bit(signed_of(a) < signed_of(b))),
    BINARY(gt_int, gt_int, false, truth_bit(signed_of(a) > signed_of(b))),
    BINARY(le_int, le_int, false, truth_bit(signed_of(a) <= signed_of(b))),
    BINARY(ge_int, ge_int, false, truth_bit(signed_of(a) >= signed_of(b))),
    BINARY(binary_max_int32, binary_max_int32, true, larger(signed_of(a), signed_of(b))),
    BINARY(binary_min_int32, binary_min_int32, true, smaller(signed_of(a), signed_of(b))),
    BINARY(binary_max_uint32, binary_max_uint32, true, a > b ? a : b),
    BINARY(binary_min_uint32, binary_min_uint32, true, a < b ? a : b),
    BINARY(bitwise_and_binary, bitwise_and_binary, false, a& b),
    BINARY(bitwise_or_binary, bitwise_and_binary, false, a | b),
    BINARY(bitwise_xor_binary, bitwise_and_binary, false, a ^ b),
    BINARY(binary_left_shift, binary_left_shift, false, shifted_left(a, b)),
    BINARY(binary_right_shift, binary_left_shift, false, shifted_right_signed(a, b)),
    BINARY(binary_logical_right_shift, binary_left_shift, false, shifted_right(a, b)),
    BINARY(gcd, gcd, true, divisor_of(a, b)),
    BINARY(lcm, lcm, true, multiple_of(a, b)),
    BINARY(div_int32_floor, div_int32_floor, true, static_cast<Unsigned>(floored_quotient(a, b))),
    BINARY(div_int32_trunc, div_int32_trunc, true, static_cast<Unsigned>(quotient(a, b))),
    BINARY(remainder_int32, remainder_int32, true, rest(a, b, floored_quotient(a, b))),
    BINARY(fmod_int32, fmod_int32, true, rest(a, b, quotient(a, b))),
    TTCODEGEN_SFPU_ROW(div_int32, "div_int32_tile", div_int32, true, Integer, Float, divide),
};

#undef UNARY
#undef COMPARE
#undef WITH_ZERO
#undef BINARY

}  // namespace

std::span<const SfpuRow> sfpu_integer_rows() { return kIntegerRows; }

}  // namespace ttcodegen::device::compute
