#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <tt-metalium/base_types.hpp>
#include <tt-metalium/core_coord.hpp>
#include <tt-metalium/kernel_types.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_workload.hpp>
#include <tt-metalium/program.hpp>
#include <tt-metalium/tt_backend_api_types.hpp>
#include <vector>

#include "support/device_tensor.hpp"

namespace support {

/// A program of the device that is kept for further runs. It is built once; its run-time arguments
/// are set for each run, since the addresses of tensors may change.
class Workload {
  public:
    /// One that is not built yet.
    Workload() = default;
    /// @param kernels the kernels of the program, in an order that the caller knows.
    Workload(const tt::tt_metal::distributed::MeshDevice& device, tt::tt_metal::Program&& program,
             std::vector<tt::tt_metal::KernelHandle> kernels);

    bool is_built() const { return workload_.has_value(); }
    tt::tt_metal::Program& program() { return workload_->get_programs().begin()->second; }
    tt::tt_metal::KernelHandle kernel(std::size_t index) const { return kernels_[index]; }

    /// Enqueues the program; does not wait for it.
    void enqueue(tt::tt_metal::distributed::MeshDevice& device);

  private:
    std::optional<tt::tt_metal::distributed::MeshWorkload> workload_;
    std::vector<tt::tt_metal::KernelHandle> kernels_;
};

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

/// Checks that a core's L1 has room for the circular buffers of a program.
/// @throws std::runtime_error with both figures if they are too large.
void require_l1(const tt::tt_metal::distributed::MeshDevice& device, const std::string& program,
                std::uint64_t bytes);

/// Gives each of the cores a circular buffer; none if it has no pages.
void create_circular_buffer(tt::tt_metal::Program& program, const tt::tt_metal::CoreRange& cores,
                            std::uint8_t index, tt::DataFormat data_format, std::uint32_t pages,
                            std::uint32_t page_size);

/// The compile-time arguments that give a kernel's TensorAccessorArgs where the pages of tensors
/// lie, one tensor after the other.
std::vector<std::uint32_t> accessor_args(std::initializer_list<const DeviceTensor*> tensors);

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
