// In place of the library's header: tiles of zeros, without what the NoC keeps between reads.
#pragma once

#include "api/dataflow/dataflow_api.h"

namespace dataflow_kernel_lib {

constexpr std::uint32_t FACE_SIZE_U32 = 128;
constexpr std::uint32_t FACE_SIZE_U32_FP32 = 256;

inline volatile tt_l1_ptr std::uint32_t* addr_to_l1_ptr(std::uint32_t address) {
    return reinterpret_cast<volatile tt_l1_ptr std::uint32_t*>(address);
}

template <std::uint32_t cb_id>
void zero_tile(std::uint32_t address) {
    const std::uint32_t end = address + get_tile_size(cb_id);
    for (; address < end; address += MEM_ZEROS_SIZE) {
        noc_async_read(get_noc_addr(MEM_ZEROS_BASE), address, MEM_ZEROS_SIZE);
    }
    noc_async_read_barrier();
}

}  // namespace dataflow_kernel_lib
