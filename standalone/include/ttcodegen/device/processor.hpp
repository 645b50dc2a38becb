/// The interface between natively compiled device kernels and the device of the CPU backend.
///
/// A kernel runs as a fiber on its own stack, one fiber for each core and kind of processor.
/// Headers of the kernel API (api/dataflow/..., api/compute/...) are thin: they obtain their
/// processor with `current()` and call the precompiled backend through its function tables. A
/// kernel's shared object therefore has no undefined symbol of the backend, so it can be loaded
/// into an executable, a shared object or an interpreter alike.
///
/// Each function of the kernel API ends in a parameter `Location here = Location::current()`, the
/// source of the kernel lines in diagnostics. A failure is `fail(...)`: it throws, and the
/// exception passes through the kernel, so nothing of the kernel API may be noexcept.
///
/// A kernel is compiled as one unit: `#define`s of the program (KernelConfig::defines, the macros
/// of compile-time arguments), kernel_prologue.hpp, the kernel's source, and an entry point that
/// calls `kernel_main()`. Data movement kernels see COMPILE_FOR_BRISC or COMPILE_FOR_NCRISC;
/// compute kernels see COMPILE_FOR_TRISC with TRISC_UNPACK, TRISC_MATH and TRISC_PACK all defined,
/// since one fiber runs the three processors: unpacking, math and packing happen in the order of
/// the source.
///
/// Addresses: the L1 of all cores is below 2 GiB in this process, in one arena. L1 addresses that
/// the kernel API returns (get_write_ptr, get_semaphore, ...) are addresses in this process, as 32
/// bits, so that kernels may dereference them. Addresses that kernels pass may be these, or plain
/// offsets in L1 as known to the host (Buffer::address()): `l1_pointer` accepts both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace ttcodegen::device {

using Location = std::source_location;

/// The maximum number of circular buffers of a core; Wormhole has 32.
inline constexpr std::uint32_t kMaxCircularBuffers = 64;

/// Stacks of fibers are aligned to their size; `current()` depends on it.
inline constexpr std::size_t kStackBytes = std::size_t{1} << 18;

/// The alignment of each core's part of the arena.
inline constexpr std::uint32_t kL1Window = std::uint32_t{1} << 21;

/// Marks eight bytes that were not written since the program started (circular buffers) or since
/// the allocation (buffers). NoC copies and consumers of tiles reject it.
inline constexpr std::uint64_t kNeverWritten = 0x7fa1'7fa3'7fa5'7fa7;
/// Marks eight bytes that an asynchronous read will fill at the next barrier.
inline constexpr std::uint64_t kInFlight = 0x7fb1'7fb3'7fb5'7fb7;

/// The transaction id of transfers without one.
inline constexpr std::uint32_t kNoTransaction = 0xffffffff;

enum class ProcessorKind : std::uint8_t { DataMovement0, DataMovement1, Compute };

/// A circular buffer of a core, shared by its processors.
struct CircularBuffer {
    std::byte* pages = nullptr;  ///< The first page; null if the program has no such buffer.
    std::uint32_t size = 0;      ///< Bytes; `num_pages` times `page_size`.
    std::uint32_t page_size = 0;
    std::uint32_t num_pages = 0;
    std::uint32_t tile_size = 0;   ///< Bytes of one tile in `data_format`, exponents included.
    std::uint8_t data_format = 0;  ///< A tt::DataFormat; the kernel side calls it ::DataFormat.
    std::uint8_t tile_height = 32;
    std::uint8_t tile_width = 32;
    std::uint8_t face_height = 16;
    std::uint8_t num_faces = 4;
    bool borrowed = false;   ///< Its memory is an L1 buffer (set_globally_allocated_address).
    bool exclusive = false;  ///< No other circular buffer and no buffer shares its memory.
    /// Pages pushed and popped since the program started, like the counters of the device.
    std::uint32_t pages_received = 0;
    std::uint32_t pages_acked = 0;
};

/// One processor's state of a circular buffer. The pointers are local, as on the device: the read
/// pointer moves only where pages are popped, the write pointer only where they are pushed.
struct CircularBufferView {
    std::uint32_t read_offset = 0;   ///< Bytes from `CircularBuffer::pages`.
    std::uint32_t write_offset = 0;  ///< Bytes from `CircularBuffer::pages`.
    std::uint32_t waited = 0;        ///< Pages from the read pointer on that may be read.
    std::uint32_t reserved = 0;      ///< Pages from the write pointer on that may be written.
};

/// The settings of a compute kernel (tt::tt_metal::ComputeConfig).
struct ComputeSettings {
    std::uint8_t math_fidelity = 4;  ///< A tt::tt_metal::MathFidelity: 0, 2, 3 or 4.
    bool fp32_dest_acc_en = false;
    bool dst_full_sync_en = false;
    bool bfp8_pack_precise = false;
    bool math_approx_mode = false;
    /// Flags by circular buffer: f32 tiles go to DST unrounded (UnpackToDestFp32).
    bool unpack_to_dest_fp32[kMaxCircularBuffers] = {};
};

/// Activity of a processor; summed over all processors for the report of a program.
struct Counters {
    std::uint64_t noc_read_bytes = 0;     ///< By asynchronous reads, from L1 and DRAM.
    std::uint64_t noc_written_bytes = 0;  ///< By asynchronous writes; once for each receiver.
    std::uint64_t own_l1_bytes = 0;       ///< Of both, from the core's own L1 to itself.
    std::uint64_t dram_read_bytes = 0;
    std::uint64_t dram_written_bytes = 0;
    std::uint64_t unpacked_tiles = 0;
    std::uint64_t packed_tiles = 0;
    std::uint64_t matmul_tiles = 0;  ///< Products of two tiles.
    std::uint64_t fpu_tiles = 0;  ///< Other results of the matrix engine: sums, copies, reductions.
    std::uint64_t sfpu_tiles = 0;  ///< Results of the vector engine.
};

/// Bounds of the L1 that a kernel's pointers may refer to; see kernel_stores.hpp.
struct StoreBounds {
    std::uintptr_t arena = 0;  ///< The L1 of all cores.
    std::size_t arena_bytes = 0;
    std::uintptr_t last = 0;  ///< Memory of the core's own that was stored to last.
    std::size_t last_bytes = 0;
};

struct Processor;
struct DeviceFunctions;
/// The compute side's function table and state (DST, unpack and pack settings); defined in
/// ttcodegen/device/compute_functions.hpp and src/device/compute.
struct ComputeFunctions;
struct ComputeState;

/// A processor of a core while it runs a kernel.
struct Processor {
    const DeviceFunctions* functions = nullptr;
    const ComputeFunctions* compute_functions = nullptr;
    ComputeState* compute_state = nullptr;  ///< Null on data movement processors.
    const ComputeSettings* compute_settings = nullptr;

    ProcessorKind kind = ProcessorKind::DataMovement0;
    std::uint8_t noc = 0;  ///< The NoC that the kernel's transfers take unless they say otherwise.
    std::uint8_t logical_x = 0;
    std::uint8_t logical_y = 0;
    std::uint8_t relative_x = 0;
    std::uint8_t relative_y = 0;
    std::uint8_t noc_x = 0;  ///< Virtual coordinates: the same on both NoCs.
    std::uint8_t noc_y = 0;

    std::byte* l1 = nullptr;  ///< Offset 0 of the core's L1; its address fits 31 bits.
    std::uint32_t l1_size = 0;
    std::uint32_t semaphores = 0;      ///< Offset in L1 of semaphore 0.
    std::uint32_t num_semaphores = 0;  ///< Semaphores of the program on this core.

    const std::uint32_t* arguments = nullptr;  ///< Run-time arguments of this core.
    std::uint32_t num_arguments = 0;
    const std::uint32_t* common_arguments = nullptr;
    std::uint32_t num_common_arguments = 0;

    std::uint32_t num_circular_buffers = 32;     ///< Of the architecture.
    CircularBuffer* circular_buffers = nullptr;  ///< Of the core, by index.
    CircularBufferView views[kMaxCircularBuffers];

    /// State that functions ending in _set_state and _set_trid set for the following calls.
    struct NocState {
        std::uint64_t read_address = 0;
        std::uint32_t read_bytes = 0;
        std::uint32_t read_transaction = kNoTransaction;
        std::uint64_t write_address = 0;
        std::uint32_t write_bytes = 0;
        std::uint32_t write_transaction = kNoTransaction;
        std::uint64_t word_address = 0;
        std::uint32_t word_value = 0;
    };
    NocState noc_state[2];

    StoreBounds store_bounds;
    Counters counters;
    void* run = nullptr;  ///< Of the backend only.
};

/// A packet for another device, with the fields of its header.
struct FabricPacket {
    std::uint32_t next;  ///< The neighbour that it is sent to first.
    std::uint32_t hops;  ///< Links that it goes over.
    std::uint64_t address;
    std::uint32_t header;
    std::uint32_t header_bytes;
    std::uint32_t source;     ///< Of the payload, in L1.
    std::uint32_t bytes;      ///< Of the payload; 0 if it increments a word.
    std::uint32_t increment;  ///< By how much the word at the address grows.
};

/// Backend functions that are common to data movement and compute kernels.
///
/// Each function reports misuse with `fail`. Waiting functions suspend the fiber.
struct DeviceFunctions {
    /// Throws; `format` is as in printf. The message is completed with core, kernel and line.
    __attribute__((noreturn)) void (*fail)(Processor&, Location, const char* format, ...);

    void (*cb_reserve_back)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
    void (*cb_push_back)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
    void (*cb_wait_front)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
    void (*cb_pop_front)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);

    /// The page `page` pages after the read pointer, for reading `bytes` from it. Refused: pages
    /// not waited for, memory beyond the buffer's end, no such buffer, and bytes that were not
    /// written or that a read has not completed yet.
    const std::byte* (*front_page)(Processor&, std::uint32_t cb, std::uint32_t page,
                                   std::uint32_t bytes, Location);
    /// The page `page` pages after the write pointer, for writing `bytes` to it.
    /// Refused: pages not reserved, memory beyond the buffer's end, no such buffer.
    std::byte* (*back_page)(Processor&, std::uint32_t cb, std::uint32_t page, std::uint32_t bytes,
                            Location);
    /// Refuses memory that contains kNeverWritten or kInFlight; `what` names it in the message.
    void (*check_written)(Processor&, const void* memory, std::size_t bytes, const char* what,
                          Location);

    /// Yields to the other processors; for loops that poll memory.
    void (*yield)(Processor&, Location);
    /// Waits until the 32-bit word at an L1 address is `value`, or at least `value`.
    void (*wait_word)(Processor&, std::uint32_t address, std::uint32_t value, bool at_least,
                      Location);
    /// Stores a word in the core's own L1, visible to all of its processors.
    void (*store_word)(Processor&, std::uint32_t address, std::uint32_t value, Location);

    void (*noc_read)(Processor&, std::uint64_t source, std::uint32_t destination,
                     std::uint32_t bytes, std::uint8_t noc, std::uint32_t transaction, Location);
    void (*noc_write)(Processor&, std::uint32_t source, std::uint64_t destination,
                      std::uint32_t bytes, std::uint8_t noc, std::uint32_t transaction, bool posted,
                      Location);
    void (*noc_multicast)(Processor&, std::uint32_t source, std::uint64_t destination,
                          std::uint32_t bytes, std::uint32_t receivers, bool with_source,
                          std::uint8_t noc, Location);
    void (*noc_write_word)(Processor&, std::uint64_t destination, std::uint32_t value,
                           std::uint8_t byte_enable, std::uint8_t noc, Location);
    void (*noc_increment)(Processor&, std::uint64_t destination, std::uint32_t increment,
                          std::uint8_t noc, bool posted, Location);
    void (*noc_increment_multicast)(Processor&, std::uint64_t destination, std::uint32_t increment,
                                    std::uint32_t receivers, std::uint8_t noc, bool posted,
                                    Location);
    void (*noc_read_barrier)(Processor&, std::uint8_t noc, Location);
    /// Waits for acknowledged writes, or for posted ones.
    void (*noc_write_barrier)(Processor&, std::uint8_t noc, bool posted, Location);
    void (*noc_atomic_barrier)(Processor&, std::uint8_t noc, Location);
    void (*noc_read_barrier_transaction)(Processor&, std::uint8_t noc, std::uint32_t transaction,
                                         Location);
    void (*noc_write_barrier_transaction)(Processor&, std::uint8_t noc, std::uint32_t transaction,
                                          Location);
    /// The NoC address of an offset in a bank of DRAM, or of L1 (one bank per worker core, in
    /// row-major order).
    std::uint64_t (*bank_address)(Processor&, bool dram, std::uint32_t bank, std::uint32_t offset,
                                  std::uint8_t noc, Location);

    /// Sends a packet over ethernet links.
    /// Refused: a missing link or the end of the line on the route, and the errors of noc_write.
    void (*fabric_send)(Processor&, const FabricPacket&, Location);

    /// Refuses a store through a pointer to L1 outside of the program's memory on this core.
    void (*check_store)(Processor&, std::uintptr_t address, std::size_t bytes);
    /// The memmove and memset of the C library: a kernel's own calls are checked first.
    void* (*move_memory)(void* to, const void* from, std::size_t bytes);
    void* (*fill_memory)(void* to, int value, std::size_t bytes);

    /// Prints for DPRINT; lines are prefixed with the core and the processor.
    void (*print)(Processor&, const char* text, std::size_t length);

    /// Begins a zone of the profiler; `end_zone` ends the one that began last.
    void (*begin_zone)(Processor&, const char* name, Location);
    void (*end_zone)(Processor&);
};

/// The processor that runs the caller. Stored at the top of the fiber's stack, so the lookup costs
/// one load and is valid on any thread.
inline Processor& current() {
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return **reinterpret_cast<Processor**>((frame | (kStackBytes - 1)) - (sizeof(Processor*) - 1));
}

/// The address of an offset in the core's L1, as kernels hold it.
inline std::uint32_t l1_address(const Processor& processor, std::uint32_t offset) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(processor.l1)) + offset;
}

/// The memory at an L1 address of the core itself, given as address or as offset.
/// @throws the error of `fail`, if the `bytes` from there are not all in the core's L1.
inline std::byte* l1_pointer(Processor& processor, std::uint32_t address, std::size_t bytes,
                             Location here) {
    const auto base = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(processor.l1));
    const std::uint32_t offset = address >= base ? address - base : address;
    if (offset > processor.l1_size || bytes > processor.l1_size - offset) {
        processor.functions->fail(
            processor, here, "address 0x%x and the %zu bytes after it are not in the core's L1",
            offset, bytes);
    }
    return processor.l1 + offset;
}

}  // namespace ttcodegen::device
