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

/// The share of a core in some linear work: `count` units from `first` on.
struct CoreWork {
    tt::tt_metal::CoreCoord core;
    std::uint32_t first;
    std::uint32_t count;
};

/// Divides `units` among cores as evenly as whole units allow: row by row, the first cores get one
/// more. Each core is there, with a count of 0 if nothing is left for it.
std::vector<CoreWork> split_work(const tt::tt_metal::CoreRange& cores, std::uint32_t units);

/// The cores of a rectangle, row by row.
std::vector<tt::tt_metal::CoreCoord> each_core(const tt::tt_metal::CoreRange& cores);

/// For ComputeConfig::unpack_to_dest_mode: the 32-bit values of these circular buffers reach the
/// destination registers unshortened.
std::vector<tt::tt_metal::UnpackToDestMode> unpack_to_fp32(
    std::initializer_list<std::uint8_t> circular_buffers);

/// The coordinates on the NoC of the core in that column and row.
std::uint32_t noc_x(const tt::tt_metal::distributed::MeshDevice& device, std::size_t column,
                    std::size_t row);
std::uint32_t noc_y(const tt::tt_metal::distributed::MeshDevice& device, std::size_t column,
                    std::size_t row);

/// The path of a kernel. Kernels are searched for in the folder given by the environment variable
/// TTCODEGEN_KERNELS, in `kernels` next to the binary or one level up, and in `build_directory`.
std::string kernel_file(const std::string& name, const std::string& build_directory);

}  // namespace support
