#pragma once

#include "api/compute/common_globals.h"

// On the device these may insert data format changes that the kernel omits. Here an omitted change
// is reported instead, so they do nothing.
template <ckernel::Operand operand = ckernel::Operand::SRCA>
ALWI void state_configure(std::uint32_t, std::uint32_t = __builtin_LINE()) {}

template <ckernel::Operand operand_a = ckernel::Operand::SRCA,
          ckernel::Operand operand_b = ckernel::Operand::SRCB>
ALWI void state_configure(std::uint32_t, std::uint32_t, std::uint32_t) {}

ALWI void state_configure(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t) {}
