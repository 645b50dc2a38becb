#include "support/array.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>

namespace support {

using tt::tt_metal::DataType;

namespace {

constexpr struct {
    const char* name;
    std::size_t size;
} element_types[] = {
    {"bool", 1},     {"int8", 1},    {"int16", 2},   {"int32", 4},  {"int64", 8},
    {"uint8", 1},    {"uint16", 2},  {"uint32", 4},  {"uint64", 8}, {"float16", 2},
    {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
};

template <typename T>
T read(const void* data, std::uint64_t index) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
void write(std::byte* data, std::uint64_t index, T value) {
    std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

double float_of_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f;
    const int mantissa = bits & 0x3ff;
    double magnitude = 0;
    if (exponent == 0x1f) {
        magnitude = mantissa == 0 ? std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN();
    } else if (exponent == 0) {
        magnitude = std::ldexp(mantissa, -24);
    } else {
        magnitude = std::ldexp(mantissa | 0x400, exponent - 25);
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::uint16_t half_of_double(double value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double magnitude = std::fabs(value);
    if (std::isnan(value)) {
        return sign | 0x7e00;
    }
    // 65520 is halfway between the greatest half and the next power of two.
    if (magnitude >= 65520) {
        return sign | 0x7c00;
    }
    int exponent = 0;
    std::frexp(magnitude, &exponent);
    const int scale = std::max(exponent - 11, -24);
    // nearbyint rounds ties to even; a carry runs into the exponent as it should.
    const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -scale)));
    return sign |
           static_cast<std::uint16_t>(mantissa + (static_cast<std::uint32_t>(scale + 24) << 10));
}

std::uint16_t bfloat16_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) {
        return static_cast<std::uint16_t>(bits >> 16 | 0x40);
    }
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float float_of_bfloat16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// The smallest and the largest value of an integer type, as doubles that are exact up to 32 bits.
struct Limits {
    double least;
    double greatest;
};

template <typename T>
constexpr Limits limits_of() {
    return {static_cast<double>(std::numeric_limits<T>::min()),
            static_cast<double>(std::numeric_limits<T>::max())};
}

Limits integer_limits(ElementType type) {
    switch (type) {
        case ElementType::boolean:
            return {0, 1};
        case ElementType::int8:
            return limits_of<std::int8_t>();
        case ElementType::int16:
            return limits_of<std::int16_t>();
        case ElementType::int32:
            return limits_of<std::int32_t>();
        case ElementType::uint8:
            return limits_of<std::uint8_t>();
        case ElementType::uint16:
            return limits_of<std::uint16_t>();
        case ElementType::uint32:
            return limits_of<std::uint32_t>();
        // Doubles next to the ends of the 64-bit ranges would overflow: stop one step before them.
        case ElementType::int64:
            return {-0x1p63, 0x1p63 - 1024};
        default:
            return {0, 0x1p64 - 2048};
    }
}

void store(ElementType type, std::byte* data, std::uint64_t index, double value) {
    switch (type) {
        case ElementType::boolean:
            return write(data, index, static_cast<std::uint8_t>(value != 0));
        case ElementType::int8:
            return write(data, index, static_cast<std::int8_t>(value));
        case ElementType::int16:
            return write(data, index, static_cast<std::int16_t>(value));
        case ElementType::int32:
            return write(data, index, static_cast<std::int32_t>(value));
        case ElementType::int64:
            return write(data, index, static_cast<std::int64_t>(value));
        case ElementType::uint8:
            return write(data, index, static_cast<std::uint8_t>(value));
        case ElementType::uint16:
            return write(data, index, static_cast<std::uint16_t>(value));
        case ElementType::uint32:
            return write(data, index, static_cast<std::uint32_t>(value));
        case ElementType::uint64:
            return write(data, index, static_cast<std::uint64_t>(value));
        case ElementType::float16:
            return write(data, index, half_of_double(value));
        case ElementType::bfloat16:
            return write(data, index, bfloat16_of_float(static_cast<float>(value)));
        case ElementType::float32:
            return write(data, index, static_cast<float>(value));
        case ElementType::float64:
            return write(data, index, value);
    }
}

[[noreturn]] void refuse_value(const ArrayView& array, std::uint64_t index, ElementType type) {
    const double value = element_at(array.type, array.data, index);
    char text[64];
    std::snprintf(text, sizeof text, "%.17g", value);
    throw std::runtime_error(std::string("the value ") + text + " (element " +
                             std::to_string(index) + ") does not fit " + element_name(type));
}

}  // namespace

std::size_t element_size(ElementType type) {
    return element_types[static_cast<std::int32_t>(type)].size;
}

const char* element_name(ElementType type) {
    return element_types[static_cast<std::int32_t>(type)].name;
}

bool is_element_type(std::int32_t number) {
    return number >= 0 && number < static_cast<std::int32_t>(std::size(element_types));
}

bool is_floating(ElementType type) { return type >= ElementType::float16; }

std::uint64_t element_count(std::span<const std::uint64_t> shape) {
    std::uint64_t count = 1;
    for (const std::uint64_t size : shape) {
        if (__builtin_mul_overflow(count, size, &count)) {
            throw std::runtime_error("the shape " + shape_text(shape) + " is too large");
        }
    }
    return count;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    }
    return text + (shape.size() == 1 ? ",)" : ")");
}

double element_at(ElementType type, const void* data, std::uint64_t index) {
    switch (type) {
        case ElementType::boolean:
            return read<std::uint8_t>(data, index) != 0 ? 1 : 0;
        case ElementType::int8:
            return read<std::int8_t>(data, index);
        case ElementType::int16:
            return read<std::int16_t>(data, index);
        case ElementType::int32:
            return read<std::int32_t>(data, index);
        case ElementType::int64:
            return static_cast<double>(read<std::int64_t>(data, index));
        case ElementType::uint8:
            return read<std::uint8_t>(data, index);
        case ElementType::uint16:
            return read<std::uint16_t>(data, index);
        case ElementType::uint32:
            return read<std::uint32_t>(data, index);
        case ElementType::uint64:
            return static_cast<double>(read<std::uint64_t>(data, index));
        case ElementType::float16:
            return float_of_half(read<std::uint16_t>(data, index));
        case ElementType::bfloat16:
            return float_of_bfloat16(read<std::uint16_t>(data, index));
        case ElementType::float32:
            return read<float>(data, index);
        case ElementType::float64:
            return read<double>(data, index);
    }
    return 0;
}

std::vector<std::byte> converted(const ArrayView& array, ElementType type) {
    const std::uint64_t count = element_count(array.shape);
    const auto* bytes = static_cast<const std::byte*>(array.data);
    if (array.type == type) {
        return {bytes, bytes + count * element_size(type)};
    }
    if (is_floating(array.type) && !is_floating(type)) {
        throw std::runtime_error(std::string("elements of type ") + element_name(array.type) +
                                 " cannot become " + element_name(type));
    }
    std::vector<std::byte> result(count * element_size(type));
    // The files of bfloat16 weights and outputs hold float32: worth loops of their own.
    if (array.type == ElementType::float32 && type == ElementType::bfloat16) {
        for (std::uint64_t i = 0; i < count; ++i) {
            write(result.data(), i, bfloat16_of_float(read<float>(bytes, i)));
        }
        return result;
    }
    if (array.type == ElementType::bfloat16 && type == ElementType::float32) {
        for (std::uint64_t i = 0; i < count; ++i) {
            write(result.data(), i, float_of_bfloat16(read<std::uint16_t>(bytes, i)));
        }
        return result;
    }
    const bool check = !is_floating(type) && type != ElementType::boolean;
    const Limits limits = check ? integer_limits(type) : Limits{};
    for (std::uint64_t i = 0; i < count; ++i) {
        const double value = element_at(array.type, bytes, i);
        if (check && (value < limits.least || value > limits.greatest)) {
            refuse_value(array, i, type);
        }
        store(type, result.data(), i, value);
    }
    return result;
}

std::vector<std::byte> stored(std::span<const double> values, ElementType type) {
    std::vector<std::byte> result(values.size() * element_size(type));
    for (std::uint64_t i = 0; i < values.size(); ++i) {
        store(type, result.data(), i, values[i]);
    }
    return result;
}

ElementType element_type(DataType data_type) {
    switch (data_type) {
        case DataType::BFLOAT16:
            return ElementType::bfloat16;
        case DataType::UINT32:
            return ElementType::uint32;
        case DataType::INT32:
            return ElementType::int32;
        case DataType::UINT16:
            return ElementType::uint16;
        case DataType::UINT8:
            return ElementType::uint8;
        default:
            return ElementType::float32;
    }
}

const char* data_type_name(DataType data_type) {
    switch (data_type) {
        case DataType::BFLOAT8_B:
            return "bfloat8_b";
        case DataType::BFLOAT4_B:
            return "bfloat4_b";
        default:
            return element_name(element_type(data_type));
    }
}

}  // namespace support
