#pragma once

#include <cstdint>

/// The maximum of all architectures; Wormhole has 32.
constexpr static std::uint32_t NUM_CIRCULAR_BUFFERS = 64;

/// Compute kernels count the memory of circular buffers in words of 16 bytes.
constexpr static std::uint32_t CIRCULAR_BUFFER_COMPUTE_WORD_SIZE = 16;
constexpr static std::uint32_t CIRCULAR_BUFFER_COMPUTE_ADDR_SHIFT = 4;
