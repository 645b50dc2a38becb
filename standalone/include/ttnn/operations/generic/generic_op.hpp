#pragma once

#include <vector>

#include "tt-metalium/experimental/mesh_program_descriptor.hpp"
#include "tt-metalium/program_descriptors.hpp"
#include "ttnn/types.hpp"

// Custom device programs as ttnn operations.
namespace ttnn {

/// Runs programs on the devices of a mesh.
/// @param io_tensors All tensors that the programs read or write, on the device. The last one is
/// the output.
/// @return The output.
Tensor generic_op(const std::vector<Tensor>& io_tensors,
                  const tt::tt_metal::experimental::MeshProgramDescriptor& mesh_program_descriptor);

/// Runs a program on each device.
Tensor generic_op(const std::vector<Tensor>& io_tensors,
                  const tt::tt_metal::ProgramDescriptor& program_descriptor);

}  // namespace ttnn
