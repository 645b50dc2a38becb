// The matrix engine on tiles of circular buffers: matmuls, and reductions, which it computes as
// matmuls.

#include <algorithm>

#include "device/compute/engines.hpp"
#include "device/compute/tile_math.hpp"

namespace ttcodegen::device::compute {

namespace {

const char* product_name(std::uint32_t columns, std::uint32_t rows) {
    return columns == 1 && rows == 1 ? "matmul_tiles" : "matmul_block";
}

/// Accumulates one tile of a matmul. The first operand is in source B, the second in source A.
void accumulate_product(ComputeState& state, std::uint8_t fidelity, const float* first,
                        const float* second, float* output) {
    multiply_matrices(first, second, output);
    if (fidelity == 3) {
        mantissa_rests(first, kFirstBitsOfB, state.scratch[0].data());
        mantissa_rests(second, kFirstBitsOfA, state.scratch[1].data());
        subtract_dropped_product(state.scratch[0].data(), state.scratch[1].data(), output);
    }
}

void read_first(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                Location here, FloatTile& values) {
    read_operand(processor, cb, tile, function, here, values.data());
    if (processor.compute_settings->math_fidelity < 3) {
        cut_mantissas(values.data(), kFirstBitsOfB, values.data());
    }
}

void read_second(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                 Location here, FloatTile& values) {
    ComputeState& state = *processor.compute_state;
    const FpuParameters& parameters = state.unpack.parameters;
    const bool transposes = parameters.transpose_faces;
    FloatTile& read = transposes ? state.scratch[0] : values;
    read_operand(processor, cb, tile, function, here, read.data());
    if (transposes) {
        transpose_tile(reinterpret_cast<const std::uint32_t*>(read.data()),
                       parameters.transpose_faces, parameters.transpose_within_faces,
                       reinterpret_cast<std::uint32_t*>(values.data()));
    }
    if (processor.compute_settings->math_fidelity < 2) {
        cut_mantissas(values.data(), kFirstBitsOfA, values.data());
    }
}

/// A tile of DST that is accumulated to; it starts from zero.
float* accumulator(Processor& processor, std::uint32_t index, const char* function, Location here) {
    Destination& destination = processor.compute_state->destination;
    Tile& tile = destination.math_tile(processor, index, function, here);
    if (!destination.math_note(index).written) {
        std::fill_n(tile.words.data(), kTileElements, 0U);
    }
    return tile.floats();
}

void check_block(Processor& processor, std::uint32_t columns, std::uint32_t rows,
                 const char* function, Location here) {
    const FpuSetting& math = processor.compute_state->math;
    const FpuParameters& parameters = math.parameters;
    if (columns == 0 || rows == 0 || rows * columns > kDestinationTiles) {
        refuse(processor, here, "%s: a block of %u x %u tiles does not fit DST", function, rows,
               columns);
    }
    if (parameters.block_columns != columns || parameters.block_rows != rows) {
        refuse(processor, here,
               "%s: a block of %u x %u tiles, but the initialisation at line %u is for %u x %u",
               function, rows, columns, static_cast<unsigned>(math.here.line()),
               parameters.block_rows, parameters.block_columns);
    }
}

}  // namespace

void matmul(Processor& processor, std::uint32_t cb_0, std::uint32_t cb_1, std::uint32_t tile_0,
            std::uint32_t tile_1, std::uint32_t destination, std::uint32_t columns,
            std::uint32_t rows, std::uint32_t inner, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = product_name(columns, rows);
    state.destination.math_tile(processor, destination, function, here);
    check_prepared(processor, {.operation = FpuOperation::Matmul}, function, here);
    check_block(processor, columns, rows, function, here);
    check_format(processor, FormatRegister::SourceA, cb_1, function, here);
    check_format(processor, FormatRegister::SourceB, cb_0, function, here);
    for (std::uint32_t column = 0; column < columns; ++column) {
        read_second(processor, cb_1, tile_1 + column, function, here, state.block[column]);
    }
    const std::uint8_t fidelity = processor.compute_settings->math_fidelity;
    for (std::uint32_t row = 0; row < rows; ++row) {
        read_first(processor, cb_0, tile_0 + row * inner, function, here, state.source_b);
        for (std::uint32_t column = 0; column < columns; ++column) {
            const std::uint32_t index = destination + row * columns + column;
            float* output = accumulator(processor, index, function, here);
            accumulate_product(state, fidelity, state.source_b.data(), state.block[column].data(),
                               output);
            state.destination.finish(processor, index, Domain::Float);
            state.destination.math_note(index).reduced = false;
        }
    }
    processor.counters.matmul_tiles += rows * columns;
}

namespace {

void reduce_operand(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
                    std::uint32_t destination, const char* function, Location here) {
    ComputeState& state = *processor.compute_state;
    TileNote& note = state.destination.math_note(destination);
    float* output = accumulator(processor, destination, function, here);
    read_operand(processor, cb, tile, function, here, state.source_a.data());
    const std::uint8_t fidelity = processor.compute_settings->math_fidelity;
    if (mode.pool != Pool::Maximum && fidelity < 2) {
        cut_mantissas(state.source_a.data(), kFirstBitsOfA, state.source_a.data());
    }
    const bool is_wide = processor.compute_settings->fp32_dest_acc_en;
    const auto holds_words = [&](FormatRegister source) {
        return state.formats[static_cast<std::size_t>(source)].format == DataFormat::Float32;
    };
    const bool keeps = is_wide && holds_words(FormatRegister::SourceA);
    const ReductionStart start{
        .continues = note.written,
        .source_bits = keeps ? 10 : 7,
        .row_bits = keeps && holds_words(FormatRegister::SourceB) ? 10 : 7,
    };
    reduce_tile(mode.pool, mode.reduction, state.source_a.data(), state.source_b.data(), start,
                output);
    state.destination.finish(processor, destination, Domain::Float);
    note.reduced = true;
    note.reduction = mode.reduction;
    ++processor.counters.fpu_tiles;
}

void read_scaler(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t tile,
                 const char* function, Location here) {
    ComputeState& state = *processor.compute_state;
    check_format(processor, FormatRegister::SourceB, cb, function, here);
    read_operand(processor, cb, tile, function, here, state.source_b.data());
    if (mode.pool != Pool::Maximum && processor.compute_settings->math_fidelity < 3) {
        cut_mantissas(state.source_b.data(), kFirstBitsOfB, state.source_b.data());
    }
}

}  // namespace

void reduce(Processor& processor, const FpuMode& mode, std::uint32_t cb, std::uint32_t cb_scaler,
            std::uint32_t tile, std::uint32_t tile_scaler, std::uint32_t destination,
            Location here) {
    const char* function = "reduce_tile";
    processor.compute_state->destination.math_tile(processor, destination, function, here);
    if (mode.pool == Pool::Minimum) {
        refuse(processor, here, "%s: the matrix engine finds no minima", function);
    }
    check_prepared(processor, mode, function, here);
    check_format(processor, FormatRegister::SourceA, cb, function, here);
    read_scaler(processor, mode, cb_scaler, tile_scaler, function, here);
    reduce_operand(processor, mode, cb, tile, destination, function, here);
}

void reduce_block_max_row(Processor& processor, std::uint32_t cb, std::uint32_t cb_scaler,
                          std::uint32_t tile, std::uint32_t destination, Location here) {
    const char* function = "reduce_block_max_row";
    const FpuMode mode{
        .operation = FpuOperation::Reduce, .pool = Pool::Maximum, .reduction = Reduction::Row};
    processor.compute_state->destination.math_tile(processor, destination, function, here);
    check_prepared(processor, {.operation = FpuOperation::ReduceBlockMaxRow}, function, here);
    check_format(processor, FormatRegister::SourceA, cb, function, here);
    read_scaler(processor, mode, cb_scaler, 0, function, here);
    const std::uint32_t columns = processor.compute_state->math.parameters.block_columns;
    for (std::uint32_t column = 0; column < columns; ++column) {
        reduce_operand(processor, mode, cb, tile + column, destination, function, here);
    }
}

}  // namespace ttcodegen::device::compute
