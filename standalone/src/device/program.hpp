/// Implementation of programs of the host API.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/architecture.hpp"
#include "device/kernel_compiler.hpp"
#include "tt-metalium/circular_buffer_config.hpp"
#include "tt-metalium/kernel_types.hpp"
#include "tt-metalium/program.hpp"
#include "tt-metalium/runtime_args_data.hpp"
#include "ttcodegen/device/processor.hpp"
#include "ttcodegen/device/report.hpp"

namespace ttcodegen::device {

using KernelConfig = std::variant<tt::tt_metal::DataMovementConfig, tt::tt_metal::ComputeConfig>;

struct Kernel {
    KernelSource source;
    KernelConfig config;
    tt::tt_metal::CoreRangeSet cores;
    std::vector<std::vector<tt::tt_metal::RuntimeArgsData>>
        argument_views;  ///< By x, then y, as the API has it.
    std::map<CoreCoord, std::vector<std::uint32_t>> arguments;
    std::vector<std::uint32_t> common_arguments;
    tt::tt_metal::RuntimeArgsData common_view{nullptr, 0};
    bool common_set = false;
    const LoadedKernel* loaded = nullptr;  ///< Set when the program is compiled.

    ProcessorKind processor() const;
    std::uint8_t noc() const;
    const std::unordered_map<std::string, std::uint32_t>& named_arguments() const;
    /// The name of circular buffer `index` in diagnostics: a named argument of that value with "cb"
    /// in its name; empty if there is none.
    std::string circular_buffer_name(std::uint32_t index) const;
};

/// The cores of an API specification.
tt::tt_metal::CoreRangeSet core_range_set(
    const std::variant<CoreCoord, tt::tt_metal::CoreRange, tt::tt_metal::CoreRangeSet>& cores);
/// The cores of a set, in row-major order within its ranges.
std::vector<CoreCoord> cores_of(const tt::tt_metal::CoreRangeSet& cores);

}  // namespace ttcodegen::device

namespace tt::tt_metal {

class CircularBufferImpl {
  public:
    CircularBufferImpl(CBHandle id, CoreRangeSet cores, const CircularBufferConfig& config)
        : id(id), cores(std::move(cores)), config(config) {}

    CBHandle id;
    CoreRangeSet cores;
    CircularBufferConfig config;
    std::uint32_t address = 0;  ///< Offset in L1; set when the program's buffers are placed.

    std::uint32_t page_size(std::uint32_t index) const;
    std::uint32_t tile_size(std::uint32_t index) const;
    Tile tile(std::uint32_t index) const;
};

struct ProgramSemaphore {
    CoreRangeSet cores;
    std::uint32_t id;
    std::uint32_t initial_value;
};

namespace detail {

class ProgramImpl {
  public:
    std::vector<std::unique_ptr<ttcodegen::device::Kernel>> kernels;
    std::vector<std::unique_ptr<CircularBufferImpl>> circular_buffers;
    std::vector<ProgramSemaphore> semaphores;
    std::vector<std::shared_ptr<Buffer>> owned_buffers;
    ProgramId runtime_id = 0;
    /// Report of the last run; see ttcodegen/device/report.hpp.
    ttcodegen::device::ProgramReport report;

    /// @throws std::runtime_error if there is no such kernel or circular buffer.
    ttcodegen::device::Kernel& kernel(KernelHandle handle);
    CircularBufferImpl& circular_buffer(CBHandle handle);
};

}  // namespace detail

}  // namespace tt::tt_metal
