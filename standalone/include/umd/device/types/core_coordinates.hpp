#pragma once

namespace tt {

/// The kinds of nodes on the NoC.
enum class CoreType {
    ARC,
    DRAM,
    ACTIVE_ETH,
    IDLE_ETH,
    PCIE,
    TENSIX,
    ROUTER_ONLY,
    SECURITY,
    L2CPU,
    DISPATCH,
    HARVESTED,
    ETH,
    WORKER,
    COUNT,
    UNSPECIFIED,
};

}  // namespace tt
