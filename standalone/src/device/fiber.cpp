#include "device/fiber.hpp"

#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "device/sanitizer.hpp"
#include "tt_stl/assert.hpp"
#include "ttcodegen/device/processor.hpp"

#if defined(__x86_64__)
// Saves callee-saved registers, switches stacks, restores. First argument: where to store the
// current stack pointer; second: the stack pointer to continue with.
asm(R"(
.text
.p2align 4
.type ttcodegen_switch_stack, @function
ttcodegen_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size ttcodegen_switch_stack, .-ttcodegen_switch_stack
.type ttcodegen_start_fiber, @function
ttcodegen_start_fiber:
    movq %r12, %rdi
    xorl %ebp, %ebp
    call *%r13
    ud2
.size ttcodegen_start_fiber, .-ttcodegen_start_fiber
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.type ttcodegen_switch_stack, %function
ttcodegen_switch_stack:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size ttcodegen_switch_stack, .-ttcodegen_switch_stack
.type ttcodegen_start_fiber, %function
ttcodegen_start_fiber:
    mov x0, x19
    mov x29, xzr
    blr x20
    brk #1
.size ttcodegen_start_fiber, .-ttcodegen_start_fiber
)");
#else
#error "the emulated device knows how to switch stacks on x86-64 and AArch64"
#endif

extern "C" void ttcodegen_switch_stack(void** from, void* to);
extern "C" void ttcodegen_start_fiber();

namespace ttcodegen::device {

namespace {

constexpr std::size_t kGuardBytes = 4096;

/// Free stacks of fibers: a program needs several hundreds, and the next one as many.
class StackPool {
  public:
    std::byte* take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            grow();
        }
        std::byte* stack = free_.back();
        free_.pop_back();
        return stack;
    }
    void give(std::byte* stack) {
        const std::lock_guard lock(mutex_);
        free_.push_back(stack);
    }

  private:
    static constexpr std::size_t kBatch = 64;

    void grow() {
        void* memory = mmap(nullptr, (kBatch + 1) * kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        TT_FATAL(memory != MAP_FAILED, "The system gives no memory for the stacks of kernels");
        const auto start = reinterpret_cast<std::uintptr_t>(memory);
        const std::uintptr_t first = (start + kStackBytes - 1) & ~(kStackBytes - 1);
        for (std::size_t i = kBatch; i-- > 0;) {
            auto* stack = reinterpret_cast<std::byte*>(first + i * kStackBytes);
            // A stack overflow must fault instead of writing to the stack of another fiber.
            mprotect(stack, kGuardBytes, PROT_NONE);
            free_.push_back(stack);
        }
    }

    std::mutex mutex_;
    std::vector<std::byte*> free_;
};

StackPool& stack_pool() {
    static auto* pool = new StackPool;  // fibers may outlive static objects
    return *pool;
}

}  // namespace

Fiber::Fiber(Entry entry, void* argument, void* slot)
    : stack_(stack_pool().take()), entry_(entry), argument_(argument) {
    std::memcpy(stack_ + kStackBytes - sizeof(void*), &slot, sizeof(void*));
    void* self = this;
    void* function = reinterpret_cast<void*>(&Fiber::start);
    void* entry_point = reinterpret_cast<void*>(&ttcodegen_start_fiber);
    auto* frame = reinterpret_cast<std::byte*>(top());
#if defined(__x86_64__)
    // As left by ttcodegen_switch_stack: r15 r14 r13 r12 rbx rbp, then the return address.
    frame -= 7 * sizeof(void*);
    std::memset(frame, 0, 7 * sizeof(void*));
    std::memcpy(frame + 2 * sizeof(void*), &function, sizeof(void*));
    std::memcpy(frame + 3 * sizeof(void*), &self, sizeof(void*));
    std::memcpy(frame + 6 * sizeof(void*), &entry_point, sizeof(void*));
#else
    frame -= 160;
    std::memset(frame, 0, 160);
    std::memcpy(frame, &self, sizeof(void*));
    std::memcpy(frame + 8, &function, sizeof(void*));
    std::memcpy(frame + 88, &entry_point, sizeof(void*));
#endif
    fiber_context_ = frame;
}

Fiber::~Fiber() {
    discard_frames();
    stack_pool().give(stack_);
}

void Fiber::discard_frames() const {
#ifdef TTCODEGEN_ASAN
    __asan_unpoison_memory_region(stack_ + kGuardBytes, kStackBytes - kGuardBytes);
#endif
}

std::uintptr_t Fiber::top() const {
    return reinterpret_cast<std::uintptr_t>(stack_) + kStackBytes - 64;
}

bool Fiber::owns(std::uintptr_t address) const {
    const auto stack = reinterpret_cast<std::uintptr_t>(stack_);
    return address >= stack && address - stack < kStackBytes;
}

void Fiber::start(Fiber* fiber) {
#ifdef TTCODEGEN_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &fiber->caller_bottom_, &fiber->caller_size_);
#endif
    fiber->entry_(fiber->argument_);
    fiber->abandon();
}

void Fiber::resume() {
#ifdef TTCODEGEN_ASAN
    __sanitizer_start_switch_fiber(&caller_fake_stack_, stack_, kStackBytes);
#endif
    ttcodegen_switch_stack(&caller_context_, fiber_context_);
#ifdef TTCODEGEN_ASAN
    __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::leave([[maybe_unused]] bool for_good) {
#ifdef TTCODEGEN_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fiber_fake_stack_, caller_bottom_,
                                   caller_size_);
#endif
    ttcodegen_switch_stack(&fiber_context_, caller_context_);
#ifdef TTCODEGEN_ASAN
    __sanitizer_finish_switch_fiber(fiber_fake_stack_, &caller_bottom_, &caller_size_);
#endif
}

void Fiber::suspend() { leave(false); }

void Fiber::abandon() {
    finished_ = true;
    leave(true);
    __builtin_unreachable();
}

}  // namespace ttcodegen::device
