/// Semaphores and single words, local and over the NoC.
#pragma once

#include "ttcodegen/device/dataflow_transfers.hpp"

namespace ttcodegen::device {

inline std::uint32_t word_address(volatile const std::uint32_t* word) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(word));
}

}  // namespace ttcodegen::device

/// The address of a semaphore of this core.
template <ProgrammableCoreType type = ProgrammableCoreType::TENSIX>
std::uintptr_t get_semaphore(std::uint32_t semaphore_id, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    if (semaphore_id >= processor.num_semaphores) {
        processor.functions->fail(processor, here, "semaphore %u was not created on this core",
                                  semaphore_id);
    }
    return ttcodegen::device::l1_address(processor,
                                         processor.semaphores + semaphore_id * L1_ALIGNMENT);
}

inline void noc_semaphore_wait(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val,
                               TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->wait_word(processor, ttcodegen::device::word_address(sem_addr), val, false,
                                   here);
}

inline void noc_semaphore_wait_min(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val,
                                   TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->wait_word(processor, ttcodegen::device::word_address(sem_addr), val, true,
                                   here);
}

inline void noc_semaphore_set(volatile tt_l1_ptr std::uint32_t* sem_addr, std::uint32_t val,
                              TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->store_word(processor, ttcodegen::device::word_address(sem_addr), val,
                                    here);
}

/// Copies a word of this core to another.
inline void noc_semaphore_set_remote(std::uint32_t src_local_l1_addr, std::uint64_t dst_noc_addr,
                                     std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    ttcodegen::device::start_write(src_local_l1_addr, dst_noc_addr, 4, noc, false,
                                   ttcodegen::device::kNoTransaction, here);
}

inline void noc_semaphore_set_multicast(std::uint32_t src_local_l1_addr,
                                        std::uint64_t dst_noc_addr_multicast,
                                        std::uint32_t num_dests, bool /*linked*/ = false,
                                        std::uint8_t noc = noc_index,
                                        std::uint8_t /*vc*/ = NOC_MULTICAST_WRITE_VC,
                                        TTCODEGEN_HERE) {
    ttcodegen::device::start_multicast(src_local_l1_addr, dst_noc_addr_multicast, 4, num_dests,
                                       false, noc, here);
}

inline void noc_semaphore_set_multicast_loopback_src(std::uint32_t src_local_l1_addr,
                                                     std::uint64_t dst_noc_addr_multicast,
                                                     std::uint32_t num_dests,
                                                     bool /*linked*/ = false,
                                                     std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    ttcodegen::device::start_multicast(src_local_l1_addr, dst_noc_addr_multicast, 4, num_dests,
                                       true, noc, here);
}

template <bool posted = false>
void noc_semaphore_inc(std::uint64_t addr, std::uint32_t incr, std::uint8_t noc_id = noc_index,
                       std::uint8_t /*vc*/ = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_increment(processor, addr, incr, noc_id, posted, here);
}

template <bool posted = false>
void noc_semaphore_inc_multicast(std::uint64_t addr, std::uint32_t incr, std::uint32_t num_dests,
                                 std::uint8_t noc_id = noc_index,
                                 std::uint8_t /*vc*/ = NOC_MULTICAST_WRITE_VC, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_increment_multicast(processor, addr, incr, num_dests, noc_id, posted,
                                                 here);
}

/// Writes a word inline: it travels in the packet itself.
template <InlineWriteDst dst_type = InlineWriteDst::DEFAULT, bool posted = false, bool flush = true>
void noc_inline_dw_write(std::uint64_t addr, std::uint32_t val, std::uint8_t be = 0xF,
                         std::uint8_t noc = noc_index, std::uint8_t /*vc*/ = NOC_UNICAST_WRITE_VC,
                         std::uint32_t /*customized_src_addr*/ = 0, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    processor.functions->noc_write_word(processor, addr, val, be, noc, here);
}

template <bool posted = false, bool set_val = false>
void noc_inline_dw_write_set_state(std::uint64_t addr, std::uint32_t val = 0,
                                   std::uint8_t /*be*/ = 0xF,
                                   std::uint8_t /*cmd_buf*/ = write_at_cmd_buf,
                                   std::uint8_t noc = noc_index,
                                   std::uint8_t /*vc*/ = NOC_UNICAST_WRITE_VC) {
    auto& state = ttcodegen::device::noc_state(ttcodegen::device::current(), noc);
    state.word_address = addr;
    state.word_value = val;
}

template <bool update_addr_lo = false, bool update_counter = true, bool posted = false,
          bool update_addr_hi = false, bool update_val = false,
          InlineWriteDst dst_type = InlineWriteDst::DEFAULT>
void noc_inline_dw_write_with_state(std::uint32_t val, std::uint32_t addr = 0,
                                    std::uint8_t /*cmd_buf*/ = write_at_cmd_buf,
                                    std::uint8_t noc = noc_index, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    const auto& state = ttcodegen::device::noc_state(processor, noc);
    processor.functions->noc_write_word(
        processor,
        update_addr_lo ? ttcodegen::device::with_local(state.word_address, addr)
                       : state.word_address,
        update_val ? val : state.word_value, 0xF, noc, here);
}
