#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <tt-metalium/circular_buffer_config.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/kernel_types.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_workload.hpp>
#include <tt-metalium/program.hpp>
#include <tt-metalium/tt_backend_api_types.hpp>
#include <vector>

#include "support/device_tensor.hpp"
#include "support/kernels.hpp"

namespace support {

/// A device program that is built once and kept for further runs. Its runtime arguments are set for
/// each run, since the addresses of tensors may change.
class Workload {
  public:
    /// A workload that is not built yet.
    Workload() = default;
    /// @param kernels the kernels of the program, in an order known to the caller.
    /// @param circular_buffers its circular buffers in the memory of tensors, likewise.
    Workload(const tt::tt_metal::distributed::MeshDevice& device, tt::tt_metal::Program&& program,
             std::vector<tt::tt_metal::KernelHandle> kernels,
             std::vector<tt::tt_metal::CBHandle> circular_buffers = {});

    bool is_built() const { return workload_.has_value(); }
    tt::tt_metal::Program& program() { return workload_->get_programs().begin()->second; }
    tt::tt_metal::KernelHandle kernel(std::size_t index) const { return kernels_[index]; }

    tt::tt_metal::CBHandle circular_buffer(std::size_t index) const {
        return circular_buffers_[index];
    }

    /// Enqueues the program; does not wait for it.
    void enqueue(tt::tt_metal::distributed::MeshDevice& device);

  private:
    std::optional<tt::tt_metal::distributed::MeshWorkload> workload_;
    std::vector<tt::tt_metal::KernelHandle> kernels_;
    std::vector<tt::tt_metal::CBHandle> circular_buffers_;
};

/// Checks that the device has the cores that a program needs.
/// @throws std::runtime_error with both grids otherwise.
void require_cores(const tt::tt_metal::distributed::MeshDevice& device, const std::string& program,
                   const tt::tt_metal::CoreRange& cores);

/// Checks that the circular buffers of a program fit into a core's L1.
/// @throws std::runtime_error with both sizes otherwise.
void require_l1(const tt::tt_metal::distributed::MeshDevice& device, const std::string& program,
                std::uint64_t bytes);

/// Creates a circular buffer on each of the cores; none if it has no pages.
void create_circular_buffer(tt::tt_metal::Program& program, const tt::tt_metal::CoreRange& cores,
                            std::uint8_t index, tt::DataFormat data_format, std::uint32_t pages,
                            std::uint32_t page_size);

/// Creates a circular buffer on each of the cores in the core's shard of an L1 tensor.
tt::tt_metal::CBHandle create_circular_buffer_in(const DeviceTensor& tensor,
                                                 tt::tt_metal::Program& program,
                                                 const tt::tt_metal::CoreRange& cores,
                                                 std::uint8_t index, tt::DataFormat data_format,
                                                 std::uint32_t pages, std::uint32_t page_size);

/// Moves a circular buffer to the shards of another tensor of the same layout.
void move_circular_buffer(tt::tt_metal::Program& program, tt::tt_metal::CBHandle circular_buffer,
                          const DeviceTensor& tensor);

/// The compile-time arguments of a kernel's TensorAccessorArgs, one tensor after the
/// other.
std::vector<std::uint32_t> accessor_args(std::initializer_list<const DeviceTensor*> tensors);

}  // namespace support
