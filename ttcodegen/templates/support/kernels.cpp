#include "support/kernels.hpp"

#include <tt-metalium/circular_buffer_constants.h>

#include "support/files.hpp"

namespace support {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::UnpackToDestMode;
using tt::tt_metal::distributed::MeshDevice;

std::vector<CoreCoord> each_core(const CoreRange& cores) {
    std::vector<CoreCoord> found;
    for (std::size_t row = cores.start_coord.y; row <= cores.end_coord.y; ++row) {
        for (std::size_t column = cores.start_coord.x; column <= cores.end_coord.x; ++column) {
            found.emplace_back(column, row);
        }
    }
    return found;
}

std::vector<CoreWork> split_work(const CoreRange& cores, std::uint32_t units) {
    const auto count = static_cast<std::uint32_t>(cores.size());
    std::vector<CoreWork> work;
    std::uint32_t first = 0;
    for (const CoreCoord& core : each_core(cores)) {
        const bool gets_one_more = work.size() < units % count;
        const std::uint32_t share = units / count + (gets_one_more ? 1 : 0);
        work.push_back({core, first, share});
        first += share;
    }
    return work;
}

std::vector<UnpackToDestMode> unpack_to_fp32(std::initializer_list<std::uint8_t> circular_buffers) {
    std::vector<UnpackToDestMode> modes(NUM_CIRCULAR_BUFFERS, UnpackToDestMode::Default);
    for (const std::uint8_t index : circular_buffers) {
        modes[index] = UnpackToDestMode::UnpackToDestFp32;
    }
    return modes;
}

std::uint32_t noc_x(const MeshDevice& device, std::size_t column, std::size_t row) {
    return static_cast<std::uint32_t>(
        device.worker_core_from_logical_core(CoreCoord(column, row)).x);
}

std::uint32_t noc_y(const MeshDevice& device, std::size_t column, std::size_t row) {
    return static_cast<std::uint32_t>(
        device.worker_core_from_logical_core(CoreCoord(column, row)).y);
}

std::string kernel_file(const std::string& name, const std::string& build_directory) {
    const std::string installed = installed_directory("TTCODEGEN_KERNELS", "kernels");
    return (installed.empty() ? build_directory : installed) + "/" + name;
}

}  // namespace support
