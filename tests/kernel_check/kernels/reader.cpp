// Reads tiles of two tensors and hands the second to all cores of a row.

#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    const uint32_t address = get_arg_val<uint32_t>(0);
    const uint32_t first_tile = get_arg_val<uint32_t>(1);
    constexpr uint32_t num_tiles = get_named_compile_time_arg_val("num_tiles");
    constexpr uint32_t cb_in = get_compile_time_arg_val(0);
    constexpr auto accessor_args = TensorAccessorArgs<1>();
    const auto accessor = TensorAccessor(accessor_args, address, get_tile_size(cb_in));
    const uint32_t semaphore = get_semaphore(0);
    volatile tt_l1_ptr uint32_t* ready = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(semaphore);
    for (uint32_t tile = first_tile; tile < first_tile + num_tiles; ++tile) {
        cb_reserve_back(cb_in, 1);
        const uint32_t l1 = get_write_ptr(cb_in);
        noc_async_read_page(tile, accessor, l1);
        noc_async_read_barrier();
        noc_semaphore_wait(ready, 7);
        noc_semaphore_set(ready, 0);
        const uint64_t row = get_noc_multicast_addr(1, 1, 8, 1, l1);
        noc_async_write_multicast(l1, row, get_tile_size(cb_in), 7);
        noc_semaphore_set_multicast(semaphore, get_noc_multicast_addr(1, 1, 8, 1, semaphore), 7);
        noc_async_write_barrier();
        cb_push_back(cb_in, 1);
    }
}
