#pragma once

// Registers and settings of a compute processor. Each part detects its own misuse.

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

#include "device/compute/sfpu_rows.hpp"
#include "device/compute/tile.hpp"
#include "device/compute/tile_format.hpp"
#include "ttcodegen/device/compute_functions.hpp"

namespace ttcodegen::device::compute {

/// The state of a destination register tile besides its words.
struct TileNote {
    bool written = false;  ///< Since the register was acquired.
    Domain domain = Domain::Float;
    bool reduced = false;  ///< Holds the result of a reduction, in `reduction`'s places.
    Reduction reduction = Reduction::Row;
    /// Packed, in the order of the source, before math committed the section. On the device packing
    /// starts only then, so it would see later writes of math to the tile.
    bool packed_early = false;
};

constexpr std::uint32_t kDestinationTiles = 16;

/// The part of DST that math uses between acquire and commit, and packing between wait and release.
struct DestinationSection {
    Tile tiles[kDestinationTiles];
    TileNote notes[kDestinationTiles];
};

/// The destination register: sections that cycle from math to packing.
///
/// Math may be sections ahead of packing: on the device they run on separate processors, and math
/// waits while the register is full. Here it continues, in a larger register.
class Destination {
  public:
    void acquire(Processor& processor, Location here);
    void commit(Processor& processor, Location here);
    void wait(Processor& processor, Location here);
    void release(Processor& processor, Location here);

    /// Refuses a kernel that ends with the register in use; `begin` resets earlier kernels' state.
    void end(Processor& processor);
    void begin();

    bool in_use() const { return acquired_ || waited_ || committed_ != 0; }
    /// Refuses a full initialisation, `function`, while DST is in use.
    void check_idle(Processor& processor, const char* function, Location here) const;

    /// A tile that math writes, for `function` in messages. Refused: a register that is not
    /// acquired, a tile that it does not have, and one that was packed before it is
    /// finished.
    Tile& math_tile(Processor& processor, std::uint32_t index, const char* function, Location here);
    TileNote& math_note(std::uint32_t index) { return sections_[math_].notes[index]; }
    /// A tile that math reads. Also refused: a tile that was never written.
    Tile& written_math_tile(Processor& processor, std::uint32_t index, const char* function,
                            Location here);

    /// A tile that is packed. Refused: packing without waiting for math, a tile that the register
    /// does not have, and one that was never written.
    const Tile& packed_tile(Processor& processor, std::uint32_t index, const char* function,
                            Location here);
    const TileNote& packed_note(std::uint32_t index) const { return sections_[pack_].notes[index]; }

    /// Math addresses a tile: the first at tile_regs_acquire, later that of the last function,
    /// which is none that a kernel can count on.
    void address(std::uint32_t index) { addressed_ = index; }
    bool is_addressed(std::uint32_t index) const { return addressed_ == index; }

    /// Completes a computed tile: rounds floats if the register has 16 bits.
    void finish(Processor& processor, std::uint32_t index, Domain domain);

  private:
    static constexpr std::uint32_t kSections = 4;
    static constexpr std::uint32_t kUnknown = ~0U;

    Tile& acquired_tile(Processor& processor, std::uint32_t index, const char* function,
                        Location here);
    void check_index(Processor& processor, std::uint32_t index, const char* function,
                     Location here) const;

    DestinationSection sections_[kSections];
    std::uint32_t math_ = 0;
    std::uint32_t pack_ = 0;
    std::uint32_t committed_ = 0;  ///< Sections that packing has not released yet.
    std::uint32_t addressed_ = kUnknown;
    bool acquired_ = false;
    bool waited_ = false;
    Location acquired_at_;
    Location waited_at_;
};

/// The last setup of a part of the matrix engine.
struct FpuSetting {
    FpuMode mode;
    FpuParameters parameters;
    const char* function = nullptr;
    Location here;
};

/// The data format of a register, and the location of its setup.
struct FormatSetting {
    std::optional<DataFormat> format;
    Location here;
};

/// Settings of packing besides the format.
struct PackSetting {
    bool mask = false;
    Reduction mask_reduction = Reduction::Row;
    /// DST was released since the reduction: its result is packed, and the mask must be reset.
    bool mask_is_old = false;
    bool l1_accumulate = false;
    std::uint32_t relu = 0;
    bool untilize = false;
    std::uint32_t rows = 0;  ///< 0 unless packing is set to rows.
    Location set_at;
};

/// Pages that packing waits for before it writes to a circular buffer.
struct PendingReserve {
    std::uint32_t pages = 0;
    Location here;
};

constexpr std::size_t kSfpuOperations = 512;

struct SfpuState {
    SfpuMemory memory;
    /// Operations whose initialisation was called since the kernel began.
    std::bitset<kSfpuOperations> initialised;
    /// The last initialisation that loaded constants.
    std::optional<SfpuOperation> constants_of;
    const char* constants_by = nullptr;
    /// The format and the pool that sfpu_reduce_init was called for.
    std::array<std::uint32_t, 2> reduction = {};
    /// A maximum of rows recorded its instructions over those of sfpu_reduce_init.
    bool reduces_rows_only = false;
};

}  // namespace ttcodegen::device::compute

namespace ttcodegen::device {

struct ComputeState {
    compute::Destination destination;
    compute::FormatSetting formats[3];  ///< By FormatRegister.
    compute::FpuSetting unpack;
    compute::FpuSetting math;
    compute::PackSetting pack;
    compute::SfpuState sfpu;
    compute::PendingReserve reserves[kMaxCircularBuffers];
    /// Offset of the next packed tile from the write pointer, in pages.
    std::uint32_t next_page[kMaxCircularBuffers] = {};
    /// Operands in the source registers.
    compute::FloatTile source_a;
    compute::FloatTile source_b;
    compute::FloatTile scratch[2];
    /// Operands of a block of matmuls.
    compute::FloatTile block[compute::kDestinationTiles];
    compute::Tile packed;  ///< What packing makes of a tile before it writes it.
    compute::Tile moved;   ///< A tile that changes its layout or its address.
};

}  // namespace ttcodegen::device
