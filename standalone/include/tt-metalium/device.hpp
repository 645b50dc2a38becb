#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hostdevcommon/common_values.hpp"
#include "hostdevcommon/kernel_structs.h"  // programs get tt::CBIndex from here
#include "tt-metalium/core_coord.hpp"
#include "umd/device/types/arch.hpp"
#include "umd/device/types/core_coordinates.hpp"

namespace tt::tt_metal {

/// Queries of a device; the part of the real interface that emitted code uses.
class IDevice {
  public:
    IDevice() = default;
    virtual ~IDevice() = default;

    IDevice(const IDevice& other) = delete;
    IDevice& operator=(const IDevice& other) = delete;

    virtual tt::ARCH arch() const = 0;
    virtual int id() const = 0;
    virtual bool is_initialized() const = 0;
    virtual std::uint32_t l1_size_per_core() const = 0;
    virtual CoreCoord grid_size() const = 0;
    virtual CoreCoord logical_grid_size() const = 0;
    virtual CoreCoord dram_grid_size() const = 0;
    virtual CoreCoord compute_with_storage_grid_size() const = 0;
    virtual std::uint8_t num_hw_cqs() const = 0;
    virtual int num_dram_channels() const = 0;
    virtual std::uint32_t dram_size_per_channel() const = 0;
    /// The NoC coordinates of logical cores, which kernels use as addresses.
    virtual std::vector<CoreCoord> worker_cores_from_logical_cores(
        const std::vector<CoreCoord>& logical_cores) const = 0;
    virtual CoreCoord virtual_core_from_logical_core(const CoreCoord& logical_coord,
                                                     const CoreType& core_type) const = 0;
    virtual CoreCoord worker_core_from_logical_core(const CoreCoord& logical_core) const = 0;
    virtual bool close() = 0;
    virtual void enable_program_cache() = 0;
    virtual void clear_program_cache() = 0;
    virtual void disable_and_clear_program_cache() = 0;
    virtual std::size_t num_program_cache_entries() = 0;
};

}  // namespace tt::tt_metal
