#pragma once

#include <cstdint>
#ifndef KERNEL_BUILD  // kernels have no exceptions
#include <stdexcept>
#endif

namespace tt {

/// Data formats of the device's circular buffers.
enum class DataFormat : std::uint8_t {
    Float32 = 0,
    Float16 = 1,
    Bfp8 = 2,
    Bfp4 = 3,
    Bfp2 = 11,
    Float16_b = 5,
    Bfp8_b = 6,
    Bfp4_b = 7,
    Bfp2_b = 15,
    Lf8 = 10,
    Fp8_e4m3 = 26,
    MxFp4 = 22,
    Int8 = 14,
    Tf32 = 4,
    UInt8 = 30,
    UInt16 = 9,
    Int16 = 13,
    Int32 = 8,
    UInt32 = 24,
    RawUInt8 = 240,
    RawUInt16 = 241,
    RawUInt32 = 242,
    Invalid = 255
};

#ifndef KERNEL_BUILD
/// The size of an element in bytes.
/// @throws std::invalid_argument if elements have no whole number of bytes.
constexpr static std::uint32_t datum_size(const DataFormat& format) {
    switch (format) {
        case DataFormat::Fp8_e4m3:
        case DataFormat::Int8:
        case DataFormat::Lf8:
        case DataFormat::UInt8:
        case DataFormat::RawUInt8:
            return 1;
        case DataFormat::Float16:
        case DataFormat::Float16_b:
        case DataFormat::UInt16:
        case DataFormat::Int16:
        case DataFormat::RawUInt16:
            return 2;
        case DataFormat::Float32:
        case DataFormat::UInt32:
        case DataFormat::Int32:
        case DataFormat::RawUInt32:
            return 4;
        default:
            throw std::invalid_argument("elements of this format have no size of their own");
    }
}

/// The size in bytes of a 32x32 tile; block floats have an exponent for each 16 elements.
/// @throws std::invalid_argument if the format has no tiles.
constexpr static std::uint32_t tile_size(const DataFormat& format) {
    switch (format) {
        case DataFormat::Bfp2:
        case DataFormat::Bfp2_b:
            return 1024 / 4 + 64;
        case DataFormat::Bfp4:
        case DataFormat::Bfp4_b:
            return 1024 / 2 + 64;
        case DataFormat::Bfp8:
        case DataFormat::Bfp8_b:
            return 1024 + 64;
        case DataFormat::MxFp4:
            return 1024 / 2 + 32;
        default:
            return 1024 * datum_size(format);
    }
}
#endif

}  // namespace tt
