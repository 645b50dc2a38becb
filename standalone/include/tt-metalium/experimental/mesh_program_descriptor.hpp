#pragma once

#include <utility>
#include <vector>

#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/program_descriptors.hpp"

namespace tt::tt_metal::experimental {

/// The programs of the devices of a mesh.
struct MeshProgramDescriptor {
    using MeshPrograms =
        std::vector<std::pair<distributed::MeshCoordinateRange, ProgramDescriptor>>;
    MeshPrograms mesh_programs;
};

}  // namespace tt::tt_metal::experimental
