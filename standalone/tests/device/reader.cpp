#include "api/dataflow/dataflow_api.h"

// Reads pages `start` to `start + count` of a buffer into a circular buffer, one by one.
void kernel_main() {
    const uint32_t address = get_arg_val<uint32_t>(0);
    const uint32_t start = get_arg_val<uint32_t>(1);
    const uint32_t count = get_arg_val<uint32_t>(2);
    constexpr uint32_t cb_in = get_named_compile_time_arg_val("cb_in");
    constexpr auto args = TensorAccessorArgs<0>();
    const auto source = TensorAccessor(args, address, get_tile_size(cb_in));

    for (uint32_t page = start; page < start + count; ++page) {
        cb_reserve_back(cb_in, 1);
        noc_async_read_tile(page, source, get_write_ptr(cb_in));
        noc_async_read_barrier();
        cb_push_back(cb_in, 1);
    }
}
