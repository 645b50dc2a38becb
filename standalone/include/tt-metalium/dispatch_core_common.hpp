#pragma once

#include <cstdint>
#include <optional>

#include "tt-metalium/core_coord.hpp"

namespace tt::tt_metal {

enum class DispatchCoreType : std::uint32_t { WORKER, ETH, COUNT };

enum class DispatchCoreAxis { ROW, COL, COUNT };

/// Selection of the cores that the runtime uses for dispatch.
class DispatchCoreConfig {
  private:
    DispatchCoreType type_;
    std::optional<DispatchCoreAxis> axis_;

  public:
    DispatchCoreConfig() : type_(DispatchCoreType::WORKER) {}
    DispatchCoreConfig(DispatchCoreType type) : type_(type) {}
    DispatchCoreConfig(DispatchCoreType type, DispatchCoreAxis axis) : type_(type), axis_(axis) {}

    DispatchCoreType get_dispatch_core_type() const { return type_; }
    bool operator==(const DispatchCoreConfig& other) const = default;
};

}  // namespace tt::tt_metal
