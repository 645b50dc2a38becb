#pragma once

#include <cstdint>

#include "hostdevcommon/kernel_structs.h"
#include "ttcodegen/device/compute_calls.hpp"

// One fiber runs all three processors of the compute engine, so code for each of them is kept.
#define MATH(x) x
#define PACK(x) x
#define UNPACK(x) x

// Kernels use these names without their namespace.
using namespace ckernel;

// Settings of the ComputeConfig, for code that is selected when the kernel is compiled.
#ifndef TTCODEGEN_FP32_DEST_ACC_EN
#define TTCODEGEN_FP32_DEST_ACC_EN false
#endif
#ifndef TTCODEGEN_DST_FULL_SYNC_EN
#define TTCODEGEN_DST_FULL_SYNC_EN false
#endif
#ifndef TTCODEGEN_MATH_FIDELITY
#define TTCODEGEN_MATH_FIDELITY 4
#endif
#ifndef TTCODEGEN_MATH_APPROX_MODE
#define TTCODEGEN_MATH_APPROX_MODE false
#endif

constexpr bool DST_ACCUM_MODE = TTCODEGEN_FP32_DEST_ACC_EN;
#define DST_SYNC_MODE \
    (TTCODEGEN_DST_FULL_SYNC_EN ? ckernel::DstSync::SyncFull : ckernel::DstSync::SyncHalf)
constexpr auto MATH_FIDELITY = static_cast<ckernel::MathFidelity>(TTCODEGEN_MATH_FIDELITY);
constexpr bool APPROX = TTCODEGEN_MATH_APPROX_MODE;
