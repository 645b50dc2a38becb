#pragma once

#include <cstdint>

constexpr std::uint32_t align_power_of_2(std::uint32_t addr, std::uint32_t alignment) {
    return (addr + alignment - 1) & ~(alignment - 1);
}

constexpr std::uint32_t align(std::uint32_t addr, std::uint32_t alignment) {
    return (addr + alignment - 1) / alignment * alignment;
}

constexpr bool is_power_of_2(std::uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }
