#pragma once

#include "experimental/noc.h"

namespace experimental {

/// A semaphore of this core, and the semaphores with the same id on other cores.
template <ProgrammableCoreType core_type = ProgrammableCoreType::TENSIX>
class Semaphore {
  public:
    explicit Semaphore(std::uint32_t semaphore_id, TTCODEGEN_HERE)
        : address_(static_cast<std::uint32_t>(get_semaphore<core_type>(semaphore_id, here))) {}

    void up(std::uint32_t value, TTCODEGEN_HERE) { set(*word() + value, here); }
    void up(const Noc& noc, std::uint32_t noc_x, std::uint32_t noc_y, std::uint32_t value,
            std::uint8_t vc = NOC_UNICAST_WRITE_VC, TTCODEGEN_HERE) {
        noc_semaphore_inc(get_noc_addr(noc_x, noc_y, address_), value, noc.get_noc_id(), vc, here);
    }
    void down(std::uint32_t value, TTCODEGEN_HERE) {
        wait_min(value, here);
        set(*word() - value, here);
    }
    void wait(std::uint32_t value, TTCODEGEN_HERE) { noc_semaphore_wait(word(), value, here); }
    void wait_min(std::uint32_t value, TTCODEGEN_HERE) {
        noc_semaphore_wait_min(word(), value, here);
    }
    void set(std::uint32_t value, TTCODEGEN_HERE) { noc_semaphore_set(word(), value, here); }

    template <Noc::McastMode mcast_mode = Noc::McastMode::EXCLUDE_SRC>
    void set_multicast(const Noc& noc, std::uint32_t noc_x_start, std::uint32_t noc_y_start,
                       std::uint32_t noc_x_end, std::uint32_t noc_y_end, std::uint32_t num_dests,
                       bool /*linked*/ = false, TTCODEGEN_HERE) {
        ttcodegen::device::start_multicast(
            address_,
            get_noc_multicast_addr(noc_x_start, noc_y_start, noc_x_end, noc_y_end, address_), 4,
            num_dests, mcast_mode == Noc::McastMode::INCLUDE_SRC, noc.get_noc_id(), here);
    }
    void inc_multicast(const Noc& noc, std::uint32_t noc_x_start, std::uint32_t noc_y_start,
                       std::uint32_t noc_x_end, std::uint32_t noc_y_end, std::uint32_t value,
                       std::uint32_t num_dests, TTCODEGEN_HERE) {
        noc_semaphore_inc_multicast(
            get_noc_multicast_addr(noc_x_start, noc_y_start, noc_x_end, noc_y_end, address_), value,
            num_dests, noc.get_noc_id(), NOC_MULTICAST_WRITE_VC, here);
    }

  private:
    volatile std::uint32_t* word() const {
        return reinterpret_cast<volatile std::uint32_t*>(std::uintptr_t{address_});
    }

    std::uint32_t address_;
};

}  // namespace experimental
