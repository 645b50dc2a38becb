// Packing: tiles of DST into pages of circular buffers.

#include <algorithm>

#include "core/numeric.hpp"
#include "device/compute/engines.hpp"

namespace ttcodegen::device::compute {

namespace {

/// Returns whether the mask of a reduction keeps an element.
bool kept_by_mask(Reduction reduction, std::size_t row, std::size_t column) {
    switch (reduction) {
        case Reduction::Row:
            return column == 0;
        case Reduction::Column:
            return row == 0;
        case Reduction::Scalar:
            return row == 0 && column == 0;
    }
    return false;
}

void apply_mask(Reduction reduction, Tile& tile) {
    for (std::size_t row = 0; row < kTileWidth; ++row) {
        for (std::size_t column = 0; column < kTileWidth; ++column) {
            if (!kept_by_mask(reduction, row, column)) {
                tile.words[tile_offset(row, column)] = 0;
            }
        }
    }
}

/// Applies a relu; `config` is the mode and, in the high half, a bfloat16 threshold.
void apply_relu(std::uint32_t config, float* values) {
    constexpr std::uint32_t kMaximum = 3;
    const float threshold = cpu::bf16_value(static_cast<std::uint16_t>(config >> 16));
    const bool bounded = (config & 0xfU) == kMaximum;
    for (std::size_t i = 0; i < kTileElements; ++i) {
        const float value = values[i];
        if (bounded) {
            values[i] = value < 0.0F ? 0.0F : value > threshold ? threshold : value;
        } else {
            values[i] = value <= threshold ? 0.0F : value;
        }
    }
}

bool changes_values(const PackSetting& setting) {
    return setting.mask || setting.l1_accumulate || (setting.relu & 0xfU) != 0;
}

/// The tile to write in place of `tile`: masked, clamped, or accumulated with the page.
void change_values(Processor& processor, const PackSetting& setting, DataFormat format,
                   const std::byte* page, Location here, Tile& tile) {
    if (setting.mask) {
        apply_mask(setting.mask_reduction, tile);
    }
    if ((setting.relu & 0xfU) != 0) {
        apply_relu(setting.relu, tile.floats());
    }
    if (setting.l1_accumulate) {
        processor.functions->check_written(processor, page, tile_bytes(format),
                                           "a page that packing accumulates in", here);
        FloatTile held;
        unpack_floats(page, format, SourcePrecision::Float32, held.data());
        for (std::size_t i = 0; i < kTileElements; ++i) {
            tile.floats()[i] += held.values[i];
        }
    }
}

void check_mask(Processor& processor, const TileNote& note, std::uint32_t index,
                const char* function, Location here) {
    const PackSetting& setting = processor.compute_state->pack;
    if (setting.mask && (!note.reduced || note.reduction != setting.mask_reduction)) {
        refuse(processor, here,
               "%s: tile %u of DST is no result of that reduction, but packing keeps only its "
               "results since reduce_init at line %u; reduce_uninit is missing",
               function, index, static_cast<unsigned>(setting.set_at.line()));
    }
}

void check_tiles_mode(Processor& processor, const char* function, Location here) {
    const PackSetting& setting = processor.compute_state->pack;
    if (setting.untilize) {
        refuse(processor, here,
               "%s: packing is set to untilize since line %u; pack_untilize_uninit is missing",
               function, static_cast<unsigned>(setting.set_at.line()));
    }
    if (setting.rows != 0) {
        refuse(processor, here,
               "%s: packing is set to rows since line %u; pack_rows_uninit is missing", function,
               static_cast<unsigned>(setting.set_at.line()));
    }
}

}  // namespace

void reserve_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    if (cb >= kMaxCircularBuffers) {
        processor.functions->cb_reserve_back(processor, cb, pages, here);
        return;
    }
    PendingReserve& pending = processor.compute_state->reserves[cb];
    pending.pages = std::max(pending.pages, pages);
    pending.here = here;
}

void finish_reserve(Processor& processor, std::uint32_t cb) {
    if (cb >= kMaxCircularBuffers) {
        return;
    }
    PendingReserve& pending = processor.compute_state->reserves[cb];
    if (pending.pages != 0) {
        const PendingReserve asked = pending;
        pending.pages = 0;
        processor.functions->cb_reserve_back(processor, cb, asked.pages, asked.here);
    }
}

void push_back(Processor& processor, std::uint32_t cb, std::uint32_t pages, Location here) {
    finish_reserve(processor, cb);
    processor.functions->cb_push_back(processor, cb, pages, here);
    processor.compute_state->next_page[cb] = 0;
}

void check_domain(Processor& processor, Domain domain, std::uint32_t cb, const char* function,
                  Location here) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    if (is_integer(format) != (domain == Domain::Integer)) {
        refuse(processor, here, "%s: DST holds %s, but %s holds %s; typecast_tile is missing",
               function, domain == Domain::Float ? "floats" : "integers",
               buffer_name(processor, cb).c_str(), format_name(format));
    }
}

void pack_to_page(Processor& processor, const Tile& tile, Domain domain, std::uint32_t cb,
                  std::uint32_t page, const char* function, Location here) {
    ComputeState& state = *processor.compute_state;
    check_format(processor, FormatRegister::Pack, cb, function, here);
    check_domain(processor, domain, cb, function, here);
    finish_reserve(processor, cb);
    const DataFormat format = format_of(processor.circular_buffers[cb]);
    std::byte* memory = processor.functions->back_page(
        processor, cb, page, static_cast<std::uint32_t>(tile_bytes(format)), here);
    const Tile* source = &tile;
    if (changes_values(state.pack) && domain == Domain::Float) {
        state.packed = tile;
        change_values(processor, state.pack, format, memory, here, state.packed);
        source = &state.packed;
    }
    const bool precise = processor.compute_settings->bfp8_pack_precise;
    pack_destination(source->words.data(), format,
                     precise ? PackSource::Precise : PackSource::BlockFloat, memory);
    ++processor.counters.packed_tiles;
}

void pack(Processor& processor, std::uint32_t destination, std::uint32_t cb, bool out_of_order,
          std::uint32_t tile, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "pack_tile";
    const Tile& source = state.destination.packed_tile(processor, destination, function, here);
    const TileNote& note = state.destination.packed_note(destination);
    tile_buffer(processor, cb, here);
    check_tiles_mode(processor, function, here);
    check_mask(processor, note, destination, function, here);
    const std::uint32_t page = out_of_order ? tile : state.next_page[cb]++;
    pack_to_page(processor, source, note.domain, cb, page, function, here);
}

void pack_rows(Processor& processor, std::uint32_t destination, std::uint32_t cb,
               std::uint32_t page, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "pack_rows";
    const Tile& source = state.destination.packed_tile(processor, destination, function, here);
    if (state.pack.rows == 0) {
        refuse(processor, here, "%s without pack_rows_init before it", function);
    }
    check_format(processor, FormatRegister::Pack, cb, function, here);
    check_domain(processor, state.destination.packed_note(destination).domain, cb, function, here);
    const DataFormat format = format_of(processor.circular_buffers[cb]);
    const std::size_t elements = std::min<std::size_t>(state.pack.rows * kFaceWidth, kTileElements);
    finish_reserve(processor, cb);
    std::byte* memory = processor.functions->back_page(
        processor, cb, page, static_cast<std::uint32_t>(elements * element_bytes(format)), here);
    pack_row(source.words.data(), format, elements, memory);
    ++processor.counters.packed_tiles;
}

}  // namespace ttcodegen::device::compute
