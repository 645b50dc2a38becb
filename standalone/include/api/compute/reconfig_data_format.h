#pragma once

#include "api/compute/common_globals.h"
// Later releases declare the packer's format here.
#include "api/compute/pack.h"

namespace ckernel {

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format_srca(const std::uint32_t srca_new_operand, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, kNoCircularBuffer, srca_new_operand, here);
}

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format_srca(const std::uint32_t srca_old_operand,
                                    const std::uint32_t srca_new_operand, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceA, srca_old_operand, srca_new_operand, here);
}

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format_srcb(const std::uint32_t srcb_new_operand, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceB, kNoCircularBuffer, srcb_new_operand, here);
}

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format_srcb(const std::uint32_t srcb_old_operand,
                                    const std::uint32_t srcb_new_operand, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::SourceB, srcb_old_operand, srcb_new_operand, here);
}

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format(const std::uint32_t srca_new_operand,
                               const std::uint32_t srcb_new_operand, TTCODEGEN_HERE) {
    reconfig_data_format_srca(srca_new_operand, here);
    reconfig_data_format_srcb(srcb_new_operand, here);
}

template <bool to_from_int8 = false, bool is_tile_dim_reconfig_en = false>
ALWI void reconfig_data_format(const std::uint32_t srca_old_operand,
                               const std::uint32_t srca_new_operand,
                               const std::uint32_t srcb_old_operand,
                               const std::uint32_t srcb_new_operand, TTCODEGEN_HERE) {
    reconfig_data_format_srca(srca_old_operand, srca_new_operand, here);
    reconfig_data_format_srcb(srcb_old_operand, srcb_new_operand, here);
}

}  // namespace ckernel
