#pragma once

// The processes that run a program together, and the chips of a mesh that each of them has: a block
// of rows and columns in row-major order, as many as every other. The parts of a tensor on chips of
// other processes have a specification, but no elements.

#include <cstddef>
#include <vector>

#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

/// The chips of a mesh that this process has.
struct LocalChips {
    std::size_t begin;
    std::size_t end;
    std::size_t of;

    bool contains(std::size_t chip) const { return begin <= chip && chip < end; }
    bool are_all() const { return end - begin == of; }
    /// The process that has a chip.
    std::size_t rank_of(std::size_t chip) const { return chip / (end - begin); }
};

/// @throws std::runtime_error if the chips do not divide among the processes.
LocalChips local_chips(std::size_t chips);

/// Returns whether this process is the first one, which writes reports.
bool is_first_rank();

/// The part of a chip of another process: what is known of it without its elements.
Tensor remote_part(const tt::tt_metal::TensorSpec& spec, MeshDevice* device);

/// Returns whether a tensor is such a part.
bool is_remote(const Tensor& tensor);

/// The parts of a mesh tensor with the elements of all of them. Every process has to call it.
std::vector<Tensor> gathered_parts(const Tensor& tensor);

/// One of these parts, sent to all processes, each of which has to call it.
Tensor broadcast_part(const Tensor& tensor, std::size_t chip);

}  // namespace ttcodegen::cpu
