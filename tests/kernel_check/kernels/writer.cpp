// Writes tiles of a tensor and signals a core that they are there.

#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    const uint32_t address = get_arg_val<uint32_t>(0);
    constexpr uint32_t num_tiles = get_named_compile_time_arg_val("num_tiles");
    constexpr uint32_t cb_out = get_compile_time_arg_val(0);
    constexpr auto accessor_args = TensorAccessorArgs<1>();
    const auto accessor = TensorAccessor(accessor_args, address, get_tile_size(cb_out));
    for (uint32_t tile = 0; tile < num_tiles; ++tile) {
        cb_wait_front(cb_out, 1);
        noc_async_write_page(tile, accessor, get_read_ptr(cb_out));
        noc_async_writes_flushed();
        cb_pop_front(cb_out, 1);
    }
    noc_async_write_barrier();
    noc_semaphore_inc(get_noc_addr(1, 1, get_semaphore(0)), 1);
}
