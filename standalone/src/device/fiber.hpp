/// Cooperative fibers: each kernel runs on a stack of its own and gives way when it waits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ttcodegen::device {

/// A function on a stack of its own. A fiber runs on the thread that resumes it, until it suspends.
class Fiber {
  public:
    using Entry = void (*)(void* argument);

    /// @param slot What `current()` of the kernel headers finds at the top of the stack.
    Fiber(Entry entry, void* argument, void* slot);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the fiber until it suspends or ends. Called from outside of fibers.
    void resume();
    /// Goes back to where the fiber was resumed. Called on the fiber.
    void suspend();
    /// Goes back for good; what is on the stack is given up. Called on the fiber.
    [[noreturn]] void abandon();

    /// Gives up what is on the stack, so that its top can be used anew. Called on a signal's stack.
    void discard_frames() const;

    bool finished() const { return finished_; }
    /// Whether an address is on this fiber's stack or on the guard page below it.
    bool owns(std::uintptr_t address) const;
    /// The top of the stack, aligned as a function entry needs it.
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
    // For AddressSanitizer, which must know the bounds of the stack that runs.
    void* fiber_fake_stack_ = nullptr;
    void* caller_fake_stack_ = nullptr;
    const void* caller_bottom_ = nullptr;
    std::size_t caller_size_ = 0;
};

}  // namespace ttcodegen::device
