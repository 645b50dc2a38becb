/// One execution of a program: the state of cores and processors, and the scheduler of the fibers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/emulated_device.hpp"
#include "device/fiber.hpp"
#include "device/program.hpp"
#include "device/zones.hpp"
#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// Thrown on a kernel's fiber, with the complete message.
class KernelFailure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A region of a core's L1 that the program may access.
struct Region {
    enum class Kind { Zeros, Semaphores, CircularBuffer, Buffer, Arguments };
    std::uint32_t begin;
    std::uint32_t end;
    Kind kind;
    std::uint32_t index;  ///< Of a circular buffer.
};

struct ProcessorState;

struct CoreState {
    std::uint32_t worker = 0;
    CoreCoord logical;
    CoreCoord noc;
    std::byte* l1 = nullptr;
    CircularBuffer circular_buffers[kMaxCircularBuffers];
    std::vector<Region> regions;  ///< By begin; circular buffers may share memory with others.
    std::vector<ProcessorState*> processors;
    std::uint32_t num_semaphores = 0;
};

/// An issued read, which takes effect at the next barrier.
struct PendingRead {
    const std::byte* source;
    std::byte* destination;
    std::uint32_t bytes;
    std::uint32_t transaction;
    std::uint8_t noc;
    Location here;
};

/// A write whose source must not change until a barrier or flush.
struct PendingWrite {
    std::uint32_t begin;  ///< Of the source, in the core's L1.
    std::uint32_t end;
    std::uint32_t transaction;
    std::uint8_t noc;
    bool posted;
    Location here;
};

/// The condition that a suspended processor waits for.
struct Wait {
    enum class Kind { None, Front, Back, Word, Yield };
    Kind kind = Kind::None;
    std::uint32_t cb = 0;
    std::uint32_t wanted = 0;
    const std::byte* word = nullptr;
    std::uint32_t address = 0;
    bool at_least = false;
    Location here;
};

class Run;

struct ProcessorState {
    Processor processor;
    Run* run = nullptr;
    CoreState* core = nullptr;
    const Kernel* kernel = nullptr;
    std::vector<std::byte> globals;  ///< The kernel's variables while another processor has them.
    std::unique_ptr<Fiber> fiber;
    Wait wait;
    bool queued = false;
    std::vector<PendingRead> reads;
    std::vector<PendingWrite> writes;
    Location last_atomic;
    std::uint32_t pending_atomics[2] = {0, 0};
    ComputeSettings settings;
    ZoneRecorder zones;

    static ProcessorState& of(Processor& processor) {
        return *static_cast<ProcessorState*>(processor.run);
    }
    bool is_compute() const { return processor.kind == ProcessorKind::Compute; }
};

/// Runs the kernels of a program on a chip to completion.
class Run {
  public:
    Run(EmulatedDevice& device, std::size_t chip, tt::tt_metal::detail::ProgramImpl& program);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    /// Runs until all kernels are done, or wait for other chips.
    /// @return Whether they are done.
    /// @throws std::runtime_error with a report if a kernel fails.
    bool advance();
    /// Returns whether any kernel computes; the registers of the cores are shared by all chips.
    bool computes() const;
    /// @throws std::runtime_error with the conditions that processors wait for.
    [[noreturn]] void fail_in_deadlock() const;

    EmulatedDevice& device() { return device_; }
    std::size_t chip() const { return chip_; }
    /// The memory of the chip.
    Memory& memory() { return device_.memory(chip_); }
    const Architecture& architecture() const { return device_.architecture(); }
    /// The core of a worker; null if the program does not use it.
    CoreState* core(std::uint32_t worker) { return by_worker_[worker]; }
    const std::vector<std::unique_ptr<ProcessorState>>& processors() const { return processors_; }

    /// Suspends the calling fiber until its condition may hold.
    void wait(ProcessorState& state, const Wait& wait);
    /// Wakes processors that wait for memory or circular buffers of this core.
    void wake(CoreState& core);
    /// Ends the run with this message; called on a fiber, or in place of one that crashed.
    void record_failure(std::string message);

    ProcessorState* running() const { return running_; }
    /// Grows with each action of a processor that is visible to others.
    std::uint64_t progress() const;

  private:
    void place_cores();
    void place_circular_buffers(const tt::tt_metal::CircularBufferImpl& buffer);
    void find_shared_memory(CoreState& core);
    void place_processors();
    void place_arguments(ProcessorState& state);
    void reset_memory();
    CoreState& core_at(CoreCoord logical);
    static void run_kernel(void* state);
    void run_queue();
    void switch_globals(ProcessorState& state);
    void release_globals();
    void receive();
    void report(double seconds);
    void enqueue(ProcessorState& state);
    void finish_kernel(ProcessorState& state);
    bool wake_polled();
    std::string deadlock_report() const;

    EmulatedDevice& device_;
    std::size_t chip_;
    tt::tt_metal::detail::ProgramImpl& program_;
    std::vector<CoreState*> by_worker_;
    std::vector<std::unique_ptr<CoreState>> cores_;
    std::vector<std::unique_ptr<ProcessorState>> processors_;
    std::deque<ProcessorState*> queue_;
    ProcessorState* running_ = nullptr;
    /// The current owner of the variables of each loaded kernel that has any.
    std::map<const LoadedKernel*, ProcessorState*> globals_owner_;
    std::string failure_;
    std::uint64_t unfinished_ = 0;
    std::uint64_t idle_yields_ = 0;
    std::uint64_t resumes_ = 0;
    double seconds_ = 0;
};

/// Returns whether the condition of a processor holds.
bool is_satisfied(const ProcessorState& state);

/// The functions that kernels reach through Processor::functions.
const DeviceFunctions& device_functions();

// The functions of the table, by the file that defines them.
void cb_reserve_back(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
void cb_push_back(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
void cb_wait_front(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
void cb_pop_front(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
const std::byte* front_page(Processor&, std::uint32_t cb, std::uint32_t page, std::uint32_t bytes,
                            Location);
std::byte* back_page(Processor&, std::uint32_t cb, std::uint32_t page, std::uint32_t bytes,
                     Location);
void check_store(Processor&, std::uintptr_t address, std::size_t bytes);
void check_written(Processor&, const void* memory, std::size_t bytes, const char* what, Location);
void begin_zone(Processor&, const char* name, Location);
void end_zone(Processor&);

[[noreturn]] void fail(Processor&, Location, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace ttcodegen::device
