#pragma once

#include <type_traits>

#include "api/tensor/page.h"
#include "api/tensor/tensor_accessor_args.h"
#include "ttcodegen/device/dataflow_addresses.hpp"

namespace tensor_accessor {

/// Pages interleaved over the banks.
template <bool IsDram>
struct InterleavedSpec {
    static constexpr bool is_dram = IsDram;
};

/// Shards assigned to the banks round-robin, each with contiguous pages.
template <bool IsDram>
class DistributionSpec {
  public:
    static constexpr bool is_dram = IsDram;

    template <typename Args>
    explicit DistributionSpec(const Args& args)
        : rank_(args.get_rank()), num_banks_(args.get_num_banks()) {
        for (std::uint32_t i = 0; i < rank_; ++i) {
            tensor_shape_[i] = value<Args::tensor_shape_is_crta>(
                Args::TensorShapeCTAOffset, args.tensor_shape_crta_offset(), i);
            shard_shape_[i] = value<Args::shard_shape_is_crta>(Args::ShardShapeCTAOffset,
                                                               args.shard_shape_crta_offset(), i);
        }
        coordinates_ = words<Args::bank_coords_is_crta>(Args::BankCoordsCTAOffset,
                                                        args.bank_coords_crta_offset());
        std::uint32_t grid_stride = 1;
        for (std::uint32_t i = rank_; i-- > 0;) {
            tensor_strides_[i] = tensor_volume_;
            shard_strides_[i] = shard_volume_;
            shard_grid_[i] = (tensor_shape_[i] - 1) / shard_shape_[i] + 1;
            shard_grid_strides_[i] = grid_stride;
            tensor_volume_ *= tensor_shape_[i];
            shard_volume_ *= shard_shape_[i];
            grid_stride *= shard_grid_[i];
        }
    }

    std::uint32_t rank() const { return rank_; }
    std::uint32_t num_banks() const { return num_banks_; }
    const auto& tensor_shape() const { return tensor_shape_; }
    const auto& shard_shape() const { return shard_shape_; }
    const auto& tensor_strides() const { return tensor_strides_; }
    const auto& shard_strides() const { return shard_strides_; }
    const auto& shard_grid() const { return shard_grid_; }
    const auto& shard_grid_strides() const { return shard_grid_strides_; }
    std::uint32_t tensor_volume() const { return tensor_volume_; }
    std::uint32_t shard_volume() const { return shard_volume_; }
    /// Packed coordinates: 8 bits of x above 8 bits of y.
    std::uint32_t bank_coordinates(std::uint32_t bank) const {
        return coordinates_[bank / 2] >> (bank % 2 == 0 ? 0 : 16) & 0xffff;
    }

  private:
    using Sizes = std::uint32_t[MAX_RANK];

    template <bool at_run_time>
    static const std::uint32_t* words(std::uint32_t compile_time, std::uint32_t run_time) {
        if constexpr (at_run_time) {
            return reinterpret_cast<const std::uint32_t*>(
                get_common_arg_addr(static_cast<int>(run_time)));
        } else {
            return kernel_compile_time_args.data() + compile_time;
        }
    }
    template <bool at_run_time>
    static std::uint32_t value(std::uint32_t compile_time, std::uint32_t run_time,
                               std::uint32_t i) {
        return words<at_run_time>(compile_time + i, run_time + i)[0];
    }

    std::uint32_t rank_;
    std::uint32_t num_banks_;
    Sizes tensor_shape_{};
    Sizes shard_shape_{};
    Sizes tensor_strides_{};
    Sizes shard_strides_{};
    Sizes shard_grid_{};
    Sizes shard_grid_strides_{};
    std::uint32_t tensor_volume_ = 1;
    std::uint32_t shard_volume_ = 1;
    const std::uint32_t* coordinates_ = nullptr;
};

template <typename Args>
using SpecOf = std::conditional_t<Args::is_sharded, DistributionSpec<Args::is_dram>,
                                  InterleavedSpec<Args::is_dram>>;

}  // namespace tensor_accessor

/// Maps pages of a tensor to NoC addresses, for interleaved and sharded tensors.
template <typename DSpecT>
struct TensorAccessor {
    using DSpec = DSpecT;
    static constexpr bool is_dram = DSpec::is_dram;

    template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET>
    TensorAccessor(
        const TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>& args, std::size_t bank_base_address_in,
        std::uint32_t page_size_in = TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>::AlignedPageSize)
        : bank_base_address(static_cast<std::uint32_t>(bank_base_address_in)),
          aligned_page_size(page_size_in),
          spec_(args) {}

    const DSpec& dspec() const { return spec_; }
    std::uint32_t get_aligned_page_size() const { return aligned_page_size; }

    std::uint64_t get_noc_addr(std::uint32_t page_id, std::uint32_t offset = 0,
                               std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        check(page_id < spec_.tensor_volume(), page_id, "pages", spec_.tensor_volume(), here);
        std::uint32_t shard = 0;
        std::uint32_t page = 0;
        for (std::uint32_t i = spec_.rank(); i-- > 0;) {
            const std::uint32_t at = page_id % spec_.tensor_shape()[i];
            page_id /= spec_.tensor_shape()[i];
            shard += at / spec_.shard_shape()[i] * spec_.shard_grid_strides()[i];
            page += at % spec_.shard_shape()[i] * spec_.shard_strides()[i];
        }
        return address(shard, page, offset, noc, here);
    }

    /// The page at these page coordinates.
    template <typename Coordinates>
        requires requires(const Coordinates& at) { at[0]; }
    std::uint64_t get_noc_addr(const Coordinates& page_coord, std::uint32_t offset = 0,
                               std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        std::uint32_t id = 0;
        for (std::uint32_t i = 0; i < spec_.rank(); ++i) {
            id += page_coord[i] * spec_.tensor_strides()[i];
        }
        return get_noc_addr(id, offset, noc, here);
    }

    /// The first page of a shard.
    std::uint64_t get_shard_noc_addr(std::uint32_t shard_id, std::uint32_t offset = 0,
                                     std::uint8_t noc = noc_index, TTCODEGEN_HERE) const {
        return address(shard_id, 0, offset, noc, here);
    }

    bool is_local_bank(std::uint32_t virtual_x, std::uint32_t virtual_y,
                       std::uint8_t noc = noc_index) const {
        return virtual_x == my_x[noc] && virtual_y == my_y[noc];
    }
    bool is_local_addr(std::uint64_t noc_addr, std::uint8_t noc = noc_index) const {
        return is_local_bank(NOC_UNICAST_ADDR_X(noc_addr), NOC_UNICAST_ADDR_Y(noc_addr), noc);
    }
    bool is_local_page(std::uint32_t page_id, std::uint8_t noc = noc_index) const {
        return is_local_addr(get_noc_addr(page_id, 0, noc), noc);
    }
    bool is_local_shard(std::uint32_t shard_id, std::uint8_t noc = noc_index) const {
        return is_local_addr(get_shard_noc_addr(shard_id, 0, noc), noc);
    }

    tensor_accessor::Pages<TensorAccessor> pages(std::uint32_t start_page_id = 0,
                                                 std::uint32_t end_page_id = 0,
                                                 std::uint8_t noc = noc_index) const {
        return {*this, start_page_id, end_page_id == 0 ? spec_.tensor_volume() : end_page_id, noc};
    }

  private:
    static void check(bool inside, std::uint32_t index, const char* what, std::uint32_t count,
                      ttcodegen::device::Location here) {
        if (!inside) {
            auto& processor = ttcodegen::device::current();
            processor.functions->fail(processor, here, "index %u is beyond the %u %s of the tensor",
                                      index, count, what);
        }
    }

    std::uint64_t address(std::uint32_t shard, std::uint32_t page, std::uint32_t offset,
                          std::uint8_t noc, ttcodegen::device::Location here) const {
        const std::uint32_t bank = shard % spec_.num_banks();
        const std::uint32_t before = shard / spec_.num_banks() * spec_.shard_volume() + page;
        const std::uint32_t local = bank_base_address + before * aligned_page_size + offset;
        const std::uint32_t coordinates = spec_.bank_coordinates(bank);
        if constexpr (is_dram) {
            return get_noc_addr_from_bank_id<true>(coordinates >> 8, local, noc, here);
        } else {
            return NOC_XY_ADDR(coordinates >> 8, coordinates & 0xff, local);
        }
    }

    std::uint32_t bank_base_address;
    std::uint32_t aligned_page_size;
    DSpec spec_;
};

template <bool IsDram>
struct TensorAccessor<tensor_accessor::InterleavedSpec<IsDram>>
    : public InterleavedAddrGen<IsDram> {
    using DSpec = tensor_accessor::InterleavedSpec<IsDram>;

    template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET>
    TensorAccessor(
        const TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>& /*args*/,
        std::size_t bank_base_address_in,
        std::uint32_t page_size_in = TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>::AlignedPageSize)
        : InterleavedAddrGen<IsDram>(
              {.bank_base_address = static_cast<std::uint32_t>(bank_base_address_in),
               .page_size = page_size_in}) {}

    /// The size of a page transfer: the page size that the accessor was constructed with.
    std::uint32_t get_aligned_page_size() const { return this->page_size; }

    tensor_accessor::Pages<TensorAccessor> pages(std::uint32_t start_page_id,
                                                 std::uint32_t end_page_id,
                                                 std::uint8_t noc = noc_index) const {
        return {*this, start_page_id, end_page_id, noc};
    }
};

template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET>
TensorAccessor(const TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>&, std::size_t)
    -> TensorAccessor<tensor_accessor::SpecOf<TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>>>;
template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET>
TensorAccessor(const TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>&, std::size_t, std::uint32_t)
    -> TensorAccessor<tensor_accessor::SpecOf<TensorAccessorArgs<CTA_OFFSET, CRTA_OFFSET>>>;
