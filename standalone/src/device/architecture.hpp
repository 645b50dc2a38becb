/// The figures of the devices that are emulated, as tt-metal 0.70.1 has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tt-metalium/core_coord.hpp"
#include "umd/device/types/arch.hpp"

namespace ttcodegen::device {

using tt::tt_metal::CoreCoord;

/// Where a DRAM bank answers on each NoC, and where in its channel the bank begins.
struct DramBank {
    CoreCoord noc[2];
    std::uint32_t channel;
    std::uint32_t address_offset;
};

/// The memory map of a core comes from dev_mem_map.h: firmware and mailboxes, then a ring buffer of
/// 69 KiB for kernels, run-time arguments and semaphores, then what programs may use.
struct Architecture {
    tt::ARCH arch;
    const char* name;
    CoreCoord worker_grid;        ///< Of the card that is emulated.
    CoreCoord worker_noc_origin;  ///< Virtual coordinates of worker (0,0).
    /// Columns of the NoC, in virtual coordinates, that hold no workers.
    CoreCoord skipped_columns;
    std::uint32_t l1_size;
    std::uint32_t zeros_base;
    std::uint32_t kernel_config_base;
    std::uint32_t l1_unreserved_base;
    std::uint32_t l1_alignment;
    std::uint32_t dram_bank_size;
    std::uint32_t dram_unreserved_base;
    std::uint32_t dram_read_alignment;
    std::uint32_t dram_alignment;  ///< What the allocators of DRAM and of L1 round up to.
    std::uint32_t num_circular_buffers;
    std::uint32_t max_burst;
    std::span<const DramBank> dram_banks;
    CoreCoord most_workers;  ///< Of a card of which nothing is harvested.

    /// Virtual NoC coordinates of a worker, the same on both NoCs.
    CoreCoord worker_to_noc(CoreCoord logical) const;
    /// The worker at virtual NoC coordinates, if there is one.
    std::optional<CoreCoord> worker_from_noc(CoreCoord noc) const;
    /// The banks that answer at these coordinates: on Wormhole two banks share a channel.
    /// @param offset Address at these coordinates; on return the offset in the bank.
    std::optional<std::uint32_t> bank_from_noc(CoreCoord noc, std::uint8_t noc_index,
                                               std::uint64_t& offset) const;
    std::uint32_t num_workers() const {
        return static_cast<std::uint32_t>(worker_grid.x * worker_grid.y);
    }
};

inline constexpr std::uint32_t kZerosSize = 512;
inline constexpr std::uint32_t kMaxSemaphores = 16;
inline constexpr std::uint32_t kMaxRuntimeArguments = 341;

/// @throws std::runtime_error for another architecture than Wormhole B0 and Blackhole.
const Architecture& architecture(tt::ARCH arch);
/// The card that the environment variable TTCODEGEN_ARCH describes, else an n150: an architecture,
/// after which a grid of workers and a number of DRAM banks may follow, as in "blackhole:11x10:7".
/// It is read once.
/// @throws std::runtime_error if it describes no card.
const Architecture& default_architecture();

}  // namespace ttcodegen::device
