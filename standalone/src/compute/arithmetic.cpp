#include "compute/arithmetic.hpp"

#include <algorithm>

#include "device/architecture.hpp"

namespace ttcodegen::cpu {
namespace {

constexpr int kTf32Bits = 10;
constexpr int kBfloat16Bits = 7;
// A pass of the multiplier covers 4 + 5 bits of source A and 6 + 4 of source B; the last bit of
// TF32 in source A is in no pass.
constexpr int kBothPassesOfA = 9;

enum class Wide : std::uint8_t { ALWAYS, NEVER, OPERANDS, RESULT };

/// The number of multiplier passes; EXACT depends on the architecture.
enum class Fidelity : std::uint8_t { LoFi, HiFi2, HiFi3, HiFi4, EXACT };

struct Row {
    Fidelity narrow;
    Fidelity block;
    Fidelity wide;
    bool approximate;
    Wide destination;
};

constexpr Row row_of(std::array<Fidelity, 3> fidelities, bool approximate, Wide destination) {
    return {fidelities[0], fidelities[1], fidelities[2], approximate, destination};
}

constexpr std::array<Fidelity, 3> fidelities(Fidelity narrow, Fidelity block, Fidelity wide) {
    return {narrow, block, wide};
}

constexpr std::array kRows = [] {
    using enum Fidelity;
    using enum Wide;
    return std::array{
#define TTCODEGEN_COMPUTE_DEFAULT(name, passes, approximate, wide) \
    row_of(fidelities passes, approximate, wide),
#include "compute/compute_defaults.inc"
#undef TTCODEGEN_COMPUTE_DEFAULT
    };
}();

MathFidelity fidelity_of(Fidelity fidelity) {
    switch (fidelity) {
        case Fidelity::LoFi:
            return MathFidelity::LoFi;
        case Fidelity::HiFi2:
            return MathFidelity::HiFi2;
        case Fidelity::HiFi3:
            return MathFidelity::HiFi3;
        case Fidelity::HiFi4:
            return MathFidelity::HiFi4;
        case Fidelity::EXACT:
            break;
    }
    const bool is_wormhole = device::default_architecture().arch == tt::ARCH::WORMHOLE_B0;
    return is_wormhole ? MathFidelity::HiFi3 : MathFidelity::HiFi4;
}

}  // namespace

Arithmetic Arithmetic::of(const DeviceComputeKernelConfig& config) {
    const int source = config.fp32_dest_acc_en ? kTf32Bits : kBfloat16Bits;
    const bool cuts_a = config.math_fidelity == MathFidelity::LoFi;
    const bool cuts_b = cuts_a || config.math_fidelity == MathFidelity::HiFi2;
    return {
        .source_bits = source,
        .first_bits = cuts_b ? kFirstPassOfB : source,
        .second_bits = cuts_a ? kFirstPassOfA : std::min(source, kBothPassesOfA),
        .narrow_sums = !config.fp32_dest_acc_en,
        .approximate = config.math_approx_mode,
        .drops_low_product = config.math_fidelity == MathFidelity::HiFi3,
    };
}

Arithmetic arithmetic_of(const std::optional<DeviceComputeKernelConfig>& passed, ComputeDefault row,
                         std::span<const DataType> operands, bool result_is_float32) {
    if (passed) {
        return Arithmetic::of(*passed);
    }
    const auto& [narrow, block, wide, approximate, destination] =
        kRows[static_cast<std::size_t>(row)];
    const bool all_wide =
        std::ranges::all_of(operands, [](DataType dtype) { return dtype == DataType::FLOAT32; });
    const bool all_block = std::ranges::all_of(operands, is_block);
    DeviceComputeKernelConfig config;
    config.math_fidelity = fidelity_of(all_wide ? wide : all_block ? block : narrow);
    config.math_approx_mode = approximate;
    config.fp32_dest_acc_en = destination == Wide::ALWAYS ||
                              (destination == Wide::OPERANDS && all_wide) ||
                              (destination == Wide::RESULT && result_is_float32);
    return Arithmetic::of(config);
}

}  // namespace ttcodegen::cpu
