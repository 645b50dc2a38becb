#include "device/run.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ranges>
#include <utility>

#include "device/compute/hooks.hpp"
#include "device/diagnostics.hpp"
#include "device/kernel_signals.hpp"
#include "device/kernel_stores.hpp"

namespace ttcodegen::device {

using tt::tt_metal::CircularBufferImpl;
using tt::tt_metal::ComputeConfig;

namespace {

/// Polling turns without progress after which the run counts as deadlocked.
constexpr std::uint64_t kIdleYields = 100'000;

/// The maximum number of groups of stuck processors in a message.
constexpr std::size_t kReportedWaits = 24;

void set_compute(ProcessorState& state, EmulatedDevice& device, const ComputeConfig& config) {
    ComputeSettings& settings = state.settings;
    settings.math_fidelity = static_cast<std::uint8_t>(config.math_fidelity);
    settings.fp32_dest_acc_en = config.fp32_dest_acc_en;
    settings.dst_full_sync_en = config.dst_full_sync_en;
    settings.bfp8_pack_precise = config.bfp8_pack_precise;
    settings.math_approx_mode = config.math_approx_mode;
    for (std::size_t i = 0; i < config.unpack_to_dest_mode.size() && i < kMaxCircularBuffers; ++i) {
        settings.unpack_to_dest_fp32[i] =
            config.unpack_to_dest_mode[i] == tt::tt_metal::UnpackToDestMode::UnpackToDestFp32;
    }
    Processor& processor = state.processor;
    processor.compute_settings = &settings;
    processor.compute_functions = compute_functions();
    processor.compute_state = device.compute_state(state.core->worker);
}

}  // namespace

Run::Run(EmulatedDevice& device, std::size_t chip, tt::tt_metal::detail::ProgramImpl& program)
    : device_(device),
      chip_(chip),
      program_(program),
      by_worker_(device.architecture().num_workers()) {
    place_cores();
    place_processors();
    reset_memory();
    unfinished_ = processors_.size();
    for (const auto& state : processors_) {
        state->fiber = std::make_unique<Fiber>(&Run::run_kernel, state.get(), &state->processor);
        enqueue(*state);
    }
}

Run::~Run() = default;

CoreState& Run::core_at(CoreCoord logical) {
    const std::uint32_t worker = device_.worker_index(logical);
    if (by_worker_[worker] == nullptr) {
        auto core = std::make_unique<CoreState>();
        core->worker = worker;
        core->logical = logical;
        core->noc = architecture().worker_to_noc(logical);
        core->l1 = memory().l1(worker);
        by_worker_[worker] = core.get();
        cores_.push_back(std::move(core));
    }
    return *by_worker_[worker];
}

void Run::place_cores() {
    // Interleaved L1 buffers are on all cores, even those without kernels of the program.
    const CoreCoord grid = architecture().worker_grid;
    const std::uint32_t zeros = architecture().zeros_base;
    const std::uint32_t semaphores = architecture().kernel_config_base;
    for (std::size_t y = 0; y < grid.y; ++y) {
        for (std::size_t x = 0; x < grid.x; ++x) {
            CoreState& core = core_at({x, y});
            core.regions.push_back({zeros, zeros + kZerosSize, Region::Kind::Zeros, 0});
            for (const auto& semaphore : program_.semaphores) {
                if (semaphore.cores.contains(core.logical)) {
                    const std::uint32_t at = semaphores + 16 * semaphore.id;
                    core.regions.push_back({at, at + 16, Region::Kind::Semaphores, semaphore.id});
                    core.num_semaphores = std::max(core.num_semaphores, semaphore.id + 1);
                }
            }
        }
    }
    for (const auto& buffer : program_.circular_buffers) {
        place_circular_buffers(*buffer);
    }
    for (const auto& core : cores_) {
        device_.l1().for_each([&](std::uint64_t begin, std::uint64_t end) {
            core->regions.push_back({static_cast<std::uint32_t>(begin),
                                     static_cast<std::uint32_t>(end), Region::Kind::Buffer, 0});
        });
        device_.l1_small().for_each([&](std::uint64_t begin, std::uint64_t end) {
            core->regions.push_back({static_cast<std::uint32_t>(begin),
                                     static_cast<std::uint32_t>(end), Region::Kind::Buffer, 0});
        });
        find_shared_memory(*core);
    }
}

void Run::place_circular_buffers(const CircularBufferImpl& buffer) {
    for (const CoreCoord& logical : cores_of(buffer.cores)) {
        CoreState& core = core_at(logical);
        for (const std::uint8_t index : buffer.config.local_buffer_indices()) {
            CircularBuffer& placed = core.circular_buffers[index];
            placed.pages = core.l1 + buffer.address;
            placed.page_size = buffer.page_size(index);
            placed.size = buffer.config.total_size();
            placed.num_pages = placed.size / placed.page_size;
            placed.tile_size = buffer.tile_size(index);
            placed.data_format = static_cast<std::uint8_t>(*buffer.config.data_formats()[index]);
            const tt::tt_metal::Tile tile = buffer.tile(index);
            placed.tile_height = static_cast<std::uint8_t>(tile.get_height());
            placed.tile_width = static_cast<std::uint8_t>(tile.get_width());
            placed.face_height = static_cast<std::uint8_t>(tile.get_face_shape()[0]);
            placed.num_faces = static_cast<std::uint8_t>(tile.get_num_faces());
            placed.borrowed = buffer.config.globally_allocated_address().has_value();
            core.regions.push_back({buffer.address, buffer.address + placed.size,
                                    Region::Kind::CircularBuffer, index});
        }
    }
}

void Run::find_shared_memory(CoreState& core) {
    for (const Region& region : core.regions) {
        if (region.kind != Region::Kind::CircularBuffer) {
            continue;
        }
        const auto overlaps =
            std::count_if(core.regions.begin(), core.regions.end(), [&](const Region& other) {
                return other.begin < region.end && region.begin < other.end;
            });
        core.circular_buffers[region.index].exclusive = overlaps == 1;
    }
}

void Run::place_processors() {
    for (const auto& kernel : program_.kernels) {
        const auto cores = cores_of(kernel->cores);
        for (const CoreCoord& logical : cores) {
            CoreState& core = core_at(logical);
            auto state = std::make_unique<ProcessorState>();
            state->run = this;
            state->core = &core;
            state->kernel = kernel.get();
            state->globals = kernel->loaded->globals.initial;
            Processor& processor = state->processor;
            processor.run = state.get();
            processor.functions = &device_functions();
            processor.kind = kernel->processor();
            processor.noc = kernel->noc();
            processor.logical_x = static_cast<std::uint8_t>(logical.x);
            processor.logical_y = static_cast<std::uint8_t>(logical.y);
            processor.relative_x = processor.logical_x;
            processor.relative_y = processor.logical_y;
            processor.noc_x = static_cast<std::uint8_t>(core.noc.x);
            processor.noc_y = static_cast<std::uint8_t>(core.noc.y);
            processor.l1 = core.l1;
            processor.l1_size = architecture().l1_size;
            const Mapping& arena = memory().l1_arena();
            processor.store_bounds.arena = reinterpret_cast<std::uintptr_t>(arena.data());
            processor.store_bounds.arena_bytes = arena.size();
            processor.semaphores = architecture().kernel_config_base;
            processor.num_semaphores = core.num_semaphores;
            place_arguments(*state);
            processor.num_circular_buffers = architecture().num_circular_buffers;
            processor.circular_buffers = core.circular_buffers;
            if (const auto* config = std::get_if<ComputeConfig>(&kernel->config)) {
                set_compute(*state, device_, *config);
            }
            core.processors.push_back(state.get());
            processors_.push_back(std::move(state));
        }
    }
}

void Run::place_arguments(ProcessorState& state) {
    // They are in L1, as on the device, so that kernels' address types can hold their addresses.
    Processor& processor = state.processor;
    constexpr std::uint32_t kBytes = 4 * kMaxRuntimeArguments;
    const std::uint32_t first = architecture().kernel_config_base + 16 * kMaxSemaphores;
    std::byte* place =
        processor.l1 + first + 2 * kBytes * static_cast<std::uint32_t>(processor.kind);
    const auto put = [](std::byte* to, const std::vector<std::uint32_t>& values) {
        if (!values.empty()) {
            std::memcpy(to, values.data(), 4 * values.size());
        }
        return reinterpret_cast<const std::uint32_t*>(to);
    };
    const auto unique = state.kernel->arguments.find(state.core->logical);
    if (unique != state.kernel->arguments.end()) {
        processor.arguments = put(place, unique->second);
        processor.num_arguments = static_cast<std::uint32_t>(unique->second.size());
    }
    const auto& common = state.kernel->common_arguments;
    processor.common_arguments = put(place + kBytes, common);
    processor.num_common_arguments = static_cast<std::uint32_t>(common.size());
}

void Run::reset_memory() {
    for (const auto& core : cores_) {
        for (const Region& region : core->regions) {
            if (region.kind == Region::Kind::CircularBuffer &&
                !core->circular_buffers[region.index].borrowed) {
                mark_never_written(core->l1 + region.begin, region.end - region.begin);
            }
        }
        for (const auto& semaphore : program_.semaphores) {
            if (semaphore.cores.contains(core->logical)) {
                std::byte* word = core->l1 + architecture().kernel_config_base + 16 * semaphore.id;
                std::memset(word, 0, 16);
                std::memcpy(word, &semaphore.initial_value, 4);
            }
        }
    }
}

void Run::run_kernel(void* argument) {
    auto& state = *static_cast<ProcessorState*>(argument);
    try {
        if (state.is_compute()) {
            begin_compute_kernel(state.processor);
        }
        state.kernel->loaded->entry();
        if (state.is_compute()) {
            end_compute_kernel(state.processor);
        }
        state.run->finish_kernel(state);
    } catch (const KernelFailure& failure) {
        state.run->record_failure(failure.what());
    } catch (const std::exception& error) {
        state.run->record_failure(
            failure_message(state, std::string("it throws an exception: ") + error.what()));
    }
}

void Run::finish_kernel(ProcessorState& state) {
    Processor& processor = state.processor;
    if (!state.reads.empty()) {
        fail(processor, state.reads.front().here,
             "the kernel ends while this asynchronous read is in flight: noc_async_read_barrier is "
             "missing");
    }
    if (!state.writes.empty()) {
        fail(processor, state.writes.front().here,
             "the kernel ends while this asynchronous write may still be sending: "
             "noc_async_write_barrier or noc_async_writes_flushed is missing");
    }
    if (state.pending_atomics[0] + state.pending_atomics[1] != 0) {
        fail(processor, state.last_atomic,
             "the kernel ends while this increment is in flight: noc_async_atomic_barrier is "
             "missing");
    }
    --unfinished_;
}

void Run::record_failure(std::string message) {
    if (failure_.empty()) {
        failure_ = std::move(message);
    }
}

void Run::enqueue(ProcessorState& state) {
    if (!state.queued) {
        state.queued = true;
        queue_.push_back(&state);
    }
}

void Run::wait(ProcessorState& state, const Wait& wait) {
    state.wait = wait;
    if (wait.kind == Wait::Kind::Yield) {
        enqueue(state);
    }
    state.fiber->suspend();
    state.wait.kind = Wait::Kind::None;
}

bool is_satisfied(const ProcessorState& state) {
    const Wait& wait = state.wait;
    switch (wait.kind) {
        case Wait::Kind::Front: {
            const CircularBuffer& buffer = state.core->circular_buffers[wait.cb];
            return buffer.pages_received - buffer.pages_acked >= wait.wanted;
        }
        case Wait::Kind::Back: {
            const CircularBuffer& buffer = state.core->circular_buffers[wait.cb];
            return buffer.num_pages - (buffer.pages_received - buffer.pages_acked) >= wait.wanted;
        }
        case Wait::Kind::Word: {
            std::uint32_t value;
            std::memcpy(&value, wait.word, 4);
            return wait.at_least ? value >= wait.wanted : value == wait.wanted;
        }
        default:
            return false;
    }
}

void Run::wake(CoreState& core) {
    idle_yields_ = 0;
    for (ProcessorState* state : core.processors) {
        if (!state->queued && state != running_ && is_satisfied(*state)) {
            enqueue(*state);
        }
    }
}

bool Run::wake_polled() {
    // A kernel may store to its L1 without a call, which wakes no one.
    for (const auto& state : processors_) {
        if (state->wait.kind == Wait::Kind::Word && is_satisfied(*state)) {
            enqueue(*state);
        }
    }
    return !queue_.empty();
}

void Run::switch_globals(ProcessorState& state) {
    const LoadedKernel* kernel = state.kernel->loaded;
    ProcessorState*& owner = globals_owner_[kernel];
    if (owner == &state) {
        return;
    }
    std::byte* memory = kernel->globals.memory;
    if (owner != nullptr) {
        std::memcpy(owner->globals.data(), memory, owner->globals.size());
    }
    std::memcpy(memory, state.globals.data(), state.globals.size());
    owner = &state;
}

void Run::run_queue() {
    KernelSignals signals(*this);
    const PoisonedMemory poisoned(*this);
    do {
        while (!queue_.empty() && failure_.empty()) {
            ProcessorState& state = *queue_.front();
            queue_.pop_front();
            state.queued = false;
            if (state.wait.kind == Wait::Kind::Yield && ++idle_yields_ > kIdleYields) {
                return;
            }
            if (state.wait.kind != Wait::Kind::None && state.wait.kind != Wait::Kind::Yield &&
                !is_satisfied(state)) {
                continue;  // another processor of the core was faster
            }
            signals.enter(*state.core);
            if (!state.globals.empty()) {
                switch_globals(state);
            }
            running_ = &state;
            ++resumes_;
            state.fiber->resume();
            running_ = nullptr;
        }
    } while (failure_.empty() && wake_polled());
}

void Run::release_globals() {
    for (auto& [kernel, owner] : globals_owner_) {
        if (owner != nullptr) {
            std::memcpy(owner->globals.data(), kernel->globals.memory, owner->globals.size());
            owner = nullptr;
        }
    }
}

void Run::receive() {
    for (const Arrival& arrival : device_.take_arrived(chip_)) {
        if (arrival.data.empty()) {
            std::uint32_t value;
            std::memcpy(&value, arrival.memory, 4);
            value += arrival.increment;
            std::memcpy(arrival.memory, &value, 4);
        } else {
            std::memcpy(arrival.memory, arrival.data.data(), arrival.data.size());
        }
        if (CoreState* core = by_worker_[arrival.worker]; core != nullptr) {
            wake(*core);
        }
    }
}

bool Run::advance() {
    const auto begin = std::chrono::steady_clock::now();
    memory();  // The L1 of this chip, wherever another one's was.
    idle_yields_ = 0;
    receive();
    run_queue();
    if (!failure_.empty()) {
        throw std::runtime_error(failure_);
    }
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (unfinished_ != 0) {
        release_globals();
        return false;
    }
    report(seconds_);
    return true;
}

bool Run::computes() const {
    return std::ranges::any_of(processors_, [](const auto& state) { return state->is_compute(); });
}

void Run::fail_in_deadlock() const { throw std::runtime_error(deadlock_report()); }

std::string Run::deadlock_report() const {
    // Most cores run the same kernels and are stuck alike: processors that wait for the same at the
    // same line are reported once, in the order of the first of them.
    struct Group {
        const ProcessorState* first;
        std::string wait;
        std::vector<CoreCoord> cores;
    };
    std::vector<Group> groups;
    std::map<std::pair<std::string, std::string>, std::size_t> index;
    std::size_t stuck = 0;
    for (const auto& state : processors_) {
        if (state->fiber->finished()) {
            continue;
        }
        ++stuck;
        const std::string wait = describe_wait(*state);
        const auto [place, is_new] =
            index.try_emplace({processor_name(state->processor.kind), wait}, groups.size());
        if (is_new) {
            groups.push_back({state.get(), wait, {}});
        }
        groups[place->second].cores.push_back(state->core->logical);
    }
    std::string text;
    std::size_t left = stuck;
    for (const Group& group : groups | std::views::take(kReportedWaits)) {
        const ProcessorState& first = *group.first;
        text += "\n  " +
                (group.cores.size() == 1 ? describe_processor(first)
                                         : "cores " + describe_cores(group.cores) + ", " +
                                               processor_name(first.processor.kind)) +
                ", " + group.wait;
        left -= group.cores.size();
    }
    if (left != 0) {
        text += "\n  and " + std::to_string(left) + " more";
    }
    return "deadlock: " + std::to_string(stuck) +
           (stuck == 1 ? " processor waits" : " processors wait") + " for what no other will do" +
           text;
}

}  // namespace ttcodegen::device
