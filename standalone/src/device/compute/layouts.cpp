// Layout conversions: tilize and untilize, which copy from buffer to buffer, and packing of DST as
// rows.

#include <algorithm>
#include <vector>

#include "device/compute/engines.hpp"

namespace ttcodegen::device::compute {

namespace {

/// Gathers a tile from rows of 32 elements, `pitch` apart.
void gather_tile(const std::uint32_t* rows, std::size_t pitch, Tile& tile) {
    for (std::size_t row = 0; row < kTileWidth; ++row) {
        for (std::size_t column = 0; column < kTileWidth; ++column) {
            tile.words[tile_offset(row, column)] = rows[row * pitch + column];
        }
    }
}

void scatter_tile(const Tile& tile, std::size_t pitch, std::uint32_t* rows) {
    for (std::size_t row = 0; row < kTileWidth; ++row) {
        for (std::size_t column = 0; column < kTileWidth; ++column) {
            rows[row * pitch + column] = tile.words[tile_offset(row, column)];
        }
    }
}

void check_free(Processor& processor, const char* function, Location here) {
    if (processor.compute_state->destination.in_use()) {
        refuse(processor, here,
               "%s takes DST itself: call it outside of tile_regs_acquire and tile_regs_release",
               function);
    }
}

/// The format of a buffer with row-major elements; refuses formats that have no rows.
DataFormat row_format(Processor& processor, std::uint32_t cb, const char* function, Location here) {
    const DataFormat format = format_of(tile_buffer(processor, cb, here));
    if (element_bytes(format) == 0) {
        refuse(processor, here, "%s: %s of %s shares exponents, so there are no rows of it",
               function, format_name(format), buffer_name(processor, cb).c_str());
    }
    return format;
}

/// Memory at the read pointer, checked for all pages that it spans.
const std::byte* front_bytes(Processor& processor, std::uint32_t cb, std::size_t bytes,
                             const char* function, Location here) {
    const CircularBuffer& buffer = processor.circular_buffers[cb];
    const std::size_t pages = (bytes + buffer.page_size - 1) / buffer.page_size;
    if (pages > processor.views[cb].waited) {
        refuse(processor, here, "%s reads %zu pages of %s, but cb_wait_front has waited for %u",
               function, pages, buffer_name(processor, cb).c_str(), processor.views[cb].waited);
    }
    return processor.functions->front_page(processor, cb, 0, static_cast<std::uint32_t>(bytes),
                                           here);
}

/// Memory at page `page` after the write pointer, checked for all pages that it spans.
std::byte* back_bytes(Processor& processor, std::uint32_t cb, std::uint32_t page, std::size_t bytes,
                      const char* function, Location here) {
    finish_reserve(processor, cb);
    const CircularBuffer& buffer = processor.circular_buffers[cb];
    const std::size_t pages = page + (bytes + buffer.page_size - 1) / buffer.page_size;
    if (pages > processor.views[cb].reserved && !buffer.borrowed) {
        refuse(processor, here, "%s writes %zu pages of %s, but only %u are reserved", function,
               pages, buffer_name(processor, cb).c_str(), processor.views[cb].reserved);
    }
    return processor.functions->back_page(processor, cb, page, static_cast<std::uint32_t>(bytes),
                                          here);
}

void round_like_destination(const Processor& processor, DataFormat format, std::uint32_t* words,
                            std::size_t count) {
    if (!is_integer(format) && !processor.compute_settings->fp32_dest_acc_en) {
        round_to_bfloat16(reinterpret_cast<float*>(words), count);
    }
}

SourcePrecision copy_precision(const Processor& processor, std::uint32_t cb) {
    const ComputeSettings& settings = *processor.compute_settings;
    return settings.fp32_dest_acc_en && settings.unpack_to_dest_fp32[cb]
               ? SourcePrecision::Float32
               : source_precision(processor);
}

}  // namespace

void tilize(Processor& processor, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
            std::uint32_t input_tile, std::uint32_t output_tile, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "tilize_block";
    check_free(processor, function, here);
    check_prepared(processor, {.operation = FpuOperation::Tilize}, function, here);
    if (state.unpack.parameters.block_columns != columns) {
        refuse(processor, here,
               "%s: rows of %u tiles, but the initialisation at line %u is for rows of %u",
               function, columns, static_cast<unsigned>(state.unpack.here.line()),
               state.unpack.parameters.block_columns);
    }
    const DataFormat format = row_format(processor, cb, function, here);
    check_format(processor, FormatRegister::SourceA, cb, function, here);
    const std::size_t pitch = columns * kTileWidth;
    const std::size_t first =
        (input_tile / columns) * kTileWidth * pitch + (input_tile % columns) * kTileWidth;
    const std::size_t elements = first - (input_tile % columns) * kTileWidth + kTileWidth * pitch;
    const std::byte* memory =
        front_bytes(processor, cb, elements * element_bytes(format), function, here);
    std::vector<std::uint32_t> words(elements + pitch);
    unpack_row(memory, format, copy_precision(processor, cb), elements, words.data());
    round_like_destination(processor, format, words.data(), elements);
    const Domain domain = is_integer(format) ? Domain::Integer : Domain::Float;
    Tile& tile = state.moved;
    for (std::uint32_t column = 0; column < columns; ++column) {
        gather_tile(words.data() + first + column * kTileWidth, pitch, tile);
        pack_to_page(processor, tile, domain, output, output_tile + column, function, here);
        ++processor.counters.unpacked_tiles;
        ++processor.counters.fpu_tiles;
    }
}

void untilize(Processor& processor, std::uint32_t cb, std::uint32_t columns, std::uint32_t output,
              Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "untilize_block";
    check_free(processor, function, here);
    check_prepared(processor, {.operation = FpuOperation::Untilize}, function, here);
    check_format(processor, FormatRegister::SourceA, cb, function, here);
    check_format(processor, FormatRegister::Pack, output, function, here);
    const DataFormat format = row_format(processor, output, function, here);
    const std::size_t pitch = columns * kTileWidth;
    std::vector<std::uint32_t> words(pitch * kTileWidth);
    Tile& tile = state.moved;
    for (std::uint32_t column = 0; column < columns; ++column) {
        const Domain domain = read_words(processor, cb, column, function, here, tile.words.data());
        check_domain(processor, domain, output, function, here);
        scatter_tile(tile, pitch, words.data() + column * kTileWidth);
        ++processor.counters.fpu_tiles;
    }
    round_like_destination(processor, format, words.data(), words.size());
    std::byte* memory = back_bytes(processor, output, state.next_page[output],
                                   words.size() * element_bytes(format), function, here);
    pack_row(words.data(), format, words.size(), memory);
    state.next_page[output] += columns;
    processor.counters.packed_tiles += columns;
}

void pack_untilize(Processor& processor, std::uint32_t cb, const PackRows& rows, Location here) {
    ComputeState& state = *processor.compute_state;
    const char* function = "pack_untilize_dest";
    if (!state.pack.untilize) {
        refuse(processor, here, "%s without pack_untilize_dest_init before it", function);
    }
    check_format(processor, FormatRegister::Pack, cb, function, here);
    const DataFormat format = row_format(processor, cb, function, here);
    const std::size_t element = element_bytes(format);
    const std::size_t face_rows = rows.num_faces > 2 ? 2 : 1;
    const std::size_t width = rows.num_faces == 1
                                  ? std::min<std::size_t>(rows.row_elements, kFaceWidth)
                                  : rows.row_elements;
    const std::size_t pitch = rows.full_columns * width;
    const std::size_t height = face_rows * rows.face_height;
    const std::size_t start = rows.block_column * rows.block_columns * width;
    const std::size_t end =
        (rows.block_rows * height - 1) * pitch + start + rows.block_columns * width;
    std::byte* memory = back_bytes(processor, cb, 0, end * element, function, here);
    for (std::uint32_t block = 0; block < rows.block_rows * rows.block_columns; ++block) {
        const std::uint32_t index = rows.first_tile + block;
        const Tile& tile = state.destination.packed_tile(processor, index, function, here);
        check_domain(processor, state.destination.packed_note(index).domain, cb, function, here);
        const std::size_t top = block / rows.block_columns * height;
        const std::size_t left = start + block % rows.block_columns * width;
        for (std::size_t row = 0; row < height; ++row) {
            const std::size_t tile_row =
                row / rows.face_height * kFaceWidth + row % rows.face_height;
            for (std::size_t column = 0; column < width; column += kFaceWidth) {
                pack_row(tile.words.data() + tile_offset(tile_row, column), format,
                         std::min(kFaceWidth, width - column),
                         memory + ((top + row) * pitch + left + column) * element);
            }
        }
        ++processor.counters.packed_tiles;
    }
}

}  // namespace ttcodegen::device::compute
