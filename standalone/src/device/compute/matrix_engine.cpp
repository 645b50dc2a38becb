// The matrix engine on tiles of circular buffers: copies, sums, differences, elementwise products.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "device/compute/engines.hpp"
#include "device/compute/tile_math.hpp"

namespace ttcodegen::device::compute {

namespace {

/// The part of a mode that the unpackers have to be set up for.
FpuMode unpack_part(FpuMode mode) {
    switch (mode.operation) {
        case FpuOperation::Add:
        case FpuOperation::Subtract:
        case FpuOperation::Multiply:
            // Only the number of operands matters, not the operation.
            mode.operation = FpuOperation::Add;
            return mode;
        default:
            return mode;
    }
}

/// The part of a mode that math has to be set up for.
FpuMode math_part(FpuMode mode) {
    switch (mode.operation) {
        case FpuOperation::Transpose:
        case FpuOperation::Tilize:
        case FpuOperation::Untilize:
            // The unpackers do the conversion: math copies.
            return FpuMode{.operation = FpuOperation::Copy};
        default:
            return mode;
    }
}

const char* broadcast_name(Broadcast broadcast) {
    switch (broadcast) {
        case Broadcast::Column:
            return "COL";
        case Broadcast::Row:
            return "ROW";
        case Broadcast::Scalar:
            return "SCALAR";
        case Broadcast::None:
            return "NONE";
    }
    return "";
}

const char* operation_name(FpuOperation operation) {
    switch (operation) {
        case FpuOperation::Add:
            return "ELWADD";
        case FpuOperation::Subtract:
            return "ELWSUB";
        default:
            return "ELWMUL";
    }
}

/// The initialisation that a mode requires, for messages.
std::string initialisation_of(const FpuMode& mode) {
    switch (mode.operation) {
        case FpuOperation::Copy:
            return "copy_tile_init";
        case FpuOperation::UnaryBroadcast:
            return std::string("unary_bcast_init<BroadcastType::") +
                   broadcast_name(mode.broadcast) + ">";
        case FpuOperation::Transpose:
            return "transpose_wh_init_short";
        case FpuOperation::Matmul:
            return "mm_init_short or mm_block_init_short";
        case FpuOperation::Reduce:
            return "reduce_init of the same type and dimension";
        case FpuOperation::ReduceBlockMaxRow:
            return "reduce_block_max_row_init";
        case FpuOperation::Tilize:
            return "tilize_init";
        case FpuOperation::Untilize:
            return "untilize_init";
        case FpuOperation::TransposeDestination:
            return "transpose_wh_dest_init_short";
        default:
            break;
    }
    if (mode.reuse != ReuseDestination::None) {
        return std::string("binary_dest_reuse_tiles_init<EltwiseBinaryType::") +
               operation_name(mode.operation) + "> with the same reuse of DST";
    }
    if (mode.broadcast != Broadcast::None) {
        return std::string("init_bcast<EltwiseBinaryType::") + operation_name(mode.operation) +
               ", BroadcastType::" + broadcast_name(mode.broadcast) + "> or its short form";
    }
    return mode.operation == FpuOperation::Add        ? "add_tiles_init"
           : mode.operation == FpuOperation::Subtract ? "sub_tiles_init"
                                                      : "mul_tiles_init";
}

[[noreturn]] void refuse_setting(Processor& processor, const FpuSetting& setting, const char* part,
                                 const FpuMode& mode, const char* function, Location here) {
    const std::string needed = initialisation_of(mode);
    if (setting.function == nullptr) {
        refuse(processor, here, "%s: %s was never set up; call %s first", function, part,
               needed.c_str());
    }
    refuse(processor, here, "%s: %s is set up by %s at line %u, not for this; call %s first",
           function, part, setting.function, static_cast<unsigned>(setting.here.line()),
           needed.c_str());
}

/// The function that resets the unpackers after an operation that changes their access pattern;
/// null for operations whose initialisations set all that they change.
const char* undoing(FpuOperation operation) {
    switch (operation) {
        case FpuOperation::Tilize:
            return "tilize_uninit";
        case FpuOperation::Untilize:
            return "untilize_uninit";
        case FpuOperation::ReduceBlockMaxRow:
            return "reduce_block_max_row_uninit";
        default:
            return nullptr;
    }
}

/// Refuses the initialisation of another operation while the unpackers need a
/// reset.
void check_undone(Processor& processor, const FpuMode& mode, FpuParts parts, const char* function,
                  Location here) {
    const FpuSetting& unpack = processor.compute_state->unpack;
    const char* needed = undoing(unpack.mode.operation);
    if (needed == nullptr || !parts.unpack || unpack.mode.operation == mode.operation) {
        return;
    }
    if (mode.operation != FpuOperation::None || std::string_view(function) != needed) {
        refuse(
            processor, here,
            "%s: unpacking is set up by %s at line %u, which %s has to undo first; %s is missing",
            function, unpack.function, static_cast<unsigned>(unpack.here.line()), needed, needed);
    }
}

const char* copy_name(const FpuMode& mode) {
    switch (mode.operation) {
        case FpuOperation::UnaryBroadcast:
            return "unary_bcast";
        case FpuOperation::Transpose:
            return "transpose_wh_tile";
        default:
            return "copy_tile";
    }
}

const char* binary_name(const FpuMode& mode) {
    const bool whole = mode.broadcast == Broadcast::None;
    switch (mode.operation) {
        case FpuOperation::Add:
            return whole ? "add_tiles" : "add_tiles_bcast";
        case FpuOperation::Subtract:
            return whole ? "sub_tiles" : "sub_tiles_bcast";
        default:
            return whole ? "mul_tiles" : "mul_tiles_bcast";
    }
}

/// Elementwise product at the fidelity of the kernel. `a` and `b` are in the source registers.
void multiply_elements(std::uint8_t fidelity, FloatTile& a, FloatTile& b) {
    if (fidelity == 3) {
        FloatTile rest_a;
        FloatTile rest_b;
        mantissa_rests(a.data(), kFirstBitsOfA, rest_a.data());
        mantissa_rests(b.data(), kFirstBitsOfB, rest_b.data());
        for (std::size_t i = 0; i < kTileElements; ++i) {
            // The result of IEEE 754 is chosen where an operand is not finite or this product
            // overflows: infinities would be subtracted from each other otherwise.
            const float dropped = rest_a.values[i] * rest_b.values[i];
            a.values[i] = a.values[i] * b.values[i] - (std::isfinite(dropped) ? dropped : 0.0F);
        }
        return;
    }
    if (fidelity < 2) {
        cut_mantissas(a.data(), kFirstBitsOfA, a.data());
    }
    if (fidelity < 3) {
        cut_mantissas(b.data(), kFirstBitsOfB, b.data());
    }
    for (std::size_t i = 0; i < kTileElements; ++i) {
        a.values[i] *= b.values[i];
    }
}

/// Combines the source registers into a tile of DST. Products are accumulated.
void combine(const Processor& processor, FpuOperation operation, bool accumulate, FloatTile& a,
             FloatTile& b, float* output) {
    switch (operation) {
        case FpuOperation::Add:
            for (std::size_t i = 0; i < kTileElements; ++i) {
                a.values[i] += b.values[i];
            }
            break;
        case FpuOperation::Subtract:
            for (std::size_t i = 0; i < kTileElements; ++i) {
                a.values[i] -= b.values[i];
            }
            break;
        default:
            multiply_elements(processor.compute_settings->math_fidelity, a, b);
    }
    for (std::size_t i = 0; i < kTileElements; ++i) {
        output[i] = accumulate ? output[i] + a.values[i] : a.values[i];
    }
}

void copy_words(const FpuMode& mode, const FpuParameters& parameters, const std::uint32_t* words,
                std::uint32_t* output) {
    if (mode.operation == FpuOperation::UnaryBroadcast) {
        broadcast_tile(words, mode.broadcast, 0, output);
        return;
    }
    const bool whole = mode.operation == FpuOperation::Transpose;
    transpose_tile(words, whole || parameters.transpose_faces,
                   whole || parameters.transpose_within_faces, output);
}

}  // namespace

void check_mask_gone(Processor& processor, const char* function, Location here) {
    const PackSetting& pack = processor.compute_state->pack;
    if (pack.mask && pack.mask_is_old) {
        refuse(processor, here,
               "%s: packing keeps only the results of a reduction since line %u, and they are "
               "packed; reduce_uninit is missing",
               function, static_cast<unsigned>(pack.set_at.line()));
    }
}

void prepare(Processor& processor, const FpuMode& mode, const FpuParameters& parameters,
             FpuParts parts, const char* function, Location here) {
    ComputeState& state = *processor.compute_state;
    check_undone(processor, mode, parts, function, here);
    if (parts.math && mode.operation != FpuOperation::Reduce &&
        mode.operation != FpuOperation::ReduceBlockMaxRow && mode.operation != FpuOperation::None) {
        check_mask_gone(processor, function, here);
    }
    const FpuSetting setting{mode, parameters, function, here};
    if (parts.unpack) {
        state.unpack = setting;
    }
    if (parts.math) {
        state.math = setting;
    }
}

void check_prepared(Processor& processor, const FpuMode& mode, const char* function,
                    Location here) {
    const ComputeState& state = *processor.compute_state;
    if (state.math.function == nullptr || math_part(state.math.mode) != math_part(mode)) {
        refuse_setting(processor, state.math, "math", mode, function, here);
    }
    const bool unpacks = mode.operation != FpuOperation::TransposeDestination;
    if (unpacks &&
        (state.unpack.function == nullptr || unpack_part(state.unpack.mode) != unpack_part(mode))) {
        refuse_setting(processor, state.unpack, "unpacking", mode, function, here);
    }
}

/// True if elements of a buffer are unpacked to DST, past the source registers.
bool goes_to_destination(const Processor& processor, std::uint32_t cb) {
    const auto format = static_cast<DataFormat>(processor.circular_buffers[cb].data_format);
    return format == DataFormat::Float32 ? processor.compute_settings->unpack_to_dest_fp32[cb]
                                         : is_integer(format) && is_wide(format);
}

const char* way_name(bool to_destination) {
    return to_destination ? "to DST" : "through a source register";
}

/// Refuses a buffer that takes another way to DST than the one that unpacking is set up for: math
/// waits for a source register, or for DST, that no unpacker fills.
void check_way(Processor& processor, std::uint32_t cb, const char* function, Location here) {
    const FpuSetting& unpack = processor.compute_state->unpack;
    const std::uint32_t other = unpack.parameters.operand;
    if (!format_of(processor, other) || !format_of(processor, cb)) {
        return;
    }
    const bool to_destination = goes_to_destination(processor, cb);
    if (goes_to_destination(processor, other) != to_destination) {
        refuse(processor, here,
               "%s: %s is unpacked %s, but unpacking is set up by %s at line %u for %s, which is "
               "unpacked %s",
               function, buffer_name(processor, cb).c_str(), way_name(to_destination),
               unpack.function, static_cast<unsigned>(unpack.here.line()),
               buffer_name(processor, other).c_str(), way_name(!to_destination));
    }
}

void copy(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
          std::uint32_t destination, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = copy_name(mode);
    const bool addressed = state.destination.is_addressed(destination);
    Tile& output = state.destination.math_tile(processor, destination, function, here);
    check_prepared(processor, mode, function, here);
    // A broadcast row, column or element goes through source B, unless it has 32 bits.
    const bool through_b =
        mode.operation == FpuOperation::UnaryBroadcast && mode.broadcast != Broadcast::None;
    // Those of 32 bits are repeated within DST, in the tile that math addresses.
    const bool within = through_b && goes_to_destination(processor, cb);
    if (within && !addressed) {
        refuse(processor, here,
               "%s: tile %u of DST gets the elements of 32 bits, but their rows or columns are "
               "repeated in the tile that math addressed last; call blocks::address_register first",
               function, destination);
    }
    check_format(processor, through_b ? FormatRegister::SourceB : FormatRegister::SourceA, cb,
                 function, here);
    const FpuParameters& parameters = state.unpack.parameters;
    const bool plain = mode.operation == FpuOperation::Copy && !parameters.transpose_faces &&
                       !parameters.transpose_within_faces;
    std::uint32_t* words = plain ? output.words.data() : state.moved.words.data();
    const Domain domain = read_words(processor, cb, tile, function, here, words);
    check_way(processor, cb, function, here);
    if (!plain) {
        copy_words(mode, parameters, words, output.words.data());
    }
    state.destination.finish(processor, destination, domain);
    state.destination.math_note(destination).reduced = false;
    if (within) {
        state.destination.address(destination);
    }
    ++processor.counters.fpu_tiles;
}

void address(Processor& processor, std::uint32_t destination, Location here) {
    Destination& tiles = processor.compute_state->destination;
    tiles.math_tile(processor, destination, "set_dst_write_addr", here);
    tiles.address(destination);
}

void transpose_destination(Processor& processor, std::uint32_t destination, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "transpose_wh_dest";
    Tile& tile = state.destination.math_tile(processor, destination, function, here);
    state.destination.written_math_tile(processor, destination, function, here);
    check_prepared(processor, {.operation = FpuOperation::TransposeDestination}, function, here);
    state.moved = tile;
    transpose_tile(state.moved.words.data(), true, true, tile.words.data());
    state.destination.math_note(destination).reduced = false;
    ++processor.counters.fpu_tiles;
}

void binary(Processor& processor, const FpuMode& mode, std::uint32_t cb_a, std::uint32_t cb_b,
            std::uint32_t tile_a, std::uint32_t tile_b, std::uint32_t destination,
            std::uint32_t row, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = binary_name(mode);
    Tile& output = state.destination.math_tile(processor, destination, function, here);
    check_prepared(processor, mode, function, here);
    check_format(processor, FormatRegister::SourceA, cb_a, function, here);
    check_format(processor, FormatRegister::SourceB, cb_b, function, here);
    if (row >= kTileWidth) {
        refuse(processor, here, "%s: a tile has no row %u", function, row);
    }
    read_operand(processor, cb_a, tile_a, function, here, state.source_a.data());
    if (mode.broadcast == Broadcast::None) {
        read_operand(processor, cb_b, tile_b, function, here, state.source_b.data());
    } else {
        read_operand(processor, cb_b, tile_b, function, here, state.scratch[0].data());
        broadcast_tile(reinterpret_cast<const std::uint32_t*>(state.scratch[0].data()),
                       mode.broadcast, row,
                       reinterpret_cast<std::uint32_t*>(state.source_b.data()));
    }
    const bool adds_up =
        mode.operation == FpuOperation::Multiply || state.math.parameters.accumulate;
    const bool accumulate = adds_up && state.destination.math_note(destination).written;
    combine(processor, mode.operation, accumulate, state.source_a, state.source_b, output.floats());
    state.destination.finish(processor, destination, Domain::Float);
    state.destination.math_note(destination).reduced = false;
    ++processor.counters.fpu_tiles;
}

void binary_reuse(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
                  std::uint32_t destination, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "binary_dest_reuse_tiles";
    Tile& output = state.destination.math_tile(processor, destination, function, here);
    state.destination.written_math_tile(processor, destination, function, here);
    if (mode.reuse == ReuseDestination::None) {
        refuse(processor, here, "%s: choose DEST_TO_SRCA or DEST_TO_SRCB", function);
    }
    check_prepared(processor, mode, function, here);
    const bool as_a = mode.reuse == ReuseDestination::AsSourceA;
    check_format(processor, as_a ? FormatRegister::SourceB : FormatRegister::SourceA, cb, function,
                 here);
    FloatTile& reused = as_a ? state.source_a : state.source_b;
    FloatTile& read = as_a ? state.source_b : state.source_a;
    // A value that returns to a source register is truncated to the register's precision.
    cut_mantissas(output.floats(), processor.compute_settings->fp32_dest_acc_en ? 10 : 7,
                  reused.data());
    read_operand(processor, cb, tile, function, here, read.data());
    combine(processor, mode.operation, false, state.source_a, state.source_b, output.floats());
    state.destination.finish(processor, destination, Domain::Float);
    state.destination.math_note(destination).reduced = false;
    ++processor.counters.fpu_tiles;
}

}  // namespace ttcodegen::device::compute
