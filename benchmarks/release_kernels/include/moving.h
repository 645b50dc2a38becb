// What kernels that move data take from below the API.
#pragma once

#include "api/dataflow/dataflow_api.h"
#include "ckernel.h"
#include "experimental/core_local_mem.h"
#include "hostdevcommon/kernel_structs.h"

constexpr std::uint32_t INVALID = 0;
constexpr std::uint32_t VALID = 1;
constexpr std::uint32_t NUM_CIRCULAR_BUFFERS = 32;

template <typename T>
constexpr bool has_get_aligned_page_size_v = false;

// Kernels flush what they multicast before they write there again on one architecture only. The
// emulated device wants to see that on all; nothing that it counts depends on it.
#define ARCH_BLACKHOLE
