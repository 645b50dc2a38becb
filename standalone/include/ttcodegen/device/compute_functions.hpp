/// The backend functions that api/compute, the compute side of the kernel API, calls.
///
/// The headers of api/compute turn each call of tt-metal's API into one call through this table;
/// tiles, registers and all checks are in its implementation. See processor.hpp for execution.
#pragma once

#include <cstdint>

#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// "No circular buffer", for optional arguments of initialisations.
inline constexpr std::uint32_t kNoCircularBuffer = 0xffffffffU;

/// The operation that the unpackers and the matrix engine are set up for.
enum class FpuOperation : std::uint8_t {
    None,
    Copy,            ///< A tile of a circular buffer into DST.
    UnaryBroadcast,  ///< The same, a row, column or element repeated.
    Transpose,       ///< The same, transposed.
    Add,
    Subtract,
    Multiply,
    Matmul,
    Reduce,
    ReduceBlockMaxRow,
    Tilize,
    Untilize,
    TransposeDestination,  ///< A tile of DST in place.
};

/// Values as ckernel::BroadcastType.
enum class Broadcast : std::uint8_t { None, Column, Row, Scalar };
/// Values as ckernel::EltwiseBinaryReuseDestType.
enum class ReuseDestination : std::uint8_t { None, AsSourceA, AsSourceB };
/// Values as ckernel::PoolType.
enum class Pool : std::uint8_t { Sum, Average, Maximum, Minimum };
/// Values as ckernel::ReduceDim.
enum class Reduction : std::uint8_t { Row, Column, Scalar };

/// The part of an initialisation that the following operation has to match.
struct FpuMode {
    FpuOperation operation = FpuOperation::None;
    Broadcast broadcast = Broadcast::None;
    ReuseDestination reuse = ReuseDestination::None;
    Pool pool = Pool::Sum;
    Reduction reduction = Reduction::Row;

    bool operator==(const FpuMode&) const = default;
};

/// The parameters that the operation takes from its initialisation.
constexpr std::uint32_t kNoOperand = ~0U;

struct FpuParameters {
    bool accumulate = false;  ///< Sums and differences are added to DST.
    bool transpose_faces = false;
    bool transpose_within_faces = false;
    std::uint32_t block_columns = 1;  ///< Tiles; of a matmul_block, a tilize or an untilize.
    std::uint32_t block_rows = 1;
    /// The circular buffer that a copy is set up for: its elements go through a source register, or
    /// to DST directly.
    std::uint32_t operand = kNoOperand;
};

/// The processors that an initialisation is for.
struct FpuParts {
    bool unpack = true;
    bool math = true;
};

/// Registers that are configured with a data format.
enum class FormatRegister : std::uint8_t { SourceA, SourceB, Pack };

enum class SfpuOperation : std::uint16_t {
#define TTCODEGEN_SFPU_OPERATION(name) name,
#include "ttcodegen/device/sfpu_operations.inc"
#undef TTCODEGEN_SFPU_OPERATION
};

/// The DST tiles and parameters of a vector engine operation.
struct SfpuCall {
    std::uint32_t tiles[4] = {};  ///< As the API lists them; the result's is the last.
    std::uint32_t num_tiles = 0;
    std::uint32_t parameters[4] = {};  ///< Bits of floats or integers, as the operation says.
    std::uint32_t num_parameters = 0;
    /// A ckernel::VectorMode: 1 selects the upper faces, 2 the left ones, others all.
    std::uint32_t vector_mode = 4;
    std::uint32_t iterations = 8;  ///< Pairs of rows of each face; 8 is all of a face.
    const void* data = nullptr;    ///< A table that an operation reads, such as reciprocals.
};

/// The layout of packed tiles in the circular buffer where they are not stored tile by tile.
struct PackRows {
    std::uint32_t block_columns = 1;  ///< Tiles of DST next to each other.
    std::uint32_t full_columns = 1;   ///< Tiles in a row of the circular buffer's page.
    std::uint32_t block_rows = 1;
    std::uint32_t block_column = 0;   ///< Which block of `full_columns` this one is.
    std::uint32_t row_elements = 32;  ///< Elements of a row of each tile that are kept.
    std::uint32_t face_height = 16;
    std::uint32_t num_faces = 4;
    std::uint32_t first_tile = 0;  ///< Of DST.
};

/// Each function reports misuse with DeviceFunctions::fail.
struct ComputeFunctions {
    // The destination register.
    void (*acquire)(Processor&, Location);
    void (*commit)(Processor&, Location);
    void (*wait)(Processor&, Location);
    void (*release)(Processor&, Location);

    // Circular buffers. Only packing waits for reserved pages: on the device it runs on its own
    // processor, concurrently with unpacking.
    void (*reserve_back)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
    void (*push_back)(Processor&, std::uint32_t cb, std::uint32_t pages, Location);
    /// The L1 address of a page that was waited for.
    std::uint32_t (*tile_address)(Processor&, std::uint32_t cb, std::uint32_t tile, Location);
    std::uint32_t (*tile_word)(Processor&, std::uint32_t cb, std::uint32_t tile, std::uint32_t word,
                               Location);

    // Data formats.
    /// Full initialisation by `function`: sets the formats of the source registers and of packing,
    /// where given, and resets DST and its semaphores. Refused while DST is in use.
    void (*configure)(Processor&, std::uint32_t source_a, std::uint32_t source_b,
                      std::uint32_t output, const char* function, Location);
    /// Changes one format. If `old_cb` is given, only if the formats of the two buffers differ.
    void (*reconfigure)(Processor&, FormatRegister, std::uint32_t old_cb, std::uint32_t new_cb,
                        Location);

    // The matrix engine.
    void (*prepare)(Processor&, const FpuMode&, const FpuParameters&, FpuParts,
                    const char* function, Location);
    /// copy_tile, unary_bcast, transpose_wh_tile.
    void (*copy)(Processor&, const FpuMode&, std::uint32_t cb, std::uint32_t tile,
                 std::uint32_t destination, Location);
    /// Has math address a tile, in which unary_bcast moves rows and columns of 32 bits.
    void (*address)(Processor&, std::uint32_t destination, Location);
    void (*transpose_destination)(Processor&, std::uint32_t destination, Location);
    /// `row` is the row that is broadcast by row broadcast modes.
    void (*binary)(Processor&, const FpuMode&, std::uint32_t cb_a, std::uint32_t cb_b,
                   std::uint32_t tile_a, std::uint32_t tile_b, std::uint32_t destination,
                   std::uint32_t row, Location);
    void (*binary_reuse)(Processor&, const FpuMode&, std::uint32_t cb, std::uint32_t tile,
                         std::uint32_t destination, Location);
    /// Matmul of a block of `rows` x `columns` tiles; rows of the first operand are `inner` apart.
    void (*matmul)(Processor&, std::uint32_t cb_0, std::uint32_t cb_1, std::uint32_t tile_0,
                   std::uint32_t tile_1, std::uint32_t destination, std::uint32_t columns,
                   std::uint32_t rows, std::uint32_t inner, Location);
    void (*reduce)(Processor&, const FpuMode&, std::uint32_t cb, std::uint32_t cb_scaler,
                   std::uint32_t tile, std::uint32_t tile_scaler, std::uint32_t destination,
                   Location);
    /// Row maxima of consecutive tiles, as many as the initialisation was given.
    void (*reduce_block_max_row)(Processor&, std::uint32_t cb, std::uint32_t cb_scaler,
                                 std::uint32_t tile, std::uint32_t destination, Location);
    /// Masks packing to the result of a reduction, or resets the mask.
    void (*reduce_mask)(Processor&, bool on, Reduction, Location);

    // The vector engine.
    void (*sfpu_init)(Processor&, SfpuOperation, const char* function,
                      const std::uint32_t* parameters, std::uint32_t num_parameters, Location);
    void (*sfpu)(Processor&, SfpuOperation, const SfpuCall&, Location);

    // Packing.
    void (*pack)(Processor&, std::uint32_t destination, std::uint32_t cb, bool out_of_order,
                 std::uint32_t tile, Location);
    void (*pack_l1_accumulate)(Processor&, bool on, Location);
    void (*pack_relu)(Processor&, std::uint32_t config, Location);
    /// Switches packing between `rows` rows and tiles.
    void (*pack_rows_mode)(Processor&, bool on, std::uint32_t rows, Location);
    void (*pack_rows)(Processor&, std::uint32_t destination, std::uint32_t cb, std::uint32_t page,
                      Location);
    void (*pack_untilize_mode)(Processor&, bool on, Location);
    void (*pack_untilize)(Processor&, std::uint32_t cb, const PackRows&, Location);

    // Layout conversions. One call copies a row of tiles from buffer to buffer through DST.
    void (*tilize)(Processor&, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
                   std::uint32_t input_tile, std::uint32_t output_tile, Location);
    void (*untilize)(Processor&, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
                     Location);
};

/// The table of `processor`, which runs the caller.
inline const ComputeFunctions& compute_of(const Processor& processor) {
    return *processor.compute_functions;
}

}  // namespace ttcodegen::device
