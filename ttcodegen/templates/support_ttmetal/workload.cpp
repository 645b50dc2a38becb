#include "support/workload.hpp"

#include <stdexcept>
#include <tt-metalium/circular_buffer_config.hpp>
#include <tt-metalium/distributed.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/tensor_accessor_args.hpp>
#include <utility>

namespace support {

using tt::tt_metal::CBHandle;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::KernelHandle;
using tt::tt_metal::distributed::MeshCoordinateRange;
using tt::tt_metal::distributed::MeshDevice;

Workload::Workload(const MeshDevice& device, tt::tt_metal::Program&& program,
                   std::vector<KernelHandle> kernels, std::vector<CBHandle> circular_buffers)
    : workload_(std::in_place),
      kernels_(std::move(kernels)),
      circular_buffers_(std::move(circular_buffers)) {
    workload_->add_program(MeshCoordinateRange(device.shape()), std::move(program));
}

void Workload::enqueue(MeshDevice& device) {
    EnqueueMeshWorkload(device.mesh_command_queue(), *workload_, /*blocking=*/false);
}

void require_cores(const MeshDevice& device, const std::string& program, const CoreRange& cores) {
    const CoreCoord grid = device.compute_with_storage_grid_size();
    if (cores.end_coord.x >= grid.x || cores.end_coord.y >= grid.y) {
        throw std::runtime_error(
            "'" + program + "' runs on " + std::to_string(cores.end_coord.x + 1) + " columns and " +
            std::to_string(cores.end_coord.y + 1) + " rows of cores, but the device has " +
            std::to_string(grid.x) + " columns and " + std::to_string(grid.y) +
            " rows: make its grid smaller in src/tuning.hpp, or compile for this device");
    }
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

CBHandle create_circular_buffer_in(const DeviceTensor& tensor, tt::tt_metal::Program& program,
                                   const CoreRange& cores, std::uint8_t index,
                                   tt::DataFormat data_format, std::uint32_t pages,
                                   std::uint32_t page_size) {
    tt::tt_metal::CircularBufferConfig config(pages * page_size, {{index, data_format}});
    config.set_page_size(index, page_size);
    config.set_globally_allocated_address(*tensor.buffer->get_reference_buffer());
    return CreateCircularBuffer(program, cores, config);
}

void move_circular_buffer(tt::tt_metal::Program& program, CBHandle circular_buffer,
                          const DeviceTensor& tensor) {
    UpdateDynamicCircularBufferAddress(program, circular_buffer,
                                       *tensor.buffer->get_reference_buffer());
}

std::vector<std::uint32_t> accessor_args(std::initializer_list<const DeviceTensor*> tensors) {
    std::vector<std::uint32_t> args;
    for (const DeviceTensor* tensor : tensors) {
        tt::tt_metal::TensorAccessorArgs(*tensor->buffer).append_to(args);
    }
    return args;
}

}  // namespace support
