#include "support/workload.hpp"

#include <tt-metalium/circular_buffer_constants.h>

#include <stdexcept>
#include <tt-metalium/circular_buffer_config.hpp>
#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>
#include <utility>

#include "support/files.hpp"

namespace support {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::KernelHandle;
using tt::tt_metal::UnpackToDestMode;
using tt::tt_metal::distributed::MeshCoordinateRange;
using tt::tt_metal::distributed::MeshDevice;

Workload::Workload(const MeshDevice& device, tt::tt_metal::Program&& program,
                   std::vector<KernelHandle> kernels)
    : workload_(std::in_place), kernels_(std::move(kernels)) {
    workload_->add_program(MeshCoordinateRange(device.shape()), std::move(program));
}

void Workload::enqueue(MeshDevice& device) {
    EnqueueMeshWorkload(device.mesh_command_queue(), *workload_, /*blocking=*/false);
}

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

void require_l1(const MeshDevice& device, const std::string& program, std::uint64_t bytes) {
    const std::uint64_t room = device.l1_size_per_core();
    if (bytes > room) {
        throw std::runtime_error("the circular buffers of '" + program + "' take " +
                                 std::to_string(bytes) + " bytes of each core's L1, which has " +
                                 std::to_string(room) +
                                 ": make blocks smaller or buffers less deep in src/tuning.hpp");
    }
}

void create_circular_buffer(tt::tt_metal::Program& program, const CoreRange& cores,
                            std::uint8_t index, tt::DataFormat data_format, std::uint32_t pages,
                            std::uint32_t page_size) {
    if (pages == 0) {
        return;
    }
    tt::tt_metal::CircularBufferConfig config(pages * page_size, {{index, data_format}});
    config.set_page_size(index, page_size);
    CreateCircularBuffer(program, cores, config);
}

std::vector<std::uint32_t> accessor_args(std::initializer_list<const DeviceTensor*> tensors) {
    std::vector<std::uint32_t> args;
    for (const DeviceTensor* tensor : tensors) {
        tt::tt_metal::TensorAccessorArgs(*tensor->buffer).append_to(args);
    }
    return args;
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
