/// The function table of kernels, and functions for neither circular buffers nor transfers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "device/diagnostics.hpp"
#include "device/noc_address.hpp"
#include "device/run.hpp"
#include "device/transfers.hpp"

namespace ttcodegen::device {

namespace {

void yield(Processor& processor, Location here) {
    ProcessorState& state = ProcessorState::of(processor);
    state.run->wait(state, {.kind = Wait::Kind::Yield, .here = here});
}

void wait_word(Processor& processor, std::uint32_t address, std::uint32_t value, bool at_least,
               Location here) {
    ProcessorState& state = ProcessorState::of(processor);
    const std::uint32_t offset = own_memory(processor, address, 4, Access::Read, here);
    if (offset % 4 != 0) {
        fail(processor, here, "waits for the unaligned address 0x%x", offset);
    }
    state.wait = {.kind = Wait::Kind::Word,
                  .wanted = value,
                  .word = processor.l1 + offset,
                  .address = offset,
                  .at_least = at_least,
                  .here = here};
    if (is_satisfied(state)) {
        state.wait.kind = Wait::Kind::None;
        return;
    }
    state.run->wait(state, Wait(state.wait));
}

void store_word(Processor& processor, std::uint32_t address, std::uint32_t value, Location here) {
    const std::uint32_t offset = own_memory(processor, address, 4, Access::Write, here);
    if (offset % 4 != 0) {
        fail(processor, here, "stores a word at the unaligned address 0x%x", offset);
    }
    check_not_sending(processor, offset, offset + 4, "stores to", here);
    std::memcpy(processor.l1 + offset, &value, 4);
    ProcessorState& state = ProcessorState::of(processor);
    state.run->wake(*state.core);
}

void print(Processor& processor, const char* text, std::size_t length) {
    static const bool wanted = std::getenv("TT_METAL_DPRINT_CORES") != nullptr;
    if (!wanted) {
        return;
    }
    const ProcessorState& state = ProcessorState::of(processor);
    const std::string line = describe_processor(state) + ": " + std::string(text, length);
    std::fwrite(line.data(), 1, line.size(), stdout);
    if (length == 0 || text[length - 1] != '\n') {
        std::fputc('\n', stdout);
    }
}

}  // namespace

const DeviceFunctions& device_functions() {
    static const DeviceFunctions functions{
        .fail = fail,
        .cb_reserve_back = cb_reserve_back,
        .cb_push_back = cb_push_back,
        .cb_wait_front = cb_wait_front,
        .cb_pop_front = cb_pop_front,
        .front_page = front_page,
        .back_page = back_page,
        .check_written = check_written,
        .yield = yield,
        .wait_word = wait_word,
        .store_word = store_word,
        .noc_read = noc_read,
        .noc_write = noc_write,
        .noc_multicast = noc_multicast,
        .noc_write_word = noc_write_word,
        .noc_increment = noc_increment,
        .noc_increment_multicast = noc_increment_multicast,
        .noc_read_barrier = noc_read_barrier,
        .noc_write_barrier = noc_write_barrier,
        .noc_atomic_barrier = noc_atomic_barrier,
        .noc_read_barrier_transaction = noc_read_barrier_transaction,
        .noc_write_barrier_transaction = noc_write_barrier_transaction,
        .bank_address = bank_address,
        .fabric_send = fabric_send,
        .check_store = check_store,
        .move_memory = std::memmove,
        .fill_memory = std::memset,
        .print = print,
        .begin_zone = begin_zone,
        .end_zone = end_zone,
    };
    return functions;
}

}  // namespace ttcodegen::device
