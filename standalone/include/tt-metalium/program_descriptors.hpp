#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tt-metalium/base_types.hpp"
#include "tt-metalium/circular_buffer_constants.h"
#include "tt-metalium/constants.hpp"
#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/kernel_types.hpp"
#include "tt-metalium/mesh_coord.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"
#include "tt_stl/small_vector.hpp"
#include "umd/device/types/core_coordinates.hpp"

// Declarative descriptions of programs.
namespace tt::tt_metal {

struct Tile;
class Buffer;
namespace experimental {
class GlobalCircularBuffer;
}  // namespace experimental

struct TileDescriptor {
    TileDescriptor() = default;
    TileDescriptor(const Tile& tile);
    TileDescriptor(std::uint32_t height, std::uint32_t width, bool transpose)
        : height(height), width(width), transpose(transpose) {}

    std::uint32_t height = constants::TILE_HEIGHT;
    std::uint32_t width = constants::TILE_WIDTH;
    bool transpose = false;

    bool operator==(const TileDescriptor& other) const {
        return height == other.height && width == other.width && transpose == other.transpose;
    }
};

/// The format of one index of a circular buffer.
struct CBFormatDescriptor {
    std::uint8_t buffer_index = 0;
    tt::DataFormat data_format = tt::DataFormat::Float32;
    std::uint32_t page_size = 0;
    std::optional<TileDescriptor> tile;
};

/// The memory of a circular buffer, with the indices that share it.
struct CBDescriptor {
    using FormatDescriptors = ttsl::SmallVector<CBFormatDescriptor, 1>;

    std::uint32_t total_size = 0;
    CoreRangeSet core_ranges;
    FormatDescriptors format_descriptors;
    FormatDescriptors remote_format_descriptors;

    /// The L1 buffer that provides the memory, if it is not allocated for the circular buffer.
    Buffer* buffer = nullptr;
    std::uint32_t address_offset = 0;
    const experimental::GlobalCircularBuffer* global_circular_buffer = nullptr;
};

struct SemaphoreDescriptor {
    std::uint32_t id{};
    CoreType core_type = CoreType::WORKER;
    CoreRangeSet core_ranges;
    std::uint32_t initial_value = 0;
};

struct ReaderConfigDescriptor {};
struct WriterConfigDescriptor {};
struct DataMovementConfigDescriptor {
    DataMovementProcessor processor = DataMovementProcessor::RISCV_0;
    NOC noc = NOC::RISCV_0_default;
    NOC_MODE noc_mode = NOC_MODE::DM_DEDICATED_NOC;
};
struct ComputeConfigDescriptor {
    using UnpackToDestModes = std::vector<UnpackToDestMode>;

    MathFidelity math_fidelity = MathFidelity::HiFi4;
    bool fp32_dest_acc_en = false;
    bool dst_full_sync_en = false;
    UnpackToDestModes unpack_to_dest_mode;
    bool bfp8_pack_precise = false;
    bool math_approx_mode = false;
};

/// A runtime argument that is the address of a buffer.
struct BufferBinding {
    CoreCoord core;
    std::uint32_t arg_idx;
    Buffer* buffer = nullptr;
};

struct CommonBufferBinding {
    std::uint32_t arg_idx;
    Buffer* buffer = nullptr;
};

struct KernelDescriptor {
    using CompileTimeArgs = std::vector<std::uint32_t>;
    using NamedCompileTimeArgs = std::vector<std::pair<std::string, std::uint32_t>>;
    using Defines = std::vector<std::pair<std::string, std::string>>;
    using CoreRuntimeArgs = std::vector<std::uint32_t>;
    using RuntimeArgs = std::vector<std::pair<CoreCoord, CoreRuntimeArgs>>;
    using CommonRuntimeArgs = CoreRuntimeArgs;
    using BufferBindings = ttsl::SmallVector<BufferBinding, 4>;
    using CommonBufferBindings = ttsl::SmallVector<CommonBufferBinding, 2>;
    using ConfigDescriptor = std::variant<ReaderConfigDescriptor, WriterConfigDescriptor,
                                          DataMovementConfigDescriptor, ComputeConfigDescriptor>;
    enum class SourceType { FILE_PATH, SOURCE_CODE };

    std::string kernel_source;
    SourceType source_type = SourceType::FILE_PATH;

    CoreRangeSet core_ranges;
    CompileTimeArgs compile_time_args;
    NamedCompileTimeArgs named_compile_time_args;
    Defines defines;

    RuntimeArgs runtime_args;
    CommonRuntimeArgs common_runtime_args;

    std::optional<KernelBuildOptLevel> opt_level = std::nullopt;

    ConfigDescriptor config;

    BufferBindings buffer_bindings;
    CommonBufferBindings common_buffer_bindings;

    /// Sets the runtime arguments of a core; a buffer is replaced by its address.
    void emplace_runtime_args(const CoreCoord& core,
                              std::initializer_list<std::variant<std::uint32_t, Buffer*>> args);
    void emplace_runtime_args(const CoreCoord& core,
                              const std::vector<std::variant<std::uint32_t, Buffer*>>& args);
    void emplace_common_runtime_args(
        std::initializer_list<std::variant<std::uint32_t, Buffer*>> args);
};

struct ProgramDescriptor {
    using KernelDescriptors = ttsl::SmallVector<KernelDescriptor, 3>;
    using SemaphoreDescriptors = ttsl::SmallVector<SemaphoreDescriptor, 3>;
    using CBDescriptors = ttsl::SmallVector<CBDescriptor, 5>;

    KernelDescriptors kernels;
    SemaphoreDescriptors semaphores;
    CBDescriptors cbs;
    std::optional<std::uint64_t> custom_program_hash;

    /// The lowest unused semaphore id of the core; nothing if all are in use.
    std::optional<std::uint32_t> find_available_semaphore_id(const CoreCoord& core,
                                                             CoreType core_type) const;
};

}  // namespace tt::tt_metal
