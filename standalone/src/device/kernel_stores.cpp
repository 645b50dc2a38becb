#include "device/kernel_stores.hpp"

#include <cstdio>
#include <limits>

#include "device/diagnostics.hpp"
#include "device/sanitizer.hpp"

namespace ttcodegen::device {

namespace {

/// The runtime arguments, which are in L1 as well; kernels may overwrite them.
Region arguments_of(const Architecture& architecture) {
    const std::uint32_t first = architecture.kernel_config_base + 16 * kMaxSemaphores;
    return {first, first + 6 * 4 * kMaxRuntimeArguments, Region::Kind::Arguments, 0};
}

/// Calls `visit(region)` for each region that a kernel on this core may store to.
template <typename Visit>
void for_each_region(const CoreState& core, const Architecture& architecture, Visit visit) {
    for (const Region& region : core.regions) {
        visit(region);
    }
    visit(arguments_of(architecture));
}

std::string describe_region(const ProcessorState& state, const Region& region) {
    switch (region.kind) {
        case Region::Kind::Zeros:
            return "the zeros, which are there to be read";
        case Region::Kind::Semaphores:
            return format("semaphore %u", region.index);
        case Region::Kind::CircularBuffer:
            return describe_circular_buffer(state, region.index);
        case Region::Kind::Arguments:
            return "the run-time arguments";
        default:
            return format("the L1 buffer at 0x%x", region.begin);
    }
}

/// The position of a range relative to the nearest allocation.
std::string describe_place(const ProcessorState& state, std::uint64_t begin, std::uint64_t end) {
    std::uint64_t nearest = std::numeric_limits<std::uint64_t>::max();
    std::string text;
    const auto consider = [&](const Region& region, std::uint64_t distance, const char* where) {
        if (distance < nearest) {
            nearest = distance;
            text = where + describe_region(state, region);
        }
    };
    for_each_region(*state.core, state.run->architecture(), [&](const Region& region) {
        if (begin >= region.end) {
            consider(region, begin - region.end, "beyond the end of ");
        } else if (end <= region.begin) {
            consider(region, region.begin - end, "before ");
        } else if (begin < region.begin) {
            consider(region, 0, "across the start of ");
        } else {
            consider(region, 0, end > region.end ? "across the end of " : "within ");
        }
    });
    return nearest == 0 ? text : std::to_string(nearest) + " bytes " + text;
}

}  // namespace

std::string describe_stray(const ProcessorState& state, std::uintptr_t address, std::size_t bytes,
                           const char* action) {
    const Processor& processor = state.processor;
    const std::uintptr_t in_arena = address - processor.store_bounds.arena;
    if (in_arena >= processor.store_bounds.arena_bytes) {  // an offset, as the host knows it
        return format("%s %zu bytes at L1 address 0x%zx, ", action, bytes,
                      static_cast<std::size_t>(address)) +
               describe_place(state, address, address + bytes);
    }
    const std::size_t offset = in_arena % kL1Window;
    const auto worker = static_cast<std::uint32_t>(in_arena / kL1Window);
    std::string text = format("%s %zu bytes at L1 address 0x%zx", action, bytes, offset);
    if (worker == state.core->worker) {
        return text + ", " + describe_place(state, offset, offset + bytes);
    }
    const CoreCoord other = state.run->core(worker)->logical;
    return text + format(
                      " of core (x=%zu,y=%zu): the memory of other cores is reached over the "
                      "NoC only",
                      other.x, other.y);
}

void check_store(Processor& processor, std::uintptr_t address, std::size_t bytes) {
    ProcessorState& state = ProcessorState::of(processor);
    StoreBounds& bounds = processor.store_bounds;
    const auto own = reinterpret_cast<std::uintptr_t>(processor.l1);
    const std::uintptr_t base = address < processor.l1_size ? 0 : own;
    const std::uint64_t offset = address - base;
    bool found = bytes == 0;
    for_each_region(*state.core, state.run->architecture(), [&](const Region& region) {
        if (!found && region.kind != Region::Kind::Zeros && offset >= region.begin &&
            offset + bytes <= region.end) {
            found = true;
            bounds.last = base + region.begin;
            bounds.last_bytes = region.end - region.begin;
        }
    });
    if (!found) {
        throw KernelFailure(
            failure_message(state, describe_stray(state, address, bytes, "stores")));
    }
}

#ifdef TTCODEGEN_ASAN

namespace {

thread_local Run* poisoned_run = nullptr;

/// AddressSanitizer reports the location in the kernel; this adds the core, and the adjacent
/// allocation.
void report_core(const char*) {
    if (poisoned_run == nullptr || poisoned_run->running() == nullptr) {
        return;
    }
    const ProcessorState& state = *poisoned_run->running();
    const auto address = reinterpret_cast<std::uintptr_t>(__asan_get_report_address());
    if (address - state.processor.store_bounds.arena >= state.processor.store_bounds.arena_bytes) {
        return;
    }
    const char* action = __asan_get_report_access_type() == 1 ? "stores" : "reads";
    const std::string what =
        describe_stray(state, address, __asan_get_report_access_size(), action);
    std::fprintf(stderr, "error: %s\n", failure_message(state, what).c_str());
}

}  // namespace

PoisonedMemory::PoisonedMemory(Run& run) : run_(run) {
    const Architecture& architecture = run.architecture();
    for (std::uint32_t worker = 0; worker < architecture.num_workers(); ++worker) {
        const CoreState& core = *run.core(worker);
        __asan_poison_memory_region(core.l1, kL1Window);
        for_each_region(core, architecture, [&](const Region& region) {
            __asan_unpoison_memory_region(core.l1 + region.begin, region.end - region.begin);
        });
    }
    poisoned_run = &run;
    __asan_set_error_report_callback(report_core);
}

PoisonedMemory::~PoisonedMemory() {
    poisoned_run = nullptr;
    const Mapping& arena = run_.memory().l1_arena();
    __asan_unpoison_memory_region(arena.data(), arena.size());
}

#else

PoisonedMemory::PoisonedMemory(Run& run) : run_(run) {}
PoisonedMemory::~PoisonedMemory() = default;

#endif

}  // namespace ttcodegen::device
