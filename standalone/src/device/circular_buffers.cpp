/// The circular buffers of a core, as accessed by its processors.
#include <algorithm>

#include "device/diagnostics.hpp"
#include "device/run.hpp"

namespace ttcodegen::device {

namespace {

std::string name_of(Processor& processor, std::uint32_t cb) {
    return describe_circular_buffer(ProcessorState::of(processor), cb);
}

CircularBuffer& buffer_at(Processor& processor, std::uint32_t cb, Location here) {
    if (cb >= processor.num_circular_buffers) {
        fail(processor, here, "there is no circular buffer %u: a core has %u", cb,
             processor.num_circular_buffers);
    }
    CircularBuffer& buffer = processor.circular_buffers[cb];
    if (buffer.pages == nullptr) {
        fail(processor, here, "%s was not created on this core", name_of(processor, cb).c_str());
    }
    return buffer;
}

std::uint32_t held_pages(const CircularBuffer& buffer) {
    return buffer.pages_received - buffer.pages_acked;
}

/// Checks the processor's own pointer against the buffer's counter: they differ if another
/// processor has moved the buffer's pages.
void check_pointer(Processor& processor, std::uint32_t cb, const CircularBuffer& buffer,
                   std::uint32_t offset, std::uint32_t count, const char* action, Location here) {
    if (offset != count % buffer.num_pages * buffer.page_size) {
        fail(
            processor, here,
            "%s pages of %s, which another processor has done before: its pointer is local to each "
            "processor, so one processor only may do it",
            action, name_of(processor, cb).c_str());
    }
}

void check_count(Processor& processor, std::uint32_t cb, const CircularBuffer& buffer,
                 std::uint32_t pages, const char* action, Location here) {
    if (pages > buffer.num_pages) {
        fail(processor, here, "%s %u pages of %s, which has %u", action, pages,
             name_of(processor, cb).c_str(), buffer.num_pages);
    }
}

/// Checks that the pages of one call are contiguous; `how` names the access in messages.
void check_before_end(Processor& processor, std::uint32_t cb, const CircularBuffer& buffer,
                      std::uint32_t offset, std::uint32_t pages, const char* action,
                      const char* how, Location here) {
    if (pages * buffer.page_size > buffer.size - offset) {
        fail(processor, here,
             "%s %u pages of %s across its end: %u pages are left before it, and pages are %s "
             "without wrapping",
             action, pages, name_of(processor, cb).c_str(),
             (buffer.size - offset) / buffer.page_size, how);
    }
}

/// The address of a page relative to the processor's pointer; `bytes` of it are accessed.
std::byte* page_at(Processor& processor, std::uint32_t cb, const CircularBuffer& buffer,
                   std::uint32_t pointer, std::uint32_t page, std::uint32_t bytes,
                   const char* action, const char* how, Location here) {
    const std::uint64_t offset = pointer + std::uint64_t{page} * buffer.page_size;
    if (offset + bytes > buffer.size) {
        fail(processor, here,
             "%s page %u of %s, beyond its end: %u pages are left before it, and %s does not wrap",
             action, page, name_of(processor, cb).c_str(),
             (buffer.size - pointer) / buffer.page_size, how);
    }
    return buffer.pages + offset;
}

void advance(std::uint32_t& pointer, std::uint32_t bytes, const CircularBuffer& buffer) {
    pointer += bytes;
    if (pointer == buffer.size) {
        pointer = 0;
    }
}

/// The error of reading a marked byte.
const char* describe_mark(Written written) {
    return written == Written::Never
               ? "nobody wrote"
               : "a read has not brought yet: noc_async_read_barrier is missing";
}

/// Checks that pushed pages are complete: all reads into them must have arrived.
void check_reads_arrived(Processor& processor, std::uint32_t cb, const std::byte* begin,
                         const std::byte* end, Location here) {
    const ProcessorState& state = ProcessorState::of(processor);
    for (const PendingRead& read : state.reads) {
        if (read.destination < end && begin < read.destination + read.bytes) {
            fail(processor, here,
                 "pushes a page of %s that the asynchronous read of line %u has not filled yet: "
                 "noc_async_read_barrier is missing",
                 name_of(processor, cb).c_str(), read.here.line());
        }
    }
}

/// Checks that popped pages may be overwritten: all writes from them must have left.
void check_writes_left(Processor& processor, std::uint32_t cb, const std::byte* begin,
                       const std::byte* end, Location here) {
    const ProcessorState& state = ProcessorState::of(processor);
    const std::byte* l1 = processor.l1;
    for (const PendingWrite& write : state.writes) {
        if (l1 + write.begin < end && begin < l1 + write.end) {
            fail(processor, here,
                 "pops a page of %s that the asynchronous write of line %u may still be sending: "
                 "noc_async_write_barrier or noc_async_writes_flushed is missing",
                 name_of(processor, cb).c_str(), write.here.line());
        }
    }
}

}  // namespace

void cb_reserve_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    CircularBuffer& buffer = buffer_at(processor, cb, here);
    check_count(processor, cb, buffer, pages, "reserves", here);
    ProcessorState& state = ProcessorState::of(processor);
    if (buffer.num_pages - held_pages(buffer) < pages) {
        state.run->wait(state, {.kind = Wait::Kind::Back, .cb = cb, .wanted = pages, .here = here});
    }
    std::uint32_t& reserved = processor.views[cb].reserved;
    reserved = std::max(reserved, pages);
}

void cb_push_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    CircularBuffer& buffer = buffer_at(processor, cb, here);
    CircularBufferView& view = processor.views[cb];
    check_count(processor, cb, buffer, pages, "pushes", here);
    // Data that is already in place, in an L1 buffer, is often pushed without a reservation.
    const std::uint32_t free = buffer.num_pages - held_pages(buffer);
    const std::uint32_t allowed = buffer.borrowed ? std::max(view.reserved, free) : view.reserved;
    if (pages > allowed) {
        fail(processor, here, "pushes %u pages of %s, but only %u are reserved", pages,
             name_of(processor, cb).c_str(), view.reserved);
    }
    check_pointer(processor, cb, buffer, view.write_offset, buffer.pages_received, "pushes", here);
    check_before_end(processor, cb, buffer, view.write_offset, pages, "pushes", "written", here);
    const std::uint32_t bytes = pages * buffer.page_size;
    ProcessorState& state = ProcessorState::of(processor);
    const std::byte* begin = buffer.pages + view.write_offset;
    if (!state.reads.empty()) {
        check_reads_arrived(processor, cb, begin, begin + bytes, here);
    }
    buffer.pages_received += pages;
    view.reserved -= std::min(pages, view.reserved);
    advance(view.write_offset, bytes, buffer);
    state.run->wake(*state.core);
}

void cb_wait_front(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    CircularBuffer& buffer = buffer_at(processor, cb, here);
    check_count(processor, cb, buffer, pages, "waits for", here);
    ProcessorState& state = ProcessorState::of(processor);
    if (held_pages(buffer) < pages) {
        state.run->wait(state,
                        {.kind = Wait::Kind::Front, .cb = cb, .wanted = pages, .here = here});
    }
    std::uint32_t& waited = processor.views[cb].waited;
    waited = std::max(waited, pages);
}

void cb_pop_front(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    CircularBuffer& buffer = buffer_at(processor, cb, here);
    CircularBufferView& view = processor.views[cb];
    if (pages > view.waited) {
        fail(processor, here, "pops %u pages of %s, but cb_wait_front has waited for %u", pages,
             name_of(processor, cb).c_str(), view.waited);
    }
    check_pointer(processor, cb, buffer, view.read_offset, buffer.pages_acked, "pops", here);
    check_before_end(processor, cb, buffer, view.read_offset, pages, "pops", "read", here);
    const std::uint32_t bytes = pages * buffer.page_size;
    ProcessorState& state = ProcessorState::of(processor);
    std::byte* begin = buffer.pages + view.read_offset;
    if (!state.writes.empty()) {
        check_writes_left(processor, cb, begin, begin + bytes, here);
    }
    if (buffer.exclusive) {
        // Later readers, or a push of the same pages, would use data that may be overwritten.
        mark_never_written(begin, bytes);
    }
    buffer.pages_acked += pages;
    view.waited -= pages;
    advance(view.read_offset, bytes, buffer);
    state.run->wake(*state.core);
}

const std::byte* front_page(Processor& processor, std::uint32_t cb, std::uint32_t page,
                            std::uint32_t bytes, Location here) {
    const CircularBuffer& buffer = buffer_at(processor, cb, here);
    const CircularBufferView& view = processor.views[cb];
    if (page >= view.waited) {
        fail(processor, here, "reads page %u of %s, but cb_wait_front has waited for %u", page,
             name_of(processor, cb).c_str(), view.waited);
    }
    const std::byte* memory =
        page_at(processor, cb, buffer, view.read_offset, page, bytes, "reads", "reading", here);
    std::size_t marked = 0;
    const Written written = find_mark(memory, bytes, marked);
    if (written != Written::Yes) {
        fail(processor, here, "reads page %u of %s, whose byte %zu %s", page,
             name_of(processor, cb).c_str(), marked, describe_mark(written));
    }
    return memory;
}

std::byte* back_page(Processor& processor, std::uint32_t cb, std::uint32_t page,
                     std::uint32_t bytes, Location here) {
    const CircularBuffer& buffer = buffer_at(processor, cb, here);
    const CircularBufferView& view = processor.views[cb];
    if (page >= view.reserved && !buffer.borrowed) {
        fail(processor, here, "writes page %u of %s, but cb_reserve_back has reserved %u", page,
             name_of(processor, cb).c_str(), view.reserved);
    }
    return page_at(processor, cb, buffer, view.write_offset, page, bytes, "writes", "writing",
                   here);
}

void check_written(Processor& processor, const void* memory, std::size_t bytes, const char* what,
                   Location here) {
    std::size_t marked = 0;
    const Written written = find_mark(static_cast<const std::byte*>(memory), bytes, marked);
    if (written != Written::Yes) {
        fail(processor, here, "reads %s, whose byte %zu %s", what, marked, describe_mark(written));
    }
}

}  // namespace ttcodegen::device
