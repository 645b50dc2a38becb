#include "tt-metalium/program_descriptors.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/describe.hpp"
#include "device/architecture.hpp"
#include "device/program.hpp"
#include "tt-metalium/buffer.hpp"
#include "tt-metalium/host_api.hpp"
#include "tt-metalium/tile.hpp"

namespace tt::tt_metal {

namespace {

using ttcodegen::device::kMaxSemaphores;

CircularBufferConfig config_of(const CBDescriptor& descriptor) {
    TT_FATAL(descriptor.global_circular_buffer == nullptr &&
                 descriptor.remote_format_descriptors.empty(),
             "The CPU backend has no global circular buffers");
    TT_FATAL(descriptor.address_offset == 0,
             "The CPU backend has no circular buffers that begin inside of a buffer");
    std::map<std::uint8_t, tt::DataFormat> formats;
    for (const CBFormatDescriptor& format : descriptor.format_descriptors) {
        formats[format.buffer_index] = format.data_format;
    }
    auto config = descriptor.buffer == nullptr
                      ? CircularBufferConfig(descriptor.total_size, formats)
                      : CircularBufferConfig(descriptor.total_size, formats, *descriptor.buffer);
    for (const CBFormatDescriptor& format : descriptor.format_descriptors) {
        config.set_page_size(format.buffer_index, format.page_size);
        if (format.tile) {
            config.set_tile_dims(
                format.buffer_index,
                Tile({format.tile->height, format.tile->width}, format.tile->transpose));
        }
    }
    return config;
}

void add_semaphore(Program& program, const SemaphoreDescriptor& descriptor) {
    TT_FATAL(descriptor.core_type == CoreType::WORKER,
             "The CPU backend has semaphores on worker cores only");
    TT_FATAL(descriptor.id < kMaxSemaphores, "Semaphore id {} exceeds max value {}", descriptor.id,
             kMaxSemaphores - 1);
    auto& semaphores = program.impl().semaphores;
    for (const auto& other : semaphores) {
        for (const CoreCoord& core : ttcodegen::device::cores_of(descriptor.core_ranges)) {
            TT_FATAL(other.id != descriptor.id || !other.cores.contains(core),
                     "Semaphore id {} already in use on core (x={},y={})", descriptor.id, core.x,
                     core.y);
        }
    }
    semaphores.push_back({descriptor.core_ranges, descriptor.id, descriptor.initial_value});
}

/// The arguments that configs of all kernel kinds have.
template <typename Config>
Config with_arguments(Config config, const KernelDescriptor& kernel) {
    config.compile_args = kernel.compile_time_args;
    config.defines = {kernel.defines.begin(), kernel.defines.end()};
    config.named_compile_args = {kernel.named_compile_time_args.begin(),
                                 kernel.named_compile_time_args.end()};
    config.opt_level = kernel.opt_level.value_or(config.opt_level);
    return config;
}

std::variant<DataMovementConfig, ComputeConfig> config_of(const KernelDescriptor& kernel) {
    if (std::holds_alternative<ReaderConfigDescriptor>(kernel.config)) {
        return with_arguments<DataMovementConfig>(ReaderDataMovementConfig(), kernel);
    }
    if (std::holds_alternative<WriterConfigDescriptor>(kernel.config)) {
        return with_arguments<DataMovementConfig>(WriterDataMovementConfig(), kernel);
    }
    if (const auto* movement = std::get_if<DataMovementConfigDescriptor>(&kernel.config)) {
        DataMovementConfig config;
        config.processor = movement->processor;
        config.noc = movement->noc;
        config.noc_mode = movement->noc_mode;
        return with_arguments(config, kernel);
    }
    const auto& compute = std::get<ComputeConfigDescriptor>(kernel.config);
    ComputeConfig config;
    config.math_fidelity = compute.math_fidelity;
    config.fp32_dest_acc_en = compute.fp32_dest_acc_en;
    config.dst_full_sync_en = compute.dst_full_sync_en;
    config.unpack_to_dest_mode = compute.unpack_to_dest_mode;
    config.bfp8_pack_precise = compute.bfp8_pack_precise;
    config.math_approx_mode = compute.math_approx_mode;
    return with_arguments(config, kernel);
}

void add_kernel(Program& program, const KernelDescriptor& descriptor) {
    const auto config = config_of(descriptor);
    const bool is_file = descriptor.source_type == KernelDescriptor::SourceType::FILE_PATH;
    const KernelHandle kernel =
        is_file ? CreateKernel(program, descriptor.kernel_source, descriptor.core_ranges, config)
                : CreateKernelFromString(program, descriptor.kernel_source, descriptor.core_ranges,
                                         config);
    for (const auto& [core, arguments] : descriptor.runtime_args) {
        SetRuntimeArgs(program, kernel, core, arguments);
    }
    SetCommonRuntimeArgs(program, kernel, descriptor.common_runtime_args);
}

/// The arguments with addresses for buffers; `bind` is called with each buffer and its index.
template <typename Arguments, typename Bind>
std::vector<std::uint32_t> bound(const Arguments& arguments, const Bind& bind) {
    std::vector<std::uint32_t> values;
    for (const std::variant<std::uint32_t, Buffer*>& argument : arguments) {
        if (auto* const* buffer = std::get_if<Buffer*>(&argument)) {
            bind(static_cast<std::uint32_t>(values.size()), *buffer);
            values.push_back((*buffer)->address());
        } else {
            values.push_back(std::get<std::uint32_t>(argument));
        }
    }
    return values;
}

template <typename Arguments>
void emplace(KernelDescriptor& kernel, const CoreCoord& core, const Arguments& arguments) {
    kernel.runtime_args.emplace_back(core,
                                     bound(arguments, [&](std::uint32_t place, Buffer* buffer) {
                                         kernel.buffer_bindings.push_back({core, place, buffer});
                                     }));
}

}  // namespace

TileDescriptor::TileDescriptor(const Tile& tile)
    : TileDescriptor(tile.get_height(), tile.get_width(), tile.get_transpose_of_faces()) {}

void KernelDescriptor::emplace_runtime_args(
    const CoreCoord& core, std::initializer_list<std::variant<std::uint32_t, Buffer*>> args) {
    emplace(*this, core, args);
}

void KernelDescriptor::emplace_runtime_args(
    const CoreCoord& core, const std::vector<std::variant<std::uint32_t, Buffer*>>& args) {
    emplace(*this, core, args);
}

void KernelDescriptor::emplace_common_runtime_args(
    std::initializer_list<std::variant<std::uint32_t, Buffer*>> args) {
    const auto first = static_cast<std::uint32_t>(common_runtime_args.size());
    const auto values = bound(args, [&](std::uint32_t place, Buffer* buffer) {
        common_buffer_bindings.push_back({first + place, buffer});
    });
    common_runtime_args.insert(common_runtime_args.end(), values.begin(), values.end());
}

std::optional<std::uint32_t> ProgramDescriptor::find_available_semaphore_id(
    const CoreCoord& core, CoreType core_type) const {
    for (std::uint32_t id = 0; id < kMaxSemaphores; ++id) {
        if (std::ranges::none_of(semaphores, [&](const SemaphoreDescriptor& each) {
                return each.id == id && each.core_type == core_type &&
                       each.core_ranges.contains(core);
            })) {
            return id;
        }
    }
    return std::nullopt;
}

Program::Program(const ProgramDescriptor& descriptor) : Program() {
    for (const CBDescriptor& buffer : descriptor.cbs) {
        CreateCircularBuffer(*this, buffer.core_ranges, config_of(buffer));
    }
    for (const SemaphoreDescriptor& semaphore : descriptor.semaphores) {
        add_semaphore(*this, semaphore);
    }
    for (const KernelDescriptor& kernel : descriptor.kernels) {
        add_kernel(*this, kernel);
    }
}

}  // namespace tt::tt_metal
