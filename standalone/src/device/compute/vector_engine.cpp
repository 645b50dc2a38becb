// The vector engine on tiles of DST.

#include <algorithm>
#include <array>

#include "device/compute/engines.hpp"

namespace ttcodegen::device::compute {

namespace {

static_assert(static_cast<std::size_t>(SfpuOperation::xlogy_binary) < kSfpuOperations);

/// Initialisations that are not named after their operation with the suffix "_init".
struct InitName {
    SfpuOperation operation;
    const char* name;
};
constexpr std::array kInitNames{
    InitName{SfpuOperation::add_unary, "binop_with_scalar_tile_init"},
    InitName{SfpuOperation::ceil, "rounding_op_tile_init"},
    InitName{SfpuOperation::bitwise_and_binary, "binary_bitwise_tile_init"},
    InitName{SfpuOperation::binary_left_shift, "binary_shift_tile_init"},
    InitName{SfpuOperation::sum_int_column, "sfpu_sum_int_init"},
    InitName{SfpuOperation::add_bcast_col, "sfpu_bcast_col_init"},
    InitName{SfpuOperation::add_bcast_row, "sfpu_bcast_row_init"},
    InitName{SfpuOperation::dropout, "dropout_kernel_init"},
    InitName{SfpuOperation::copy_dest_values, "copy_dest_values_init"},
    InitName{SfpuOperation::reduce, "sfpu_reduce_init"},
    InitName{SfpuOperation::welford_update, "welford_init"},
};

std::string init_name(const SfpuRow& row) {
    const auto* found =
        std::find_if(kInitNames.begin(), kInitNames.end(),
                     [&](const InitName& each) { return each.operation == row.init; });
    return found != kInitNames.end() ? found->name : std::string(sfpu_row(row.init).name) + "_init";
}

const char* pool_name(std::uint32_t pool) {
    constexpr std::array kNames{"SUM", "AVG", "MAX", "MIN"};
    return pool < kNames.size() ? kNames[pool] : "?";
}

/// It records instructions where those of the initialisation are.
bool is_row_maximum(const SfpuCall& call) {
    return static_cast<Pool>(call.parameters[1]) == Pool::Maximum &&
           static_cast<Reduction>(call.parameters[2]) == Reduction::Row;
}

void check_initialised(Processor& processor, const SfpuRow& row, const SfpuCall& call,
                       Location here) {
    const SfpuState& state = processor.compute_state->sfpu;
    if (!state.initialised.test(static_cast<std::size_t>(row.init))) {
        refuse(processor, here, "%s without %s before it", row.name, init_name(row).c_str());
    }
    if (sfpu_row(row.init).constants && state.constants_of != row.init) {
        refuse(processor, here, "%s: the constants of %s were overwritten by %s; call it again",
               row.name, init_name(row).c_str(), state.constants_by);
    }
    if (row.operation == SfpuOperation::reduce && state.reduces_rows_only &&
        !is_row_maximum(call)) {
        refuse(
            processor, here,
            "sfpu_reduce: the maximum of rows recorded over the instructions of %s; call it again",
            init_name(row).c_str());
    }
    if (row.operation == SfpuOperation::reduce &&
        !std::equal(call.parameters, call.parameters + 2, state.reduction.begin())) {
        refuse(processor, here,
               "sfpu_reduce<PoolType::%s, DataFormat::%s>, but sfpu_reduce_init was for "
               "PoolType::%s and DataFormat::%s",
               pool_name(call.parameters[1]),
               format_name(static_cast<DataFormat>(call.parameters[0])),
               pool_name(state.reduction[1]),
               format_name(static_cast<DataFormat>(state.reduction[0])));
    }
    if (row.operation == SfpuOperation::typecast &&
        !std::equal(call.parameters, call.parameters + 2, state.memory.init_parameters)) {
        refuse(processor, here,
               "typecast_tile from %s to %s, but typecast_tile_init was for %s to %s",
               format_name(static_cast<DataFormat>(call.parameters[0])),
               format_name(static_cast<DataFormat>(call.parameters[1])),
               format_name(static_cast<DataFormat>(state.memory.init_parameters[0])),
               format_name(static_cast<DataFormat>(state.memory.init_parameters[1])));
    }
}

Domain domain_of(std::uint32_t format) {
    return is_integer(static_cast<DataFormat>(format)) ? Domain::Integer : Domain::Float;
}

std::optional<Domain> read_domain(SfpuDomain domain, const SfpuCall& call) {
    switch (domain) {
        case SfpuDomain::Float:
            return Domain::Float;
        case SfpuDomain::Integer:
            return Domain::Integer;
        case SfpuDomain::Format0:
            return domain_of(call.parameters[0]);
        default:
            return std::nullopt;
    }
}

Domain written_domain(Processor& processor, const SfpuRow& row, const SfpuCall& call) {
    Destination& destination = processor.compute_state->destination;
    switch (row.writes) {
        case SfpuDomain::Integer:
            return Domain::Integer;
        case SfpuDomain::Format0:
            return domain_of(call.parameters[0]);
        case SfpuDomain::Format1:
            return domain_of(call.parameters[1]);
        case SfpuDomain::Any:
            return destination.math_note(call.tiles[0]).domain;
        case SfpuDomain::Second:
            return destination.math_note(call.tiles[1]).domain;
        default:
            return Domain::Float;
    }
}

void check_read_domain(Processor& processor, const SfpuRow& row, const SfpuCall& call,
                       std::uint32_t tile, Location here) {
    const std::optional<Domain> wanted = read_domain(row.reads, call);
    const TileNote& note = processor.compute_state->destination.math_note(tile);
    if (wanted && note.domain != *wanted) {
        refuse(processor, here,
               "%s reads tile %u of DST as %s, but it holds %s; typecast_tile is missing", row.name,
               tile, *wanted == Domain::Float ? "floats" : "integers",
               note.domain == Domain::Float ? "floats" : "integers");
    }
}

/// Operations that take DST in the format of their first parameter: the bits of a float in the
/// other width are elsewhere in DST.
constexpr std::array kInFormat{SfpuOperation::where, SfpuOperation::copy_dest_values,
                               SfpuOperation::reduce};

void check_width(Processor& processor, const SfpuRow& row, const SfpuCall& call, Location here) {
    const bool in_format = std::ranges::find(kInFormat, row.operation) != kInFormat.end();
    if (!in_format || call.num_parameters == 0) {
        return;
    }
    const auto format = static_cast<DataFormat>(call.parameters[0]);
    const bool wide = processor.compute_settings->fp32_dest_acc_en;
    if (format == DataFormat::Float16_b ? wide : format == DataFormat::Float32 && !wide) {
        refuse(processor, here, "%s takes tiles of DST as %s, but DST has %d bits", row.name,
               format_name(format), wide ? 32 : 16);
    }
}

/// The mask follows the data, at the position that the device expects.
void check_mask(Processor& processor, const SfpuRow& row, const SfpuCall& call, Location here) {
    if (row.init == SfpuOperation::mask && call.tiles[1] != call.tiles[0] + 1) {
        refuse(processor, here, "%s: the mask of tile %u has to be in tile %u, not %u", row.name,
               call.tiles[0], call.tiles[0] + 1, call.tiles[1]);
    }
}

}  // namespace

void sfpu_init(Processor& processor, SfpuOperation operation, const char* function,
               const std::uint32_t* parameters, std::uint32_t num_parameters, Location) {
    SfpuState& state = processor.compute_state->sfpu;
    const SfpuOperation init = sfpu_row(operation).init;
    state.initialised.set(static_cast<std::size_t>(init));
    if (init == SfpuOperation::reduce) {
        state.reduces_rows_only = false;
        std::copy_n(parameters, std::min<std::uint32_t>(num_parameters, 2),
                    state.reduction.begin());
    }
    if (init == SfpuOperation::welford_update) {
        std::fill_n(state.memory.means, kTileWidth, 0.0F);
        std::fill_n(state.memory.squares, kTileWidth, 0.0F);
    }
    if (init == SfpuOperation::rand || init == SfpuOperation::dropout) {
        state.memory.random = num_parameters > 0 ? parameters[0] : 0;
        return;
    }
    if (sfpu_row(init).constants) {
        state.constants_of = init;
        state.constants_by = function;
        std::copy_n(parameters, std::min<std::uint32_t>(num_parameters, 4),
                    state.memory.init_parameters);
    }
}

void sfpu(Processor& processor, SfpuOperation operation, const SfpuCall& call, Location here) {
    ComputeState& state = *processor.compute_state;
    Destination& destination = state.destination;
    const SfpuRow& row = sfpu_row(operation);
    const std::uint32_t result = call.tiles[call.num_tiles - 1];
    Tile& output = destination.math_tile(processor, result, row.name, here);
    check_initialised(processor, row, call, here);
    check_mask(processor, row, call, here);
    check_width(processor, row, call, here);
    SfpuOperands operands;
    operands.output = &output;
    operands.inputs[0] = &output;
    const std::uint32_t inputs = std::max<std::uint32_t>(call.num_tiles - 1, 1);
    if (row.reads != SfpuDomain::None) {
        for (std::uint32_t i = 0; i < inputs; ++i) {
            operands.inputs[i] =
                &destination.written_math_tile(processor, call.tiles[i], row.name, here);
            check_read_domain(processor, row, call, call.tiles[i], here);
        }
    }
    const bool programmed = row.constants && call.num_parameters == 0;
    std::copy_n(programmed ? state.sfpu.memory.init_parameters : call.parameters, 4,
                operands.parameters);
    operands.memory = &state.sfpu.memory;
    operands.vector_mode = call.vector_mode;
    operands.iterations = call.iterations;
    operands.data = call.data;
    TileNote& note = destination.math_note(result);
    if (!note.written) {
        output.words.fill(0);
    }
    const Domain domain = written_domain(processor, row, call);
    // A result in a separate tile is marked as reduced if the first operand is.
    note.reduced = destination.math_note(call.tiles[0]).reduced;
    note.reduction = destination.math_note(call.tiles[0]).reduction;
    row.run(operands);
    if (operation == SfpuOperation::reduce && is_row_maximum(call)) {
        state.sfpu.reduces_rows_only = true;
    }
    destination.finish(processor, result, domain);
    ++processor.counters.sfpu_tiles;
}

}  // namespace ttcodegen::device::compute
