// An address in the L1 of the core that a kernel runs on, as either end of a transfer.
#pragma once

#include "experimental/noc.h"

namespace experimental {

template <typename T, typename AddressType = std::uint32_t>
class CoreLocalMem {
  public:
    explicit CoreLocalMem(AddressType address) : address_(address) {}

    AddressType get_address() const { return address_; }

  private:
    AddressType address_;
};

template <typename T, typename AddressType>
struct noc_traits_t<CoreLocalMem<T, AddressType>> {
    struct src_args_type {
        std::uint32_t offset_bytes{};
    };
    using dst_args_type = src_args_type;

    template <Noc::AddressType address_type>
    static auto src_addr(const CoreLocalMem<T, AddressType>& memory, const Noc&,
                         const src_args_type& args) {
        static_assert(address_type == Noc::AddressType::LOCAL_L1, "the memory is this core's");
        return memory.get_address() + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const CoreLocalMem<T, AddressType>& memory, const Noc& noc,
                         const dst_args_type& args) {
        return src_addr<address_type>(memory, noc, args);
    }
};

}  // namespace experimental
