#pragma once

#include "experimental/noc.h"

namespace experimental {

/// A core, identified by its coordinates.
struct UnicastEndpoint {};

/// A rectangle of cores, identified by its corners.
struct MulticastEndpoint {};

enum AllocatorBankType { L1, DRAM };

/// A bank, identified by its index.
template <AllocatorBankType bank_type>
struct AllocatorBank {};

template <>
struct noc_traits_t<UnicastEndpoint> {
    struct src_args_type {
        std::uint32_t noc_x{};
        std::uint32_t noc_y{};
        std::uint32_t addr{};
    };
    using dst_args_type = src_args_type;

    template <Noc::AddressType address_type>
    static auto src_addr(const UnicastEndpoint&, const Noc& noc, const src_args_type& args) {
        if constexpr (address_type == Noc::AddressType::LOCAL_L1) {
            return args.addr;
        } else {
            return ::get_noc_addr(args.noc_x, args.noc_y, args.addr, noc.get_noc_id());
        }
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const UnicastEndpoint& dst, const Noc& noc, const dst_args_type& args) {
        return src_addr<address_type>(dst, noc, args);
    }
};

template <>
struct noc_traits_t<MulticastEndpoint> {
    struct dst_args_mcast_type {
        std::uint32_t noc_x_start{};
        std::uint32_t noc_y_start{};
        std::uint32_t noc_x_end{};
        std::uint32_t noc_y_end{};
        std::uint32_t addr{};
    };

    template <Noc::AddressType address_type>
    static auto dst_addr_mcast(const MulticastEndpoint&, const Noc& noc,
                               const dst_args_mcast_type& args) {
        return ::get_noc_multicast_addr(args.noc_x_start, args.noc_y_start, args.noc_x_end,
                                        args.noc_y_end, args.addr, noc.get_noc_id());
    }
};

template <AllocatorBankType bank_type>
struct noc_traits_t<AllocatorBank<bank_type>> {
    struct src_args_type {
        std::uint32_t bank_id{};
        std::uint32_t addr{};
    };
    using dst_args_type = src_args_type;

    template <Noc::AddressType address_type>
    static auto src_addr(const AllocatorBank<bank_type>&, const Noc& noc,
                         const src_args_type& args) {
        static_assert(address_type == Noc::AddressType::NOC, "a bank is at the far end only");
        return ::get_noc_addr_from_bank_id<bank_type == AllocatorBankType::DRAM>(
            args.bank_id, args.addr, noc.get_noc_id());
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const AllocatorBank<bank_type>& dst, const Noc& noc,
                         const dst_args_type& args) {
        return src_addr<address_type>(dst, noc, args);
    }
};

}  // namespace experimental
