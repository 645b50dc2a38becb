#pragma once

#include <cstdint>

/// The most of any architecture; Wormhole has 32.
constexpr static std::uint32_t NUM_CIRCULAR_BUFFERS = 64;
