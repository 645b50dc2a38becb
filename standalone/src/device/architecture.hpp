/// Parameters of the emulated architectures, as in tt-metal 0.70.1; L1 begins where 0.81.1, whose
/// firmware takes more, leaves it to programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tt-metalium/core_coord.hpp"
#include "umd/device/types/arch.hpp"

namespace ttcodegen::device {

using tt::tt_metal::CoreCoord;

/// NoC coordinates of a DRAM bank on each NoC, and its offset in its channel.
struct DramBank {
    CoreCoord noc[2];
    std::uint32_t channel;
    std::uint32_t address_offset;
};

/// The memory map of a core comes from dev_mem_map.h: firmware and mailboxes, then a ring buffer of
/// 69 KiB for kernels, runtime arguments and semaphores, then the memory of programs.
struct Architecture {
    tt::ARCH arch;
    const char* name;
    CoreCoord worker_grid;        ///< Of the card that is emulated.
    CoreCoord worker_noc_origin;  ///< Virtual coordinates of worker (0,0).
    /// NoC columns, in virtual coordinates, without workers.
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
    CoreCoord most_workers;         ///< Of a card of which nothing is harvested.
    std::uint32_t readers_of_bank;  ///< Cores that may read one bank of DRAM for a product.

    /// Virtual NoC coordinates of a worker, the same on both NoCs.
    CoreCoord worker_to_noc(CoreCoord logical) const;
    /// The worker at virtual NoC coordinates, if there is one.
    std::optional<CoreCoord> worker_from_noc(CoreCoord noc) const;
    /// The bank at these coordinates: on Wormhole two banks share a channel.
    /// @param offset Address at these coordinates; on return, the offset in the bank.
    std::optional<std::uint32_t> bank_from_noc(CoreCoord noc, std::uint8_t noc_index,
                                               std::uint64_t& offset) const;
    std::uint32_t num_workers() const {
        return static_cast<std::uint32_t>(worker_grid.x * worker_grid.y);
    }
};

inline constexpr std::uint32_t kZerosSize = 512;
inline constexpr std::uint32_t kMaxSemaphores = 16;
inline constexpr std::uint32_t kMaxRuntimeArguments = 341;

/// @throws std::runtime_error for architectures other than Wormhole B0 and Blackhole.
const Architecture& architecture(tt::ARCH arch);
/// The architecture that the environment variable TTCODEGEN_ARCH describes, else that of the card
/// that the project was compiled for, else an n150. It is described by a name, optionally followed
/// by the worker grid and the number of DRAM banks, as in "blackhole:11x10:7". It is read once.
/// @throws std::runtime_error for an invalid description.
const Architecture& default_architecture();

}  // namespace ttcodegen::device

/// Called by a project before anything else, where it was compiled for another card than an n150.
/// Projects declare it weak: tt-metal has no such function.
extern "C" void ttcodegen_emulate_card(const char* card);
