#pragma once

#include <cstddef>
#include <cstdint>

#include "api/compile_time_args.h"
#include "hostdevcommon/tensor_accessor/arg_config.hpp"
#include "ttcodegen/device/arguments.hpp"

namespace tensor_accessor {

constexpr std::size_t UNKNOWN = static_cast<std::size_t>(-1);
constexpr std::uint32_t MAX_RANK = 8;

}  // namespace tensor_accessor

/// The offset of the arguments that the host's TensorAccessorArgs appended for an accessor.
///
/// The configuration and the aligned page size are followed, each at compile time or run time, by
/// rank, number of banks, shape of the tensor and of a shard (both in pages), and coordinates of
/// the banks (two per word).
template <std::size_t CTA_OFFSET, std::size_t CRTA_OFFSET = tensor_accessor::UNKNOWN>
struct TensorAccessorArgs {
    static constexpr auto args_config = tensor_accessor::ArgsConfig(
        static_cast<tensor_accessor::ArgsConfig::Underlying>(get_ct_arg<CTA_OFFSET>()));
    static constexpr bool is_sharded = args_config.test(tensor_accessor::ArgConfig::Sharded);
    static constexpr bool is_dram = args_config.test(tensor_accessor::ArgConfig::IsDram);
    static constexpr bool rank_is_crta = args_config.test(tensor_accessor::ArgConfig::RuntimeRank);
    static constexpr bool num_banks_is_crta =
        args_config.test(tensor_accessor::ArgConfig::RuntimeNumBanks);
    static constexpr bool tensor_shape_is_crta =
        args_config.test(tensor_accessor::ArgConfig::RuntimeTensorShape);
    static constexpr bool shard_shape_is_crta =
        args_config.test(tensor_accessor::ArgConfig::RuntimeShardShape);
    static constexpr bool bank_coords_is_crta =
        args_config.test(tensor_accessor::ArgConfig::RuntimeBankCoords);

    static_assert(!is_sharded || !rank_is_crta || (tensor_shape_is_crta && shard_shape_is_crta),
                  "If rank is runtime, tensor_shape and shard_shape must also be runtime");
    static_assert(!is_sharded || !num_banks_is_crta || bank_coords_is_crta,
                  "If num_banks is runtime, bank_coords must also be runtime");

    static constexpr std::uint32_t AlignedPageSize = get_ct_arg<CTA_OFFSET + 1>();
    static constexpr std::uint32_t RankCTAOffset = CTA_OFFSET + 2;
    static constexpr std::uint32_t NumBanksCTAOffset = RankCTAOffset + (rank_is_crta ? 0 : 1);
    static constexpr std::uint32_t RankCT = [] {
        if constexpr (is_sharded && !rank_is_crta) {
            return get_ct_arg<RankCTAOffset>();
        } else {
            return 0;
        }
    }();
    static constexpr std::uint32_t NumBanksCT = [] {
        if constexpr (is_sharded && !num_banks_is_crta) {
            return get_ct_arg<NumBanksCTAOffset>();
        } else {
            return 0;
        }
    }();
    static constexpr std::uint32_t TensorShapeCTAOffset =
        NumBanksCTAOffset + (num_banks_is_crta ? 0 : 1);
    static constexpr std::uint32_t ShardShapeCTAOffset =
        TensorShapeCTAOffset + (tensor_shape_is_crta ? 0 : RankCT);
    static constexpr std::uint32_t BankCoordsCTAOffset =
        ShardShapeCTAOffset + (shard_shape_is_crta ? 0 : RankCT);
    static constexpr std::uint32_t NumArgsCT =
        is_sharded ? BankCoordsCTAOffset + (bank_coords_is_crta ? 0 : (NumBanksCT + 1) / 2) -
                         static_cast<std::uint32_t>(CTA_OFFSET)
                   : 2;

    constexpr TensorAccessorArgs() = default;
    constexpr explicit TensorAccessorArgs(std::uint32_t crta_offset)
        : crta_offset_rt_(crta_offset) {
        static_assert(CRTA_OFFSET == tensor_accessor::UNKNOWN,
                      "Do not pass crta_offset when CRTA_OFFSET is known");
    }

    constexpr std::uint32_t crta_offset() const {
        return CRTA_OFFSET == tensor_accessor::UNKNOWN ? crta_offset_rt_
                                                       : static_cast<std::uint32_t>(CRTA_OFFSET);
    }
    static constexpr std::uint32_t get_aligned_page_size() { return AlignedPageSize; }
    constexpr std::uint32_t rank_crta_offset() const { return crta_offset(); }
    constexpr std::uint32_t num_banks_crta_offset() const { return crta_offset() + rank_is_crta; }
    constexpr std::uint32_t get_rank() const {
        if constexpr (rank_is_crta) {
            return get_common_arg_val<std::uint32_t>(static_cast<int>(rank_crta_offset()));
        } else {
            return RankCT;
        }
    }
    constexpr std::uint32_t get_num_banks() const {
        if constexpr (num_banks_is_crta) {
            return get_common_arg_val<std::uint32_t>(static_cast<int>(num_banks_crta_offset()));
        } else {
            return NumBanksCT;
        }
    }
    constexpr std::uint32_t tensor_shape_crta_offset() const {
        return num_banks_crta_offset() + num_banks_is_crta;
    }
    constexpr std::uint32_t shard_shape_crta_offset() const {
        return tensor_shape_crta_offset() + (tensor_shape_is_crta ? get_rank() : 0);
    }
    constexpr std::uint32_t bank_coords_crta_offset() const {
        return shard_shape_crta_offset() + (shard_shape_is_crta ? get_rank() : 0);
    }
    static constexpr std::uint32_t num_compile_time_args() { return NumArgsCT; }
    static constexpr std::uint32_t next_compile_time_args_offset() {
        return static_cast<std::uint32_t>(CTA_OFFSET) + NumArgsCT;
    }
    constexpr std::uint32_t num_common_runtime_args() const {
        if constexpr (is_sharded) {
            return bank_coords_crta_offset() +
                   (bank_coords_is_crta ? (get_num_banks() + 1) / 2 : 0) - crta_offset();
        } else {
            return 0;
        }
    }
    constexpr std::uint32_t next_common_runtime_args_offset() const {
        return crta_offset() + num_common_runtime_args();
    }

  private:
    std::uint32_t crta_offset_rt_ = 0;
};
