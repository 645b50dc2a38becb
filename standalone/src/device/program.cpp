#include "device/program.hpp"

#include <algorithm>

#include "core/describe.hpp"
#include "device/architecture.hpp"
#include "device/compute/hooks.hpp"
#include "tt-metalium/circular_buffer.hpp"
#include "tt-metalium/host_api.hpp"

namespace ttcodegen::device {

using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;

ProcessorKind Kernel::processor() const {
    const auto* movement = std::get_if<tt::tt_metal::DataMovementConfig>(&config);
    if (movement == nullptr) {
        return ProcessorKind::Compute;
    }
    return movement->processor == tt::tt_metal::DataMovementProcessor::RISCV_0
               ? ProcessorKind::DataMovement0
               : ProcessorKind::DataMovement1;
}

std::uint8_t Kernel::noc() const {
    const auto* movement = std::get_if<tt::tt_metal::DataMovementConfig>(&config);
    return movement == nullptr ? 0 : static_cast<std::uint8_t>(movement->noc);
}

const std::unordered_map<std::string, std::uint32_t>& Kernel::named_arguments() const {
    return std::visit([](const auto& known) -> const auto& { return known.named_compile_args; },
                      config);
}

std::string Kernel::circular_buffer_name(std::uint32_t index) const {
    std::string found;
    for (const auto& [name, value] : named_arguments()) {
        // Several names of one buffer are possible, so the choice must not depend on the order.
        const bool names_buffer = value == index && name.find("cb") != std::string::npos &&
                                  name.find("num") == std::string::npos;
        if (names_buffer && (found.empty() || name < found)) {
            found = name;
        }
    }
    return found;
}

CoreRangeSet core_range_set(const std::variant<CoreCoord, CoreRange, CoreRangeSet>& cores) {
    if (const auto* core = std::get_if<CoreCoord>(&cores)) {
        return CoreRangeSet(CoreRange(*core));
    }
    if (const auto* range = std::get_if<CoreRange>(&cores)) {
        return CoreRangeSet(*range);
    }
    return std::get<CoreRangeSet>(cores);
}

std::vector<CoreCoord> cores_of(const CoreRangeSet& cores) {
    std::vector<CoreCoord> all;
    for (const CoreRange& range : cores.ranges()) {
        for (std::size_t y = range.start_coord.y; y <= range.end_coord.y; ++y) {
            for (std::size_t x = range.start_coord.x; x <= range.end_coord.x; ++x) {
                all.push_back({x, y});
            }
        }
    }
    return all;
}

}  // namespace ttcodegen::device

namespace tt::tt_metal {

using ttcodegen::device::core_range_set;
using ttcodegen::device::cores_of;
using ttcodegen::device::Kernel;
using ttcodegen::device::KernelConfig;

using ttcodegen::device::KernelSource;
using ttcodegen::device::ProcessorKind;

namespace detail {

Kernel& ProgramImpl::kernel(KernelHandle handle) {
    TT_FATAL(handle < kernels.size(), "The program has no kernel {}", handle);
    return *kernels[handle];
}

CircularBufferImpl& ProgramImpl::circular_buffer(CBHandle handle) {
    TT_FATAL(handle < circular_buffers.size(),
             "No circular buffer with id {} exists in the program", handle);
    return *circular_buffers[handle];
}

}  // namespace detail

Program::Program() : internal_(std::make_shared<detail::ProgramImpl>()) {}
Program::Program(std::shared_ptr<detail::ProgramImpl> impl) : internal_(std::move(impl)) {}
Program::~Program() noexcept = default;
Program::Program(Program&& other) noexcept = default;
Program& Program::operator=(Program&& other) noexcept = default;
void Program::set_runtime_id(ProgramId id) { internal_->runtime_id = id; }
ProgramId Program::get_runtime_id() const { return internal_->runtime_id; }

std::vector<std::shared_ptr<CircularBuffer>> Program::circular_buffers() const {
    std::vector<std::shared_ptr<CircularBuffer>> all;
    for (const auto& buffer : internal_->circular_buffers) {
        all.push_back(std::make_shared<CircularBuffer>(buffer.get()));
    }
    return all;
}

namespace {

void check_grid(const CoreRangeSet& cores, const char* what) {
    const CoreCoord grid = ttcodegen::device::default_architecture().worker_grid;
    for (const CoreRange& range : cores.ranges()) {
        TT_FATAL(range.end_coord.x < grid.x && range.end_coord.y < grid.y,
                 "{} on cores {} exceeds the device's grid of {}x{} cores", what, range.str(),
                 grid.x, grid.y);
    }
}

/// Checks that two kernels of a core have different processors and, for data movement, NoCs.
void check_overlap(const Kernel& other, const Kernel& added) {
    const bool same_processor = other.processor() == added.processor();
    const auto* first = std::get_if<DataMovementConfig>(&other.config);
    const auto* second = std::get_if<DataMovementConfig>(&added.config);
    const bool same_noc = first != nullptr && second != nullptr && first->noc == second->noc &&
                          first->noc_mode == NOC_MODE::DM_DEDICATED_NOC &&
                          second->noc_mode == NOC_MODE::DM_DEDICATED_NOC;
    for (const CoreCoord& core : cores_of(added.cores)) {
        if (!other.cores.contains(core)) {
            continue;
        }
        TT_FATAL(!same_processor,
                 "Core Overlap Between (\"{}\") and new kernel (\"{}\") at (x={},y={})",
                 other.source.name, added.source.name, core.x, core.y);
        TT_FATAL(!same_noc,
                 "Illegal NOC usage: data movement kernels \"{}\" and \"{}\" on logical core "
                 "(x={},y={}) cannot use the same NOC, doing so results in hangs!",
                 other.source.name, added.source.name, core.x, core.y);
    }
}

KernelHandle add_kernel(Program& program, KernelSource source, const CoreRangeSet& cores,
                        const KernelConfig& config) {
    TT_FATAL(!cores.empty(), "Kernel {} is placed on no core", source.name);
    check_grid(cores, "Kernel");
    auto kernel = std::make_unique<Kernel>();
    kernel->source = std::move(source);
    kernel->config = config;
    kernel->cores = cores;
    if (const auto* movement = std::get_if<DataMovementConfig>(&config)) {
        TT_FATAL(movement->processor <= DataMovementProcessor::RISCV_1,
                 "Tensix cores have the data movement processors RISCV_0 and RISCV_1 only");
    }
    auto& kernels = program.impl().kernels;
    for (const auto& other : kernels) {
        check_overlap(*other, *kernel);
    }
    // As in the API: one entry for each core of the grid, up to the last with the kernel.
    const CoreCoord last = cores.bounding_box().end_coord;
    kernel->argument_views.assign(
        last.x + 1, std::vector<RuntimeArgsData>(last.y + 1, RuntimeArgsData{nullptr, 0}));
    kernels.push_back(std::move(kernel));
    return static_cast<KernelHandle>(kernels.size() - 1);
}

void check_argument_count(const Kernel& kernel, std::size_t unique, std::size_t common) {
    TT_FATAL(
        unique + common <= ttcodegen::device::kMaxRuntimeArguments,
        "{} unique and {} common runtime args targeting kernel {} are too large. Max allowable "
        "is {}",
        unique, common, kernel.source.name, ttcodegen::device::kMaxRuntimeArguments);
}

void set_arguments(Kernel& kernel, const CoreCoord& core, ttsl::Span<const std::uint32_t> values) {
    TT_FATAL(kernel.cores.contains(core),
             "Cannot set runtime args for core (x={},y={}) since kernel {} is not placed on it!",
             core.x, core.y, kernel.source.name);
    check_argument_count(kernel, values.size(), kernel.common_arguments.size());
    auto& arguments = kernel.arguments[core];
    TT_FATAL(
        arguments.empty() || arguments.size() == values.size(),
        "Illegal Runtime Args on (x={},y={}): Number of runtime args cannot be modified from {} "
        "to {}!",
        core.x, core.y, arguments.size(), values.size());
    arguments.assign(values.begin(), values.end());
    kernel.argument_views[core.x][core.y] = {arguments.data(), arguments.size()};
}

detail::ProgramImpl& impl_of(const Program& program) {
    // The API modifies arguments of programs that it takes as const.
    return const_cast<Program&>(program).impl();
}

}  // namespace

std::size_t GetNumAvailableDevices() { return 1; }
std::size_t GetNumPCIeDevices() { return 1; }

Program CreateProgram() { return Program(); }

KernelHandle CreateKernel(Program& program, const std::string& file_name,
                          const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                          const std::variant<DataMovementConfig, ComputeConfig>& config) {
    return add_kernel(program, KernelSource::from_file(file_name), core_range_set(core_spec),
                      config);
}

KernelHandle CreateKernelFromString(
    Program& program, const std::string& kernel_src_code,
    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
    const std::variant<DataMovementConfig, ComputeConfig>& config) {
    return add_kernel(program, KernelSource::from_text(kernel_src_code), core_range_set(core_spec),
                      config);
}

CBHandle CreateCircularBuffer(Program& program,
                              const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                              const CircularBufferConfig& config) {
    const CoreRangeSet cores = core_range_set(core_spec);
    check_grid(cores, "Circular buffer");
    auto& buffers = program.impl().circular_buffers;
    for (const auto& other : buffers) {
        for (const std::uint8_t index : config.buffer_indices()) {
            if (!other->config.buffer_indices().contains(index)) {
                continue;
            }
            for (const CoreCoord& core : cores_of(cores)) {
                TT_FATAL(!other->cores.contains(core),
                         "Invalid circular buffer index: Cannot add circular buffer at index {}, "
                         "another circular buffer already exists",
                         static_cast<std::uint32_t>(index));
            }
        }
    }
    buffers.push_back(std::make_unique<CircularBufferImpl>(buffers.size(), cores, config));
    return buffers.back()->id;
}

const CircularBufferConfig& GetCircularBufferConfig(Program& program, CBHandle cb_handle) {
    return program.impl().circular_buffer(cb_handle).config;
}

void UpdateCircularBufferTotalSize(Program& program, CBHandle cb_handle, std::uint32_t total_size) {
    program.impl().circular_buffer(cb_handle).config.set_total_size(total_size);
}

void UpdateCircularBufferPageSize(Program& program, CBHandle cb_handle, std::uint8_t buffer_index,
                                  std::uint32_t page_size) {
    program.impl().circular_buffer(cb_handle).config.set_page_size(buffer_index, page_size);
}

void UpdateDynamicCircularBufferAddress(Program& program, CBHandle cb_handle,
                                        const Buffer& buffer) {
    program.impl().circular_buffer(cb_handle).config.set_globally_allocated_address(buffer);
}

void UpdateDynamicCircularBufferAddressAndTotalSize(Program& program, CBHandle cb_handle,
                                                    const Buffer& buffer,
                                                    std::uint32_t total_size) {
    program.impl().circular_buffer(cb_handle).config.set_globally_allocated_address_and_total_size(
        buffer, total_size);
}

std::uint32_t CreateSemaphore(Program& program,
                              const std::variant<CoreRange, CoreRangeSet>& core_spec,
                              std::uint32_t initial_value) {
    const auto* range = std::get_if<CoreRange>(&core_spec);
    const CoreRangeSet cores =
        range != nullptr ? CoreRangeSet(*range) : std::get<CoreRangeSet>(core_spec);
    TT_FATAL(!cores.empty(), "Expecting a non-empty CoreRangeSet!");
    check_grid(cores, "Semaphore");
    auto& semaphores = program.impl().semaphores;
    const auto is_taken = [&](std::uint32_t id) {
        return std::any_of(semaphores.begin(), semaphores.end(), [&](const auto& semaphore) {
            const auto& ranges = cores.ranges();
            return semaphore.id == id &&
                   std::any_of(ranges.begin(), ranges.end(), [&](const CoreRange& wanted) {
                       const auto& taken = semaphore.cores.ranges();
                       return std::any_of(taken.begin(), taken.end(), [&](const CoreRange& other) {
                           return other.intersects(wanted);
                       });
                   });
        });
    };
    std::uint32_t id = 0;
    while (id < ttcodegen::device::kMaxSemaphores && is_taken(id)) {
        ++id;
    }
    TT_FATAL(id < ttcodegen::device::kMaxSemaphores,
             "Cannot add semaphore on cores {}. Max number of semaphores ({}) reached!",
             cores.str(), ttcodegen::device::kMaxSemaphores);
    semaphores.push_back({cores, id, initial_value});
    return id;
}

void AssignGlobalBufferToProgram(const std::shared_ptr<Buffer>& buffer, Program& program) {
    program.impl().owned_buffers.push_back(buffer);
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                    ttsl::Span<const std::uint32_t> runtime_args) {
    for (const CoreCoord& core : cores_of(core_range_set(core_spec))) {
        set_arguments(impl_of(program).kernel(kernel), core, runtime_args);
    }
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::variant<CoreCoord, CoreRange, CoreRangeSet>& core_spec,
                    std::initializer_list<std::uint32_t> runtime_args) {
    SetRuntimeArgs(program, kernel, core_spec,
                   ttsl::Span<const std::uint32_t>(runtime_args.begin(), runtime_args.size()));
}

void SetRuntimeArgs(const Program& program, KernelHandle kernel,
                    const std::vector<CoreCoord>& core_spec,
                    const std::vector<std::vector<std::uint32_t>>& runtime_args) {
    TT_FATAL(core_spec.size() == runtime_args.size(),
             "Mistmatch between number of cores {} and number of runtime args {} getting updated",
             core_spec.size(), runtime_args.size());
    for (std::size_t i = 0; i < core_spec.size(); ++i) {
        set_arguments(impl_of(program).kernel(kernel), core_spec[i], runtime_args[i]);
    }
}

void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id,
                          ttsl::Span<const std::uint32_t> runtime_args) {
    Kernel& kernel = impl_of(program).kernel(kernel_id);
    TT_FATAL(!kernel.common_set,
             "Illegal Common Runtime Args: Can only set common runtime args once");
    std::size_t unique = 0;
    for (const auto& [core, arguments] : kernel.arguments) {
        unique = std::max(unique, arguments.size());
    }
    check_argument_count(kernel, unique, runtime_args.size());
    kernel.common_arguments.assign(runtime_args.begin(), runtime_args.end());
    kernel.common_view = {kernel.common_arguments.data(), kernel.common_arguments.size()};
    kernel.common_set = true;
}

void SetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id,
                          std::initializer_list<std::uint32_t> runtime_args) {
    SetCommonRuntimeArgs(
        program, kernel_id,
        ttsl::Span<const std::uint32_t>(runtime_args.begin(), runtime_args.size()));
}

RuntimeArgsData& GetRuntimeArgs(const Program& program, KernelHandle kernel_id,
                                const CoreCoord& logical_core) {
    Kernel& kernel = impl_of(program).kernel(kernel_id);
    TT_FATAL(kernel.cores.contains(logical_core),
             "Cannot get runtime args for kernel {} that is not placed on core (x={},y={})",
             kernel.source.name, logical_core.x, logical_core.y);
    return kernel.argument_views[logical_core.x][logical_core.y];
}

std::vector<std::vector<RuntimeArgsData>>& GetRuntimeArgs(const Program& program,
                                                          KernelHandle kernel_id) {
    return impl_of(program).kernel(kernel_id).argument_views;
}

RuntimeArgsData& GetCommonRuntimeArgs(const Program& program, KernelHandle kernel_id) {
    return impl_of(program).kernel(kernel_id).common_view;
}

ReaderDataMovementConfig::ReaderDataMovementConfig(
    std::vector<std::uint32_t> compile_args, std::map<std::string, std::string> defines,
    std::unordered_map<std::string, std::uint32_t> named_compile_args,
    KernelBuildOptLevel opt_level)
    : DataMovementConfig{.processor = DataMovementProcessor::RISCV_1,
                         .noc = detail::preferred_noc_for_dram_read(
                             ttcodegen::device::default_architecture().arch),
                         .noc_mode = NOC_MODE::DM_DEDICATED_NOC,
                         .compile_args = std::move(compile_args),
                         .defines = std::move(defines),
                         .named_compile_args = std::move(named_compile_args),
                         .opt_level = opt_level} {}

WriterDataMovementConfig::WriterDataMovementConfig(
    std::vector<std::uint32_t> compile_args, std::map<std::string, std::string> defines,
    std::unordered_map<std::string, std::uint32_t> named_compile_args,
    KernelBuildOptLevel opt_level)
    : DataMovementConfig{.processor = DataMovementProcessor::RISCV_0,
                         .noc = detail::preferred_noc_for_dram_write(
                             ttcodegen::device::default_architecture().arch),
                         .noc_mode = NOC_MODE::DM_DEDICATED_NOC,
                         .compile_args = std::move(compile_args),
                         .defines = std::move(defines),
                         .named_compile_args = std::move(named_compile_args),
                         .opt_level = opt_level} {}

}  // namespace tt::tt_metal

namespace ttcodegen::device {

const ProgramReport& program_report(const tt::tt_metal::Program& program) {
    return program.impl().report;
}

}  // namespace ttcodegen::device
