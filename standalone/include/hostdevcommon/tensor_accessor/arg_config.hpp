#pragma once

#include <cstdint>

#include "hostdevcommon/flags.hpp"

namespace tensor_accessor {

/// Flags of a TensorAccessor's arguments: kind of memory, and which of them are passed at run time.
enum class ArgConfig : std::uint8_t {
    None = 0,
    Sharded = 1 << 0,
    IsDram = 1 << 1,
    RuntimeRank = 1 << 2,
    RuntimeNumBanks = 1 << 3,
    RuntimeTensorShape = 1 << 4,
    RuntimeShardShape = 1 << 5,
    RuntimeBankCoords = 1 << 6,
    Runtime = RuntimeRank | RuntimeNumBanks | RuntimeTensorShape | RuntimeShardShape |
        RuntimeBankCoords
};

using ArgsConfig = Flags<ArgConfig>;

constexpr ArgsConfig operator|(ArgConfig a, ArgConfig b) noexcept { return ArgsConfig(a) | b; }
constexpr ArgsConfig operator|(ArgConfig a, ArgsConfig b) noexcept { return ArgsConfig(a) | b; }

}  // namespace tensor_accessor
