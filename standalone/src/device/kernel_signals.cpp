#include "device/kernel_signals.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include "device/diagnostics.hpp"

namespace ttcodegen::device {

/// State for the signal handlers; a thread has one run at a time.
struct SignalAccess {
    static thread_local KernelSignals* current;
    static thread_local int fault;
    static thread_local std::uintptr_t fault_address;

    static Run& run(KernelSignals& signals) { return signals.run_; }
    static bool serve_offset(KernelSignals& signals, std::uintptr_t address);
    static bool is_stuck(KernelSignals& signals);
    static std::string describe_fault();
    [[noreturn]] static void give_up();
};

thread_local KernelSignals* SignalAccess::current = nullptr;
thread_local int SignalAccess::fault = 0;
thread_local std::uintptr_t SignalAccess::fault_address = 0;

namespace {

/// Offsets below it cannot be mapped (vm.mmap_min_addr); programs have no memory there.
constexpr std::uintptr_t kLowestMapped = 0x10000;

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
struct sigaction old_actions[64];

int timer_signal() { return SIGRTMIN + 5; }

/// A register in the saved context, whatever integer type the system's headers use.
using Register __attribute__((may_alias)) = std::uintptr_t;

Register& instruction(ucontext_t& context) {
#if defined(__x86_64__)
    return reinterpret_cast<Register&>(context.uc_mcontext.gregs[REG_RIP]);
#else
    return reinterpret_cast<Register&>(context.uc_mcontext.pc);
#endif
}

Register& stack_pointer(ucontext_t& context) {
#if defined(__x86_64__)
    return reinterpret_cast<Register&>(context.uc_mcontext.gregs[REG_RSP]);
#else
    return reinterpret_cast<Register&>(context.uc_mcontext.sp);
#endif
}

/// Resumes the fiber in `give_up`, at the top of its stack.
void divert(ucontext_t& context, const Fiber& fiber) {
    fiber.discard_frames();
    instruction(context) = reinterpret_cast<std::uintptr_t>(&SignalAccess::give_up);
    stack_pointer(context) = fiber.top() - 8;
}

void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& old = old_actions[signal];
    if ((old.sa_flags & SA_SIGINFO) != 0) {
        old.sa_sigaction(signal, info, context);
    } else if (old.sa_handler == SIG_DFL) {
        std::signal(signal, SIG_DFL);
        raise(signal);
    } else if (old.sa_handler != SIG_IGN) {
        old.sa_handler(signal);
    }
}

void handle_fault(int signal, siginfo_t* info, void* raw_context) {
    auto& context = *static_cast<ucontext_t*>(raw_context);
    KernelSignals* signals = SignalAccess::current;
    ProcessorState* state = signals == nullptr ? nullptr : SignalAccess::run(*signals).running();
    if (state == nullptr || !state->fiber->owns(stack_pointer(context))) {
        pass_on(signal, info, raw_context);
        return;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (signal == SIGSEGV && SignalAccess::serve_offset(*signals, address)) {
        return;
    }
    SignalAccess::fault = signal;
    SignalAccess::fault_address = address;
    divert(context, *state->fiber);
}

void handle_timer(int, siginfo_t*, void* raw_context) {
    auto& context = *static_cast<ucontext_t*>(raw_context);
    KernelSignals* signals = SignalAccess::current;
    if (signals == nullptr || !SignalAccess::is_stuck(*signals)) {
        return;
    }
    ProcessorState* state = SignalAccess::run(*signals).running();
    if (state == nullptr || !state->fiber->owns(stack_pointer(context))) {
        return;
    }
    SignalAccess::fault = 0;
    divert(context, *state->fiber);
}

/// Handlers need a separate stack, since the overflow of a fiber's stack may be the fault.
void provide_signal_stack() {
    static thread_local bool provided = false;
    if (provided) {
        return;
    }
    provided = true;
    stack_t present{};
    if (sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    constexpr std::size_t kBytes = 64 * 1024;
    static thread_local std::byte* memory = new std::byte[kBytes];
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kBytes;
    sigaltstack(&stack, nullptr);
}

void install_handlers() {
    struct sigaction action{};
    action.sa_sigaction = handle_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (const int signal : kFaults) {
        sigaction(signal, &action, &old_actions[signal]);
    }
    action.sa_sigaction = handle_timer;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigaction(timer_signal(), &action, nullptr);
}

void restore_handlers() {
    for (const int signal : kFaults) {
        sigaction(signal, &old_actions[signal], nullptr);
    }
}

unsigned allowed_seconds() {
    constexpr unsigned kDefault = 10;
    const char* text = std::getenv("TTCODEGEN_KERNEL_SECONDS");
    const long seconds = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    return seconds > 0 ? static_cast<unsigned>(seconds) : kDefault;
}

// Runs on several threads share the process's handlers.
std::mutex handlers_mutex;
int handlers_users = 0;

}  // namespace

bool SignalAccess::serve_offset(KernelSignals& signals, std::uintptr_t address) {
    ProcessorState* state = signals.run_.running();
    const std::uint32_t size = state->processor.l1_size;
    if (address < kLowestMapped || address >= size || signals.mapped_ == state->core) {
        return false;
    }
    const Mapping& arena = signals.run_.memory().l1_arena();
    const auto offset = static_cast<off_t>(std::size_t{kL1Window} * state->core->worker);
    void* wanted = reinterpret_cast<void*>(kLowestMapped);
    void* mapped =
        mmap(wanted, size - kLowestMapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
             arena.file(), offset + static_cast<off_t>(kLowestMapped));
    if (mapped != wanted) {
        if (mapped != MAP_FAILED) {
            munmap(mapped, size - kLowestMapped);
        }
        return false;
    }
    signals.mapped_ = state->core;
    return true;
}

bool SignalAccess::is_stuck(KernelSignals& signals) {
    const std::uint64_t progress = signals.run_.progress();
    signals.silent_seconds_ = progress == signals.seen_progress_ ? signals.silent_seconds_ + 1 : 0;
    signals.seen_progress_ = progress;
    return signals.silent_seconds_ >= signals.allowed_seconds_;
}

std::string SignalAccess::describe_fault() {
    const ProcessorState& state = *current->run_.running();
    std::string what;
    switch (fault) {
        case 0:
            what = "it has computed for " + std::to_string(current->allowed_seconds_) +
                   " seconds without calling the kernel API; a loop that polls memory must call "
                   "invalidate_l1_cache() or wait with noc_semaphore_wait";
            break;
        case SIGFPE:
            what = "it divides an integer by zero";
            break;
        case SIGILL:
            what = "it runs into code that cannot be reached";
            break;
        default:
            what = state.fiber->owns(fault_address)
                       ? std::string("its stack is full")
                       : format("it accesses address 0x%zx, which is not in the core's L1",
                                static_cast<std::size_t>(fault_address));
    }
    return failure_message(state, what);
}

void SignalAccess::give_up() {
    // No destructors run for this stack any more, so no object may be left on it.
    Run& run = current->run_;
    run.record_failure(describe_fault());
    run.running()->fiber->abandon();
}

KernelSignals::KernelSignals(Run& run) : run_(run), allowed_seconds_(allowed_seconds()) {
    provide_signal_stack();
    {
        const std::lock_guard lock(handlers_mutex);
        if (handlers_users++ == 0) {
            install_handlers();
        }
    }
    SignalAccess::current = this;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    timer_t timer = nullptr;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0) {
        timer_ = timer;
        timer_made_ = true;
        const itimerspec every_second{{1, 0}, {1, 0}};
        timer_settime(timer, 0, &every_second, nullptr);
    }
}

KernelSignals::~KernelSignals() {
    if (timer_made_) {
        timer_delete(timer_);
    }
    SignalAccess::current = nullptr;
    if (mapped_ != nullptr) {
        munmap(reinterpret_cast<void*>(kLowestMapped), run_.architecture().l1_size - kLowestMapped);
    }
    const std::lock_guard lock(handlers_mutex);
    if (--handlers_users == 0) {
        restore_handlers();
    }
}

void KernelSignals::enter(const CoreState& core) {
    if (mapped_ != nullptr && mapped_ != &core) {
        munmap(reinterpret_cast<void*>(kLowestMapped), run_.architecture().l1_size - kLowestMapped);
        mapped_ = nullptr;
    }
}

}  // namespace ttcodegen::device
