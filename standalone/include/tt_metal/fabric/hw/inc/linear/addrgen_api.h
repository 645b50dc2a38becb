/// Packets for pages of tensors.
#pragma once

#include "api/dataflow/dataflow_api.h"
#include "api/tensor/tensor_accessor.h"
#include "tt_metal/fabric/fabric_edm_packet_header.hpp"

namespace tt::tt_fabric::linear {

/// Writes the payload to page `id` of the tensor on the other device. Ethernet cores use NoC 0
/// addresses.
template <typename AddrGenType>
void to_noc_unicast_write(std::uint32_t packet_payload_size, volatile PACKET_HEADER_TYPE* pkt_hdr,
                          const std::uint32_t id, const AddrGenType& d, std::uint32_t offset = 0) {
    pkt_hdr->to_noc_unicast_write(NocUnicastCommandHeader{d.get_noc_addr(id, offset, 0)},
                                  packet_payload_size);
}

}  // namespace tt::tt_fabric::linear
