#pragma once

// Tiles of circular buffers as operands: what unpacking checks and does.

#include <string>

#include "device/compute/compute_state.hpp"

namespace ttcodegen::device::compute {

/// Throws; the arguments are those of printf.
template <typename... Values>
[[noreturn]] void refuse(Processor& processor, Location here, const char* format,
                         Values... values) {
    processor.functions->fail(processor, here, format, values...);
}

/// What messages call a circular buffer, such as "circular buffer 3 (cb_in)".
std::string buffer_name(Processor& processor, std::uint32_t cb);

/// @throws through `refuse` if the core has no such circular buffer, or tiles of another size.
const CircularBuffer& tile_buffer(Processor& processor, std::uint32_t cb, Location here);

inline DataFormat format_of(const CircularBuffer& buffer) {
    return static_cast<DataFormat>(buffer.data_format);
}

/// The buffer's format, or none if the core has no such buffer.
std::optional<DataFormat> format_of(const Processor& processor, std::uint32_t cb);

/// Refuses a circular buffer of another format than the register is set to.
void check_format(Processor& processor, FormatRegister target, std::uint32_t cb,
                  const char* function, Location here);

/// How an operand of the buffer arrives in the source registers.
SourcePrecision source_precision(const Processor& processor);

/// Reads a tile as operand of the matrix engine. Refused besides what front_page refuses: integers,
/// and buffers whose tiles go to the destination register past the source registers.
void read_operand(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, float* values);

/// Reads a tile on its way to the destination register.
Domain read_words(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, std::uint32_t* words);

}  // namespace ttcodegen::device::compute
