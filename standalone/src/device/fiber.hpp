/// Cooperative fibers: each kernel runs on its own stack and yields when it waits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ttcodegen::device {

/// A function on its own stack. A fiber runs on the thread that resumes it, until it suspends.
class Fiber {
  public:
    using Entry = void (*)(void* argument);

    /// @param slot The value at the top of the stack, for `current()` of the kernel headers.
    Fiber(Entry entry, void* argument, void* slot);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the fiber until it suspends or ends. Called from outside of fibers.
    void resume();
    /// Returns to the caller of `resume`. Called on the fiber.
    void suspend();
    /// Returns for good; the stack's content is discarded. Called on the fiber.
    [[noreturn]] void abandon();

    /// Discards the stack's content, so that its top can be reused. Called on a signal stack.
    void discard_frames() const;

    bool finished() const { return finished_; }
    /// Returns whether an address is on this fiber's stack or on the guard page below it.
    bool owns(std::uintptr_t address) const;
    /// The top of the stack, aligned for a function entry.
    std::uintptr_t top() const;

  private:
    static void start(Fiber* fiber);
    void leave(bool for_good);

    std::byte* stack_;
    void* fiber_context_ = nullptr;
    void* caller_context_ = nullptr;
    Entry entry_;
    void* argument_;
    bool finished_ = false;
    // For AddressSanitizer, which must know the bounds of the current stack.
    void* fiber_fake_stack_ = nullptr;
    void* caller_fake_stack_ = nullptr;
    const void* caller_bottom_ = nullptr;
    std::size_t caller_size_ = 0;
};

}  // namespace ttcodegen::device
