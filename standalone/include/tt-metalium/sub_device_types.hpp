#pragma once

#include <cstdint>

#include "tt_stl/strong_type.hpp"

namespace tt::tt_metal {

/// A subset of a device's cores that runs its own programs. The CPU backend has one, the device.
using SubDeviceId = ttsl::StrongType<std::uint8_t, struct SubDeviceIdTag>;

}  // namespace tt::tt_metal
