// The function table of the compute kernel API, and the registers' lifetime across kernels.

#include <cstring>

#include "device/compute/engines.hpp"
#include "device/compute/hooks.hpp"

namespace ttcodegen::device {

namespace {

using namespace compute;

FormatSetting& format_setting(Processor& processor, FormatRegister target) {
    return processor.compute_state->formats[static_cast<std::size_t>(target)];
}

/// A full initialisation resets DST: math starts at its first section once the packer is done
/// (`llk_math_pack_sync_init`), the packer immediately (`llk_pack_dest_init`).
void configure(Processor& processor, std::uint32_t source_a, std::uint32_t source_b,
               std::uint32_t output, const char* function, Location here) {
    // With a single section the position is unchanged.
    if (!processor.compute_settings->dst_full_sync_en) {
        processor.compute_state->destination.check_idle(processor, function, here);
    }
    check_mask_gone(processor, function, here);
    // The unpackers' tile descriptors are rewritten (`llk_unpack_hw_configure`).
    processor.compute_state->unpack = {};
    format_setting(processor, FormatRegister::SourceA) = {format_of(processor, source_a), here};
    format_setting(processor, FormatRegister::SourceB) = {format_of(processor, source_b), here};
    format_setting(processor, FormatRegister::Pack) = {format_of(processor, output), here};
    PackSetting& pack = processor.compute_state->pack;
    pack.mask = false;
    pack.untilize = false;
}

/// Variants with an old buffer compare the formats of the two buffers, whatever format the register
/// has.
void reconfigure(Processor& processor, FormatRegister target, std::uint32_t old_cb,
                 std::uint32_t new_cb, Location here) {
    if (old_cb != kNoCircularBuffer &&
        format_of(processor, old_cb) == format_of(processor, new_cb)) {
        return;
    }
    format_setting(processor, target) = {format_of(processor, new_cb), here};
}

void set_reduce_mask(Processor& processor, bool on, Reduction reduction, Location here) {
    PackSetting& pack = processor.compute_state->pack;
    pack.mask = on;
    pack.mask_reduction = reduction;
    pack.mask_is_old = false;
    pack.set_at = here;
}

void set_l1_accumulate(Processor& processor, bool on, Location) {
    processor.compute_state->pack.l1_accumulate = on;
}

void set_relu(Processor& processor, std::uint32_t config, Location) {
    processor.compute_state->pack.relu = config;
}

void set_rows_mode(Processor& processor, bool on, std::uint32_t rows, Location here) {
    PackSetting& pack = processor.compute_state->pack;
    pack.rows = on ? rows : 0;
    pack.set_at = here;
}

void set_untilize_mode(Processor& processor, bool on, Location here) {
    PackSetting& pack = processor.compute_state->pack;
    pack.untilize = on;
    pack.set_at = here;
}

std::uint32_t tile_address(Processor& processor, std::uint32_t cb, std::uint32_t tile,
                           Location here) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    const std::byte* page = processor.functions->front_page(
        processor, cb, tile, static_cast<std::uint32_t>(tile_bytes(format)), here);
    return l1_address(processor, static_cast<std::uint32_t>(page - processor.l1));
}

std::uint32_t tile_word(Processor& processor, std::uint32_t cb, std::uint32_t tile,
                        std::uint32_t word, Location here) {
    const std::uint32_t bytes = (word + 1) * sizeof(std::uint32_t);
    const std::byte* page = processor.functions->front_page(processor, cb, tile, bytes, here);
    std::uint32_t value = 0;
    std::memcpy(&value, page + word * sizeof(std::uint32_t), sizeof value);
    return value;
}

constexpr ComputeFunctions kFunctions{
    .acquire = [](Processor& p, Location l) { p.compute_state->destination.acquire(p, l); },
    .commit = [](Processor& p, Location l) { p.compute_state->destination.commit(p, l); },
    .wait = [](Processor& p, Location l) { p.compute_state->destination.wait(p, l); },
    .release =
        [](Processor& p, Location l) {
            p.compute_state->destination.release(p, l);
            p.compute_state->pack.mask_is_old = true;
        },
    .reserve_back = compute::reserve_back,
    .push_back = compute::push_back,
    .tile_address = tile_address,
    .tile_word = tile_word,
    .configure = configure,
    .reconfigure = reconfigure,
    .prepare = compute::prepare,
    .copy = compute::copy,
    .address = compute::address,
    .transpose_destination = compute::transpose_destination,
    .binary = compute::binary,
    .binary_reuse = compute::binary_reuse,
    .matmul = compute::matmul,
    .reduce = compute::reduce,
    .reduce_block_max_row = compute::reduce_block_max_row,
    .reduce_mask = set_reduce_mask,
    .sfpu_init = compute::sfpu_init,
    .sfpu = compute::sfpu,
    .pack = compute::pack,
    .pack_l1_accumulate = set_l1_accumulate,
    .pack_relu = set_relu,
    .pack_rows_mode = set_rows_mode,
    .pack_rows = compute::pack_rows,
    .pack_untilize_mode = set_untilize_mode,
    .pack_untilize = compute::pack_untilize,
    .tilize = compute::tilize,
    .untilize = compute::untilize,
};

}  // namespace

const ComputeFunctions* compute_functions() { return &kFunctions; }

ComputeState* create_compute_state() { return new ComputeState; }
void destroy_compute_state(ComputeState* state) { delete state; }

void begin_compute_kernel(Processor& processor) {
    ComputeState& state = *processor.compute_state;
    state.destination.begin();
    for (FormatSetting& format : state.formats) {
        format = {};
    }
    state.unpack = {};
    state.math = {};
    state.pack = {};
    state.sfpu = {};
    for (std::uint32_t cb = 0; cb < kMaxCircularBuffers; ++cb) {
        state.reserves[cb] = {};
        state.next_page[cb] = 0;
    }
}

void end_compute_kernel(Processor& processor) {
    processor.compute_state->destination.end(processor);
}

}  // namespace ttcodegen::device
