#pragma once

#ifdef COMPILE_FOR_TRISC
#include "api/compute/cb_api.h"
#else
#include "experimental/noc.h"
#endif

namespace experimental {

/// A circular buffer, identified by its index.
class CircularBuffer {
  public:
    enum class AddrSelector { WRITE_PTR, READ_PTR };

    explicit CircularBuffer(std::uint32_t cb_id) : cb_id_(cb_id) {}

    std::uint32_t get_cb_id() const { return cb_id_; }

    void reserve_back(std::int32_t num_pages, TTCODEGEN_HERE) {
        cb_reserve_back(cb_id_, num_pages, here);
    }
    void push_back(std::int32_t num_pages, TTCODEGEN_HERE) {
        cb_push_back(cb_id_, num_pages, here);
    }
    void wait_front(std::int32_t num_pages, TTCODEGEN_HERE) {
        cb_wait_front(cb_id_, num_pages, here);
    }
    void pop_front(std::int32_t num_pages, TTCODEGEN_HERE) {
        cb_pop_front(cb_id_, num_pages, here);
    }

#ifdef COMPILE_FOR_TRISC
    std::uint32_t get_tile_address(std::uint32_t tile_index, TTCODEGEN_HERE) {
        return ckernel::get_tile_address(cb_id_, tile_index, here);
    }
    std::uint32_t read_tile_value(std::uint32_t tile_index, std::uint32_t element_offset,
                                  TTCODEGEN_HERE) {
        return ckernel::read_tile_value(cb_id_, tile_index, element_offset, here);
    }
#else
    std::uint32_t get_tile_size() const {
        return static_cast<std::uint32_t>(::get_tile_size(static_cast<std::int32_t>(cb_id_)));
    }
    std::uint32_t get_tile_hw() const { return ::get_tile_hw(static_cast<std::int32_t>(cb_id_)); }
    DataFormat get_dataformat() const {
        return ::get_dataformat(static_cast<std::int32_t>(cb_id_));
    }
    bool pages_reservable_at_back(std::int32_t num_pages, TTCODEGEN_HERE) const {
        return cb_pages_reservable_at_back(static_cast<std::int32_t>(cb_id_), num_pages, here);
    }
    bool pages_available_at_front(std::int32_t num_pages, TTCODEGEN_HERE) const {
        return cb_pages_available_at_front(static_cast<std::int32_t>(cb_id_), num_pages, here);
    }
    std::uint32_t get_write_ptr(TTCODEGEN_HERE) const { return ::get_write_ptr(cb_id_, here); }
    std::uint32_t get_read_ptr(TTCODEGEN_HERE) const { return ::get_read_ptr(cb_id_, here); }
#endif

  private:
    std::uint32_t cb_id_;
};

#ifndef COMPILE_FOR_TRISC
template <>
struct noc_traits_t<CircularBuffer> {
    struct src_args_type {
        std::uint32_t offset_bytes{};
    };
    struct dst_args_type {
        std::uint32_t offset_bytes{};
    };
    struct dst_args_mcast_type {
        std::uint32_t noc_x_start{};
        std::uint32_t noc_y_start{};
        std::uint32_t noc_x_end{};
        std::uint32_t noc_y_end{};
        std::uint32_t offset_bytes{};
    };

    template <Noc::AddressType address_type>
    static auto src_addr(const CircularBuffer& src, const Noc&, const src_args_type& args) {
        static_assert(address_type == Noc::AddressType::LOCAL_L1,
                      "a circular buffer is a source in the core's own L1 only");
        return src.get_read_ptr() + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const CircularBuffer& dst, const Noc&, const dst_args_type& args) {
        static_assert(address_type == Noc::AddressType::LOCAL_L1,
                      "a circular buffer is a destination in the core's own L1 only");
        return dst.get_write_ptr() + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr_mcast(const CircularBuffer& dst, const Noc& noc,
                               const dst_args_mcast_type& args) {
        return ::get_noc_multicast_addr(args.noc_x_start, args.noc_y_start, args.noc_x_end,
                                        args.noc_y_end, dst.get_write_ptr() + args.offset_bytes,
                                        noc.get_noc_id());
    }
};

/// A circular buffer's read or write pointer as either end of a transfer.
template <CircularBuffer::AddrSelector AddrSel>
struct CircularBufferView {
    const CircularBuffer& cb;

    explicit constexpr CircularBufferView(const CircularBuffer& c) : cb(c) {}
};

template <CircularBuffer::AddrSelector AddrSel>
constexpr auto use(const CircularBuffer& cb) {
    return CircularBufferView<AddrSel>(cb);
}

template <CircularBuffer::AddrSelector AddrSel>
struct noc_traits_t<CircularBufferView<AddrSel>> {
    using src_args_type = noc_traits_t<CircularBuffer>::src_args_type;
    using dst_args_type = noc_traits_t<CircularBuffer>::dst_args_type;
    using dst_args_mcast_type = noc_traits_t<CircularBuffer>::dst_args_mcast_type;

    static std::uint32_t address(const CircularBufferView<AddrSel>& view) {
        return AddrSel == CircularBuffer::AddrSelector::READ_PTR ? view.cb.get_read_ptr()
                                                                 : view.cb.get_write_ptr();
    }
    template <Noc::AddressType address_type>
    static auto src_addr(const CircularBufferView<AddrSel>& view, const Noc&,
                         const src_args_type& args) {
        return address(view) + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr(const CircularBufferView<AddrSel>& view, const Noc&,
                         const dst_args_type& args) {
        return address(view) + args.offset_bytes;
    }
    template <Noc::AddressType address_type>
    static auto dst_addr_mcast(const CircularBufferView<AddrSel>& view, const Noc& noc,
                               const dst_args_mcast_type& args) {
        return ::get_noc_multicast_addr(args.noc_x_start, args.noc_y_start, args.noc_x_end,
                                        args.noc_y_end, address(view) + args.offset_bytes,
                                        noc.get_noc_id());
    }
};
#endif

}  // namespace experimental
