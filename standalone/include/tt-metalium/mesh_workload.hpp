#pragma once

#include <memory>
#include <unordered_map>

#include "tt-metalium/host_api.hpp"
#include "tt-metalium/mesh_buffer.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/mesh_device.hpp"

namespace tt::tt_metal::distributed {

class MeshCommandQueue;
class MeshWorkloadImpl;

/// Programs for parts of a mesh.
class MeshWorkload {
  public:
    MeshWorkload();
    ~MeshWorkload();
    MeshWorkload(MeshWorkload&& other) noexcept;
    MeshWorkload& operator=(MeshWorkload&& other) noexcept;

    /// @throws std::runtime_error if the range overlaps that of another program.
    void add_program(const MeshCoordinateRange& device_range, Program&& program);
    std::unordered_map<MeshCoordinateRange, Program>& get_programs();
    const std::unordered_map<MeshCoordinateRange, Program>& get_programs() const;

    MeshWorkloadImpl& impl() { return *pimpl_; }

  private:
    std::unique_ptr<MeshWorkloadImpl> pimpl_;
};

}  // namespace tt::tt_metal::distributed
