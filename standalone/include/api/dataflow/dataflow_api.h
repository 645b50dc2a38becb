#pragma once

#include "api/tensor/tensor_accessor.h"
#include "ttcodegen/device/dataflow_addresses.hpp"
#include "ttcodegen/device/dataflow_circular_buffers.hpp"
#include "ttcodegen/device/dataflow_semaphores.hpp"
#include "ttcodegen/device/dataflow_transfers.hpp"

/// Initiates the read of a shard of a sharded buffer.
template <typename DSpec>
void noc_async_read_shard(std::uint32_t shard_id, const TensorAccessor<DSpec>& s,
                          std::uint32_t dst_local_l1_addr, std::uint8_t noc = noc_index,
                          TTCODEGEN_HERE) {
    ttcodegen::device::start_read(s.get_shard_noc_addr(shard_id, 0, noc, here), dst_local_l1_addr,
                                  s.get_aligned_page_size() * s.dspec().shard_volume(), noc, here);
}

/// Initiates the write of a shard of a sharded buffer.
template <typename DSpec, bool posted = false>
void noc_async_write_shard(std::uint32_t shard_id, const TensorAccessor<DSpec>& s,
                           std::uint32_t src_local_l1_addr, std::uint8_t noc = noc_index,
                           TTCODEGEN_HERE) {
    ttcodegen::device::start_write(src_local_l1_addr, s.get_shard_noc_addr(shard_id, 0, noc, here),
                                   s.get_aligned_page_size() * s.dspec().shard_volume(), noc,
                                   posted, ttcodegen::device::kNoTransaction, here);
}
