#include "device/diagnostics.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <utility>

namespace ttcodegen::device {

using tt::tt_metal::CoreRange;

namespace {

std::string format_arguments(const char* text, std::va_list arguments) {
    char buffer[1024];
    std::vsnprintf(buffer, sizeof buffer, text, arguments);
    return buffer;
}

}  // namespace

std::string format(const char* text, ...) {
    std::va_list arguments;
    va_start(arguments, text);
    std::string message = format_arguments(text, arguments);
    va_end(arguments);
    return message;
}

const char* processor_name(ProcessorKind kind) {
    switch (kind) {
        case ProcessorKind::DataMovement0:
            return "BRISC";
        case ProcessorKind::DataMovement1:
            return "NCRISC";
        default:
            return "TRISC";
    }
}

std::string describe_processor(const ProcessorState& state) {
    const CoreState& core = *state.core;
    return format("core (x=%zu,y=%zu) [NoC (%zu,%zu)], %s", core.logical.x, core.logical.y,
                  core.noc.x, core.noc.y, processor_name(state.processor.kind));
}

std::string describe_cores(std::vector<CoreCoord> cores) {
    std::sort(cores.begin(), cores.end(), [](const CoreCoord& a, const CoreCoord& b) {
        return std::pair(a.y, a.x) < std::pair(b.y, b.x);
    });
    std::vector<CoreRange> runs;
    for (const CoreCoord& core : cores) {
        if (!runs.empty() && runs.back().end_coord == CoreCoord(core.x - 1, core.y)) {
            runs.back().end_coord = core;
        } else {
            runs.emplace_back(core);
        }
    }
    // Stacked runs with the same begin and end form a rectangle.
    std::vector<CoreRange> rectangles;
    for (const CoreRange& run : runs) {
        const auto above =
            std::find_if(rectangles.begin(), rectangles.end(), [&](const CoreRange& each) {
                return each.start_coord.x == run.start_coord.x &&
                       each.end_coord == CoreCoord(run.end_coord.x, run.end_coord.y - 1);
            });
        if (above != rectangles.end()) {
            above->end_coord = run.end_coord;
        } else {
            rectangles.push_back(run);
        }
    }
    std::string text;
    for (const auto& [first, last] : rectangles) {
        text += format("%s(x=%zu,y=%zu)", text.empty() ? "" : ", ", first.x, first.y);
        if (first != last) {
            text += format("-(x=%zu,y=%zu)", last.x, last.y);
        }
    }
    return text;
}

std::string describe_line(const ProcessorState& state, const Location& here) {
    const std::string_view file = here.file_name();
    const auto& source = state.kernel->source;
    // Lines of the kernel itself have the name that the program used; headers keep theirs.
    const bool in_kernel = file == source.path.native() || file == source.name;
    const std::string shown = in_kernel ? source.name : std::string(file);
    return shown + ":" + std::to_string(here.line());
}

std::string describe_circular_buffer(const ProcessorState& state, std::uint32_t index) {
    const std::string name = state.kernel->circular_buffer_name(index);
    return "circular buffer " + std::to_string(index) + (name.empty() ? "" : " (" + name + ")");
}

namespace {

std::string failure_at(const ProcessorState& state, const std::string& place,
                       const std::string& what) {
    return place + ": " + what + "\n  on " + describe_processor(state) + ", kernel " +
           state.kernel->source.name;
}

}  // namespace

std::string failure_message(const ProcessorState& state, const Location& here,
                            const std::string& what) {
    return failure_at(state, describe_line(state, here), what);
}

std::string failure_message(const ProcessorState& state, const std::string& what) {
    return failure_at(state, state.kernel->source.name, what);
}

std::string describe_wait(const ProcessorState& state) {
    const Wait& wait = state.wait;
    const std::string line = describe_line(state, wait.here) + ": ";
    switch (wait.kind) {
        case Wait::Kind::Front: {
            const CircularBuffer& buffer = state.core->circular_buffers[wait.cb];
            return line + format("cb_wait_front wants %u pages of ", wait.wanted) +
                   describe_circular_buffer(state, wait.cb) +
                   format(", %u are there", buffer.pages_received - buffer.pages_acked);
        }
        case Wait::Kind::Back: {
            const CircularBuffer& buffer = state.core->circular_buffers[wait.cb];
            const std::uint32_t held = buffer.pages_received - buffer.pages_acked;
            return line +
                   format("cb_reserve_back wants %u of the %u pages of ", wait.wanted,
                          buffer.num_pages) +
                   describe_circular_buffer(state, wait.cb) +
                   format(" free, %u are free", buffer.num_pages - held);
        }
        case Wait::Kind::Word: {
            const auto value = *reinterpret_cast<const volatile std::uint32_t*>(wait.word);
            return line + "waits until " + describe_l1(*state.core, state, wait.address) +
                   format(" is %s%u, it is %u", wait.at_least ? "at least " : "", wait.wanted,
                          value);
        }
        case Wait::Kind::Yield:
            return line + "polls";
        default:
            return line + "runs";
    }
}

std::string describe_l1(const CoreState& core, const ProcessorState& state, std::uint32_t offset) {
    const std::string address = format("L1 address 0x%x", offset);
    const std::uint32_t semaphores = state.processor.semaphores;
    if (offset >= semaphores && offset - semaphores < 16 * kMaxSemaphores) {
        return format("semaphore %u", (offset - semaphores) / 16);
    }
    for (const Region& region : core.regions) {
        if (region.kind == Region::Kind::CircularBuffer && offset >= region.begin &&
            offset < region.end) {
            return address + ", in " + describe_circular_buffer(state, region.index);
        }
    }
    return address;
}

void fail(Processor& processor, Location here, const char* text, ...) {
    std::va_list arguments;
    va_start(arguments, text);
    const std::string what = format_arguments(text, arguments);
    va_end(arguments);
    throw KernelFailure(failure_message(ProcessorState::of(processor), here, what));
}

}  // namespace ttcodegen::device
