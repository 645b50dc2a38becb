#pragma once

#include "api/tensor/tensor_accessor.h"
#include "experimental/noc.h"

namespace experimental {

template <typename DSpecT>
struct noc_traits_t<TensorAccessor<DSpecT>> {
    struct src_args_type {
        std::uint32_t page_id{};
        std::uint32_t offset_bytes = 0;
    };
    using dst_args_type = src_args_type;

    template <Noc::AddressType address_type>
    static auto src_addr(const TensorAccessor<DSpecT>& src, const Noc& noc,
                         const src_args_type& args) {
        const std::uint64_t address =
            src.get_noc_addr(args.page_id, args.offset_bytes, noc.get_noc_id());
        if constexpr (address_type == Noc::AddressType::LOCAL_L1) {
            ASSERT(noc.is_local_addr(address));
            return static_cast<std::uint32_t>(address);
        } else {
            return address;
        }
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const TensorAccessor<DSpecT>& dst, const Noc& noc,
                         const dst_args_type& args) {
        return src_addr<address_type>(dst, noc, args);
    }
};

template <>
struct noc_traits_t<tensor_accessor::Page> {
    struct src_args_type {
        std::uint32_t offset_bytes = 0;
    };
    using dst_args_type = src_args_type;

    template <Noc::AddressType address_type>
    static auto src_addr(const tensor_accessor::Page& src, const Noc&, const src_args_type& args) {
        return src.noc_addr() + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const tensor_accessor::Page& dst, const Noc& noc,
                         const dst_args_type& args) {
        return src_addr<address_type>(dst, noc, args);
    }
};

}  // namespace experimental
