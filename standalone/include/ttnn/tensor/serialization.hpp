#pragma once

#include <cstdint>
#include <string>

#include "ttcodegen/release.hpp"
#include "ttnn/tensor/tensor.hpp"

#if TTCODEGEN_EXACT_8101
namespace ttnn {
#else
namespace tt::tt_metal {
#endif

/// The hosts of a distributed program that write; there is one here, so that both are the same.
enum class DumpTensorMode : std::uint8_t {
    DISTRIBUTED_GATHER = 0,
    LOCAL = 1,
};

/// Writes a tensor with its specification to a file, of a mesh the parts of all chips.
///
/// The file is one of this backend, for `load_tensor_flatbuffer` to read; the library neither reads
/// nor writes such files.
/// @throws std::runtime_error if the file cannot be written.
void dump_tensor_flatbuffer(const std::string& file_name, const Tensor& tensor,
                            DumpTensorMode mode = DumpTensorMode::DISTRIBUTED_GATHER);

/// The tensor of a file: on the host, or on `device` where the dumped one was.
/// @throws std::runtime_error if the file cannot be read, or `dump_tensor_flatbuffer` did not write
/// it.
Tensor load_tensor_flatbuffer(const std::string& file_name,
                              tt::tt_metal::distributed::MeshDevice* device = nullptr);

#if TTCODEGEN_EXACT_8101
}  // namespace ttnn
#else
}  // namespace tt::tt_metal

namespace ttnn {

// The names in the namespace of later releases.
using tt::tt_metal::dump_tensor_flatbuffer;
using tt::tt_metal::load_tensor_flatbuffer;

}  // namespace ttnn
#endif
