#pragma once

namespace tt::tt_metal::experimental {

/// A circular buffer that feeds a program's cores from others. Programs name it only as an absent
/// argument: the CPU backend offers no way to make one.
class GlobalCircularBuffer {
  public:
    GlobalCircularBuffer() = delete;
};

}  // namespace tt::tt_metal::experimental
