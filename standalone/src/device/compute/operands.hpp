#pragma once

// Tiles of circular buffers as operands: checks and conversions of unpacking.

#include <string>

#include "device/compute/compute_state.hpp"

namespace ttcodegen::device::compute {

/// Throws; the arguments are as in printf.
template <typename... Values>
[[noreturn]] void refuse(Processor& processor, Location here, const char* format,
                         Values... values) {
    processor.functions->fail(processor, here, format, values...);
}

/// The name of a circular buffer in messages, such as "circular buffer 3 (cb_in)".
std::string buffer_name(Processor& processor, std::uint32_t cb);

/// @throws through `refuse` if the core has no such circular buffer, or tiles of another size.
const CircularBuffer& tile_buffer(Processor& processor, std::uint32_t cb, Location here);

inline DataFormat format_of(const CircularBuffer& buffer) {
    return static_cast<DataFormat>(buffer.data_format);
}

/// The buffer's format, or none if the core has no such buffer.
std::optional<DataFormat> format_of(const Processor& processor, std::uint32_t cb);

/// Refuses a circular buffer whose format differs from the register's.
void check_format(Processor& processor, FormatRegister target, std::uint32_t cb,
                  const char* function, Location here);

/// The precision of operands in the source registers.
SourcePrecision source_precision(const Processor& processor);

/// Reads a tile as operand of the matrix engine. Refused in addition to front_page: integers, and
/// buffers whose tiles are unpacked to the destination register directly.
void read_operand(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, float* values);

/// Reads a tile that is unpacked to the destination register.
Domain read_words(Processor& processor, std::uint32_t cb, std::uint32_t tile, const char* function,
                  Location here, std::uint32_t* words);

}  // namespace ttcodegen::device::compute
