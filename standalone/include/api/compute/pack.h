#pragma once

#include "api/compute/common_globals.h"

namespace ckernel {

template <bool out_of_order_output = false>
ALWI void pack_tile(std::uint32_t ifrom_dst, std::uint32_t icb, std::uint32_t output_tile_index = 0,
                    TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack(processor, ifrom_dst, icb, out_of_order_output, output_tile_index,
                               here);
}

ALWI void pack_block(std::uint32_t ifrom_dst, std::uint32_t icb, std::uint32_t ntiles,
                     TTCODEGEN_HERE) {
    for (std::uint32_t tile = 0; tile < ntiles; ++tile) {
        pack_tile(ifrom_dst + tile, icb, 0, here);
    }
}

ALWI void pack_tile_block(std::uint32_t ifrom_dst, std::uint32_t icb, std::uint32_t ntiles,
                          TTCODEGEN_HERE) {
    pack_block(ifrom_dst, icb, ntiles, here);
}

template <bool is_tile_dim_reconfig_en = false>
ALWI void pack_reconfig_data_format(const std::uint32_t new_cb_id, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::Pack, kNoCircularBuffer, new_cb_id, here);
}

template <bool is_tile_dim_reconfig_en = false>
ALWI void pack_reconfig_data_format(const std::uint32_t old_cb_id, const std::uint32_t new_cb_id,
                                    TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::Pack, old_cb_id, new_cb_id, here);
}

/// Enables accumulation of packed values in the pages of the circular buffer.
ALWI void pack_reconfig_l1_acc(const std::uint32_t l1_acc_en, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack_l1_accumulate(processor, l1_acc_en != 0, here);
}

ALWI void pack_rows_init(std::uint32_t num_rows, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack_rows_mode(processor, true, num_rows, here);
}

ALWI void pack_rows(std::uint32_t idst, std::uint32_t ocb, std::uint32_t output_index = 0,
                    TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack_rows(processor, idst, ocb, output_index, here);
}

ALWI void pack_rows_uninit(TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack_rows_mode(processor, false, 0, here);
}

/// The low half is a ckernel::ReluType, the high half the bits of a bfloat16 threshold.
ALWI void pack_relu_config(const std::uint32_t config, TTCODEGEN_HERE) {
    auto& processor = ttcodegen::device::current();
    compute_of(processor).pack_relu(processor, config, here);
}

/// The configuration that 0.81.1 takes in place of the number.
struct ReluConfig {
    static constexpr ReluConfig from_packed(std::uint32_t packed) { return {packed}; }

    std::uint32_t packed;
};

ALWI void pack_relu_config(const ReluConfig& config, TTCODEGEN_HERE) {
    pack_relu_config(config.packed, here);
}

}  // namespace ckernel
