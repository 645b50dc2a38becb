/// Constants and shorthands of the data movement side of the kernel API.
#pragma once

#include <cstdint>

#include "api/alignment.h"
#include "api/debug/assert.h"
#include "api/debug/waypoint.h"
#include "hostdevcommon/common_values.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"
#include "ttcodegen/device/arguments.hpp"
#include "ttcodegen/device/processor.hpp"

/// The last parameter of each function of the kernel API: the location of the call.
#ifndef TTCODEGEN_HERE
#define TTCODEGEN_HERE ::ttcodegen::device::Location here = ::ttcodegen::device::Location::current()
#endif

/// Device code uses the formats of circular buffers without a namespace.
using DataFormat = tt::DataFormat;

enum class ProgrammableCoreType { TENSIX = 0, ACTIVE_ETH = 1, IDLE_ETH = 2, DRAM = 3, COUNT = 4 };
enum class InlineWriteDst : std::uint8_t { DEFAULT = 0, L1 = 1, REG = 2 };

constexpr std::uint8_t noc_index = NOC_INDEX;
constexpr std::uint8_t noc_mode = NOC_MODE;

#define NUM_NOCS 2
#define DM_DEDICATED_NOC 0
#define DM_DYNAMIC_NOC 1
#define NOC_UNICAST_WRITE_VC 1
#define NOC_MULTICAST_WRITE_VC 4
#define NOC_ADDR_LOCAL_BITS 36
#define NOC_ADDR_NODE_ID_BITS 6
#define NOC_MAX_TRANSACTION_ID 0xF
#define NOC_L1_READ_ALIGNMENT_BYTES 16
#define NOC_L1_WRITE_ALIGNMENT_BYTES 16
#define NOC_DRAM_WRITE_ALIGNMENT_BYTES 16
#define NOC_PCIE_WRITE_ALIGNMENT_BYTES 16
#define L1_ALIGNMENT 16
#ifdef ARCH_BLACKHOLE
#define NOC_MAX_BURST_SIZE 16384
#define NOC_DRAM_READ_ALIGNMENT_BYTES 64
#define NOC_PCIE_READ_ALIGNMENT_BYTES 64
#define DRAM_ALIGNMENT 64
#define TTCODEGEN_ZEROS_OFFSET 13024
#else
#define NOC_MAX_BURST_SIZE 8192
#define NOC_DRAM_READ_ALIGNMENT_BYTES 32
#define NOC_PCIE_READ_ALIGNMENT_BYTES 32
#define DRAM_ALIGNMENT 32
#define TTCODEGEN_ZEROS_OFFSET 12928
#endif

/// A region of each core's L1 that holds zeros.
#define MEM_ZEROS_BASE \
    (::ttcodegen::device::l1_address(::ttcodegen::device::current(), TTCODEGEN_ZEROS_OFFSET))
#define MEM_ZEROS_SIZE 512

// Command buffers, which transfers may select, are not distinguished here.
constexpr std::uint8_t read_cmd_buf = 0;
constexpr std::uint8_t write_cmd_buf = 1;
constexpr std::uint8_t write_reg_cmd_buf = 2;
constexpr std::uint8_t write_at_cmd_buf = 3;

namespace ttcodegen::device {

/// The core's coordinates, which are virtual and therefore the same on both NoCs.
struct CoreX {
    std::uint8_t operator[](unsigned) const { return current().noc_x; }
};
struct CoreY {
    std::uint8_t operator[](unsigned) const { return current().noc_y; }
};

}  // namespace ttcodegen::device

inline constexpr ttcodegen::device::CoreX my_x{};
inline constexpr ttcodegen::device::CoreY my_y{};

/// Blackhole caches L1, so loops that poll memory must call this; it yields to other processors.
inline void invalidate_l1_cache(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->yield(processor, here);
}
