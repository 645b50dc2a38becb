#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <tt-metalium/base_types.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

namespace support {

/// A core's part of a work split: `count` units, starting at `first`.
struct CoreWork {
    tt::tt_metal::CoreCoord core;
    std::uint32_t first;
    std::uint32_t count;
};

/// Splits `units` among cores as evenly as possible, in row-major order; the first cores get one
/// more. Every core has an entry, with a count of 0 if no units are left for it.
std::vector<CoreWork> split_work(const tt::tt_metal::CoreRange& cores, std::uint32_t units);

/// The cores of a rectangle, in row-major order.
std::vector<tt::tt_metal::CoreCoord> each_core(const tt::tt_metal::CoreRange& cores);

/// ComputeConfig::unpack_to_dest_mode for which the 32-bit values of these circular buffers reach
/// the destination registers at full precision.
std::vector<tt::tt_metal::UnpackToDestMode> unpack_to_fp32(
    std::initializer_list<std::uint8_t> circular_buffers);

/// NoC coordinates of the core in that column and row.
std::uint32_t noc_x(const tt::tt_metal::distributed::MeshDevice& device, std::size_t column,
                    std::size_t row);
std::uint32_t noc_y(const tt::tt_metal::distributed::MeshDevice& device, std::size_t column,
                    std::size_t row);

/// The path of a kernel. Kernels are searched for in the folder given by the environment variable
/// TTCODEGEN_KERNELS, in `kernels` next to the binary or one level up, and in `build_directory`.
std::string kernel_file(const std::string& name, const std::string& build_directory);

}  // namespace support
