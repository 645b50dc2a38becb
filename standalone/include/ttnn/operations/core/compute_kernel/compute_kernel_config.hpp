#pragma once

#include "tt-metalium/base_types.hpp"
#include "ttnn/operations/compute_throttle_utils.hpp"

namespace ttnn {

/// Fidelity, accumulation and approximation modes of the compute engine.
struct ComputeKernelConfig {
    tt::tt_metal::MathFidelity math_fidelity = tt::tt_metal::MathFidelity::LoFi;
    bool math_approx_mode = true;
    bool fp32_dest_acc_en = false;
    bool packer_l1_acc = false;
    bool dst_full_sync_en = false;
    ttnn::operations::compute_throttle_utils::ThrottleLevel throttle_level =
        ttnn::operations::compute_throttle_utils::ThrottleLevel::NO_THROTTLE;
};

using DeviceComputeKernelConfig = ComputeKernelConfig;
using WormholeComputeKernelConfig = ComputeKernelConfig;
using BlackholeComputeKernelConfig = ComputeKernelConfig;

}  // namespace ttnn
