#pragma once

namespace tt::tt_metal::experimental {

/// A circular buffer that is filled by cores of other programs. Programs use it only as the type of
/// an absent argument: the CPU backend cannot create one.
class GlobalCircularBuffer {
  public:
    GlobalCircularBuffer() = delete;
};

}  // namespace tt::tt_metal::experimental
