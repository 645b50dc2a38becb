// Operations of the vector engine on two or three tiles of floats.

#include <array>
#include <cmath>

#include "compute/exponential.hpp"
#include "device/compute/sfpu_rows.hpp"

namespace ttcodegen::device::compute {

namespace {

float truth(bool value) { return value ? 1.0F : 0.0F; }

/// Floored modulo: the result has the sign of the divisor.
float remainder_of(float x, float divisor) {
    const float rest = std::fmod(x, divisor);
    return rest != 0.0F && (rest < 0.0F) != (divisor < 0.0F) ? rest + divisor : rest;
}

float saturated_to_byte(float value) {
    const float rounded = std::nearbyint(value);
    return rounded > 127.0F ? 127.0F : rounded < -127.0F ? -127.0F : rounded;
}

/// The zero point that the initialisation of a quantization stored.
float zero_point_of(const SfpuOperands& operands) {
    return std::bit_cast<float>(operands.memory->init_parameters[0]);
}

void quantize(const SfpuOperands& operands) {
    const float zero_point = zero_point_of(operands);
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const float value =
            operands.inputs[0]->floats()[i] * operands.inputs[1]->floats()[i] + zero_point;
        operands.output->integers()[i] = static_cast<std::int32_t>(saturated_to_byte(value));
    }
}

void requantize(const SfpuOperands& operands) {
    const float zero_point = zero_point_of(operands);
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const float value = static_cast<float>(operands.inputs[0]->integers()[i]) *
                                operands.inputs[1]->floats()[i] +
                            zero_point;
        operands.output->integers()[i] = static_cast<std::int32_t>(saturated_to_byte(value));
    }
}

/// The zero point that the initialisation stored is already negated.
void dequantize(const SfpuOperands& operands) {
    const float zero_point = zero_point_of(operands);
    for (std::size_t i = 0; i < kTileElements; ++i) {
        operands.output->floats()[i] =
            (static_cast<float>(operands.inputs[0]->integers()[i]) + zero_point) *
            operands.inputs[1]->floats()[i];
    }
}

#define BINARY(OPERATION, INIT, CONSTANTS, EXPRESSION)                               \
    TTCODEGEN_SFPU_ROW(OPERATION, #OPERATION "_tile", INIT, CONSTANTS, Float, Float, \
                       TTCODEGEN_SFPU_2(float, EXPRESSION))
#define TERNARY(OPERATION, EXPRESSION)                                                \
    TTCODEGEN_SFPU_ROW(OPERATION, #OPERATION "_tile", OPERATION, false, Float, Float, \
                       TTCODEGEN_SFPU_3(float, EXPRESSION))

constexpr std::array kBinaryRows{
    BINARY(add_binary, add_binary, false, a + b),
    BINARY(sub_binary, sub_binary, false, a - b),
    BINARY(mul_binary, mul_binary, false, a* b),
    BINARY(div_binary, div_binary, true, a / b),
    BINARY(rsub_binary, rsub_binary, false, b - a),
    BINARY(power_binary, power_binary, true, std::pow(a, b)),
    BINARY(eq_binary, eq_binary, false, truth(a == b)),
    BINARY(ne_binary, ne_binary, false, truth(a != b)),
    BINARY(lt_binary, lt_binary, false, truth(a < b)),
    BINARY(gt_binary, gt_binary, false, truth(a > b)),
    BINARY(le_binary, le_binary, false, truth(a <= b)),
    BINARY(ge_binary, ge_binary, false, truth(a >= b)),
    BINARY(binary_max, binary_max, true, comes_before(a, b) ? b : a),
    BINARY(binary_min, binary_min, true, comes_before(b, a) ? b : a),
    BINARY(fmod_binary, fmod_binary, true, std::fmod(a, b)),
    BINARY(remainder_binary, remainder_binary, true, remainder_of(a, b)),
    BINARY(xlogy_binary, xlogy_binary, true, a == 0.0F && b == b ? 0.0F : a * std::log(b)),
    BINARY(atan2_binary, atan2_binary, true, std::atan2(a, b)),
    // The second operand is e^-a; for large ones a itself is the result.
    BINARY(logsigmoid, logsigmoid, true,
           a < -4.0F ? a - std::log1p(cpu::exponential(a)) : -std::log1p(b)),
    TTCODEGEN_SFPU_ROW(quant, "quant_tile", quant, true, Float, Integer, quantize),
    TTCODEGEN_SFPU_ROW(requant, "requant_tile", requant, true, Any, Integer, requantize),
    TTCODEGEN_SFPU_ROW(dequant, "dequant_tile", dequant, true, Any, Float, dequantize),
    TERNARY(addcdiv, a + p.p0 * b / c),
    TERNARY(lerp, a + c * (b - a)),
};

#undef BINARY
#undef TERNARY

}  // namespace

std::span<const SfpuRow> sfpu_binary_rows() { return kBinaryRows; }

}  // namespace ttcodegen::device::compute
