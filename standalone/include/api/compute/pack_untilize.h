#pragma once

#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"

namespace ckernel {

template <std::uint32_t block_ct_dim = 8, std::uint32_t full_ct_dim = block_ct_dim,
          bool narrow_row = false, std::uint32_t row_num_datums = 32, bool dense = false>
ALWI void pack_untilize_dest_init(std::uint32_t ocb, std::uint32_t = 16, std::uint32_t = 4,
                                  std::uint32_t = __builtin_LINE(), TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::Pack, kNoCircularBuffer, ocb, here);
    Processor& processor = current();
    compute_of(processor).pack_untilize_mode(processor, true, here);
}

template <std::uint32_t block_ct_dim = 8, std::uint32_t full_ct_dim = block_ct_dim>
ALWI void pack_untilize_init(std::uint32_t icb, std::uint32_t ocb,
                             std::uint32_t call_line = __builtin_LINE(), TTCODEGEN_HERE) {
    copy_tile_init(icb, call_line, here);
    pack_untilize_dest_init<block_ct_dim, full_ct_dim>(ocb, 16, 4, call_line, here);
}

/// Packs adjacent tiles of DST as row-major rows of the output's page.
template <std::uint32_t block_ct_dim = 8, std::uint32_t full_ct_dim = block_ct_dim,
          bool diagonal = false, bool narrow_row = false, std::uint32_t row_num_datums = 32,
          std::uint32_t tile_dst_ct_offset = 0, bool dense = false>
ALWI void pack_untilize_dest(std::uint32_t ocb, std::uint32_t block_rt_dim = 1,
                             std::uint32_t block_c_index = 0, std::uint32_t face_r_dim = 16,
                             std::uint32_t num_faces = 4, std::uint32_t tile_dst_rt_offset = 0,
                             TTCODEGEN_HERE) {
    static_assert(!diagonal && !dense,
                  "The emulated device packs neither diagonals nor dense rows");
    using namespace ttcodegen::device;
    PackRows rows;
    rows.block_columns = block_ct_dim;
    rows.full_columns = full_ct_dim;
    rows.block_rows = block_rt_dim;
    rows.block_column = block_c_index;
    rows.row_elements = narrow_row ? row_num_datums : 32;
    rows.face_height = face_r_dim;
    rows.num_faces = num_faces;
    rows.first_tile = tile_dst_rt_offset * block_ct_dim + tile_dst_ct_offset;
    Processor& processor = current();
    compute_of(processor).pack_untilize(processor, ocb, rows, here);
}

template <std::uint32_t block_ct_dim = 8, std::uint32_t full_ct_dim = block_ct_dim>
ALWI void pack_untilize_block(std::uint32_t icb, std::uint32_t block_rt_dim, std::uint32_t ocb,
                              std::uint32_t block_c_index = 0, TTCODEGEN_HERE) {
    for (std::uint32_t row = 0; row < block_rt_dim; ++row) {
        tile_regs_acquire(here);
        for (std::uint32_t column = 0; column < block_ct_dim; ++column) {
            copy_tile(icb, column, column, here);
        }
        tile_regs_commit(here);
        tile_regs_wait(here);
        pack_untilize_dest<block_ct_dim, full_ct_dim>(ocb, 1, block_c_index, 16, 4, 0, here);
        tile_regs_release(here);
    }
}

ALWI void pack_untilize_uninit(std::uint32_t ocb, TTCODEGEN_HERE) {
    using namespace ttcodegen::device;
    reconfigure_format(FormatRegister::Pack, kNoCircularBuffer, ocb, here);
    Processor& processor = current();
    compute_of(processor).pack_untilize_mode(processor, false, here);
}

}  // namespace ckernel
