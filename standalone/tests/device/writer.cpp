#include "api/dataflow/dataflow_api.h"

// Writes pages `start` to `start + count` of a buffer from a circular buffer, one by one.
void kernel_main() {
    const uint32_t address = get_arg_val<uint32_t>(0);
    const uint32_t start = get_arg_val<uint32_t>(1);
    const uint32_t count = get_arg_val<uint32_t>(2);
    constexpr uint32_t cb_out = get_named_compile_time_arg_val("cb_out");
    constexpr auto args = TensorAccessorArgs<0>();
    const auto target = TensorAccessor(args, address, get_tile_size(cb_out));

    for (uint32_t page = start; page < start + count; ++page) {
        cb_wait_front(cb_out, 1);
        noc_async_write_tile(page, target, get_read_ptr(cb_out));
        noc_async_write_barrier();
        cb_pop_front(cb_out, 1);
    }
}
