#pragma once

#include "api/dataflow/dataflow_api.h"

namespace experimental {

/// Traits of an object as source and destination of a transfer; specialised for each kind of
/// object.
template <typename T>
struct noc_traits_t {
    static_assert(sizeof(T) == 0, "NoC transactions are not supported for this type");
};

/// One of the two NoCs, by default the one that the kernel is configured with.
class Noc {
  public:
    enum class AddressType { NOC, LOCAL_L1 };
    enum class TxnIdMode { ENABLED, DISABLED };
    enum class ResponseMode { NON_POSTED, POSTED };
    enum class BarrierMode { TXN_ID, FULL };
    enum class McastMode { INCLUDE_SRC, EXCLUDE_SRC };
    enum class VcSelection { DEFAULT, CUSTOM };

    static constexpr std::uint32_t INVALID_TXN_ID = 0xFFFFFFFF;

  private:
    template <typename T>
    using src_args_t = typename noc_traits_t<T>::src_args_type;
    template <typename T>
    using dst_args_t = typename noc_traits_t<T>::dst_args_type;
    template <typename T>
    using dst_args_mcast_t = typename noc_traits_t<T>::dst_args_mcast_type;

    template <typename Src>
    std::uint64_t remote_source(const Src& src, const src_args_t<Src>& args) const {
        return noc_traits_t<Src>::template src_addr<AddressType::NOC>(src, *this, args);
    }
    template <typename Src>
    std::uint32_t local_source(const Src& src, const src_args_t<Src>& args) const {
        return static_cast<std::uint32_t>(
            noc_traits_t<Src>::template src_addr<AddressType::LOCAL_L1>(src, *this, args));
    }
    template <typename Dst>
    std::uint64_t remote_destination(const Dst& dst, const dst_args_t<Dst>& args) const {
        return noc_traits_t<Dst>::template dst_addr<AddressType::NOC>(dst, *this, args);
    }
    template <typename Dst>
    std::uint32_t local_destination(const Dst& dst, const dst_args_t<Dst>& args) const {
        return static_cast<std::uint32_t>(
            noc_traits_t<Dst>::template dst_addr<AddressType::LOCAL_L1>(dst, *this, args));
    }

  public:
    Noc() : noc_id_(noc_index) {}
    explicit Noc(std::uint8_t noc_id) : noc_id_(noc_id) {}

    std::uint8_t get_noc_id() const { return noc_id_; }

    bool is_local_bank(std::uint32_t virtual_x, std::uint32_t virtual_y) const {
        return virtual_x == my_x[noc_id_] && virtual_y == my_y[noc_id_];
    }
    bool is_local_addr(std::uint64_t noc_addr) const {
        return is_local_bank(NOC_UNICAST_ADDR_X(noc_addr), NOC_UNICAST_ADDR_Y(noc_addr));
    }

    template <TxnIdMode txn_id_mode = TxnIdMode::DISABLED,
              std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true,
              typename Src, typename Dst>
    void async_read(const Src& src, const Dst& dst, std::uint32_t size_bytes,
                    const src_args_t<Src>& src_args, const dst_args_t<Dst>& dst_args,
                    std::uint32_t read_req_vc = NOC_UNICAST_WRITE_VC,
                    std::uint32_t trid = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        if constexpr (txn_id_mode == TxnIdMode::ENABLED) {
            noc_async_read_set_trid(trid, noc_id_);
        }
        noc_async_read<max_page_size>(remote_source(src, src_args),
                                      local_destination(dst, dst_args), size_bytes, noc_id_,
                                      read_req_vc, here);
    }

    template <TxnIdMode txn_id_mode = TxnIdMode::DISABLED,
              ResponseMode response_mode = ResponseMode::NON_POSTED,
              std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true,
              typename Src, typename Dst>
    void async_write(const Src& src, const Dst& dst, std::uint32_t size_bytes,
                     const src_args_t<Src>& src_args, const dst_args_t<Dst>& dst_args,
                     std::uint32_t vc = NOC_UNICAST_WRITE_VC, std::uint32_t trid = INVALID_TXN_ID,
                     TTCODEGEN_HERE) const {
        constexpr bool posted = response_mode == ResponseMode::POSTED;
        if constexpr (txn_id_mode == TxnIdMode::ENABLED) {
            ttcodegen::device::start_write(local_source(src, src_args),
                                           remote_destination(dst, dst_args), size_bytes, noc_id_,
                                           posted, trid, here);
        } else {
            noc_async_write<max_page_size, enable_noc_tracing, posted>(
                local_source(src, src_args), remote_destination(dst, dst_args), size_bytes, noc_id_,
                vc, here);
        }
    }

    template <McastMode mcast_mode = McastMode::EXCLUDE_SRC,
              TxnIdMode txn_id_mode = TxnIdMode::DISABLED,
              ResponseMode response_mode = ResponseMode::NON_POSTED,
              std::uint32_t max_page_size = NOC_MAX_BURST_SIZE + 1, bool enable_noc_tracing = true,
              typename Src, typename Dst>
    void async_write_multicast(const Src& src, const Dst& dst, std::uint32_t size_bytes,
                               std::uint32_t num_dsts, const src_args_t<Src>& src_args,
                               const dst_args_mcast_t<Dst>& dst_args, bool /*linked*/ = false,
                               std::uint32_t /*trid*/ = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        ttcodegen::device::start_multicast(
            local_source(src, src_args),
            noc_traits_t<Dst>::template dst_addr_mcast<AddressType::NOC>(dst, *this, dst_args),
            size_bytes, num_dsts, mcast_mode == McastMode::INCLUDE_SRC, noc_id_, here);
    }

    /// Writes a word inline: it travels in the packet itself.
    template <TxnIdMode txn_id_mode = TxnIdMode::DISABLED,
              InlineWriteDst dst_type = InlineWriteDst::DEFAULT,
              ResponseMode response_mode = ResponseMode::NON_POSTED, typename Dst>
    void inline_dw_write(const Dst& dst, std::uint32_t val, const dst_args_t<Dst>& dst_args,
                         std::uint8_t be = 0xF, std::uint32_t /*vc*/ = NOC_UNICAST_WRITE_VC,
                         std::uint32_t /*trid*/ = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        auto& processor = ttcodegen::device::current();
        processor.functions->noc_write_word(processor, remote_destination(dst, dst_args), val, be,
                                            noc_id_, here);
    }

    template <BarrierMode barrier_mode = BarrierMode::FULL>
    void async_read_barrier(std::uint32_t trid = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        if constexpr (barrier_mode == BarrierMode::TXN_ID) {
            noc_async_read_barrier_with_trid(trid, noc_id_, here);
        } else {
            noc_async_read_barrier(noc_id_, here);
        }
    }

    template <BarrierMode barrier_mode = BarrierMode::FULL>
    void async_write_barrier(std::uint32_t trid = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        if constexpr (barrier_mode == BarrierMode::TXN_ID) {
            noc_async_write_barrier_with_trid(trid, noc_id_, here);
        } else {
            noc_async_write_barrier(noc_id_, here);
        }
    }

    template <ResponseMode response_mode = ResponseMode::NON_POSTED,
              BarrierMode barrier_mode = BarrierMode::FULL>
    void async_writes_flushed(std::uint32_t trid = INVALID_TXN_ID, TTCODEGEN_HERE) const {
        if constexpr (barrier_mode == BarrierMode::TXN_ID) {
            noc_async_write_flushed_with_trid(trid, noc_id_, here);
        } else if constexpr (response_mode == ResponseMode::POSTED) {
            noc_async_posted_writes_flushed(noc_id_, here);
        } else {
            noc_async_writes_flushed(noc_id_, here);
        }
    }

    void async_atomic_barrier(TTCODEGEN_HERE) const { noc_async_atomic_barrier(noc_id_, here); }
    void async_full_barrier(TTCODEGEN_HERE) const { noc_async_full_barrier(noc_id_, here); }

  private:
    std::uint8_t noc_id_;
};

}  // namespace experimental
