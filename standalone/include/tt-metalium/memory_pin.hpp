#pragma once

#include <memory>
#include <utility>

namespace tt::tt_metal {

/// Keeps memory that a tensor borrows, such as a mapped file, until no tensor uses it.
class MemoryPin {
  public:
    MemoryPin() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): as in the library.
    MemoryPin(std::shared_ptr<void> resource) : resource_(std::move(resource)) {}

    const std::shared_ptr<void>& resource() const { return resource_; }

  private:
    std::shared_ptr<void> resource_;
};

}  // namespace tt::tt_metal
