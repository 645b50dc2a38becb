// A product of tiles with a bias and an activation, and a sum of its rows.

#include "api/compute/bcast.h"
#include "api/compute/common.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/matmul.h"
#include "api/compute/pack.h"
#include "api/compute/reduce.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t num_blocks = get_named_compile_time_arg_val("num_blocks");
    constexpr uint32_t cb_bias = get_compile_time_arg_val(0);
    constexpr uint32_t cb_scale = get_compile_time_arg_val(1);
    constexpr uint32_t cb_out = get_compile_time_arg_val(2);
    mm_init(0, 1, cb_out);
    tile_regs_acquire();
    for (uint32_t block = 0; block < num_blocks; ++block) {
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        matmul_tiles(0, 1, 0, 0, 0);
        cb_pop_front(0, 1);
        cb_pop_front(1, 1);
    }
    exp_tile_init();
    exp_tile(0);
    tile_regs_commit();
    tile_regs_wait();
    cb_reserve_back(cb_out, 1);
    pack_tile(0, cb_out);
    cb_push_back(cb_out, 1);
    tile_regs_release();
    PACK((pack_reconfig_data_format(cb_out)));
    add_bcast_rows_init_short(cb_out, cb_bias);
    reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(cb_out, cb_scale, cb_out);
    tile_regs_acquire();
    reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(cb_out, cb_scale, 0, 0, 0);
    tile_regs_commit();
    reduce_uninit();
}
