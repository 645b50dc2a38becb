#include "support/array.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <tt-metalium/experimental/tensor/tensor_types.hpp>
#include <type_traits>

namespace support {

using tt::tt_metal::DataType;

namespace {

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

// Storage types of elements whose C++ type does not determine their encoding.

struct Boolean {
    std::uint8_t bits;
    static Boolean of(double value) { return {value != 0}; }
    explicit operator double() const { return bits != 0; }
};

struct Half {
    std::uint16_t bits;
    static Half of(double value) { return {half_of_double(value)}; }
    explicit operator double() const { return float_of_half(bits); }
};

struct BFloat16 {
    std::uint16_t bits;
    static BFloat16 of(double value) { return {bfloat16_of_float(static_cast<float>(value))}; }
    explicit operator double() const { return float_of_bfloat16(bits); }
};

template <typename T>
double load_element(const void* data, std::uint64_t index) {
    return static_cast<double>(read<T>(data, index));
}

template <typename T>
void store_element(std::byte* data, std::uint64_t index, double value) {
    if constexpr (requires { T::of(value); }) {
        write(data, index, T::of(value));
    } else {
        write(data, index, static_cast<T>(value));
    }
}

struct TypeOfElements {
    const char* name;
    std::size_t size;
    double (*load)(const void* data, std::uint64_t index);
    void (*store)(std::byte* data, std::uint64_t index, double value);
    /// The minimum and maximum of an integer type.
    double smallest = 0;
    double largest = 0;
};

template <typename T>
constexpr TypeOfElements described(const char* name) {
    TypeOfElements type{name, sizeof(T), load_element<T>, store_element<T>};
    if constexpr (std::is_integral_v<T>) {
        using Range = std::numeric_limits<T>;
        // The largest double that does not overflow: integers of 64 bits have more digits.
        constexpr int excess = std::max(0, Range::digits - std::numeric_limits<double>::digits);
        type.smallest = static_cast<double>(Range::min());
        type.largest = static_cast<double>(static_cast<T>(Range::max() >> excess << excess));
    }
    return type;
}

/// Indexed by ElementType.
constexpr TypeOfElements element_types[] = {
    described<Boolean>("bool"),         described<std::int8_t>("int8"),
    described<std::int16_t>("int16"),   described<std::int32_t>("int32"),
    described<std::int64_t>("int64"),   described<std::uint8_t>("uint8"),
    described<std::uint16_t>("uint16"), described<std::uint32_t>("uint32"),
    described<std::uint64_t>("uint64"), described<Half>("float16"),
    described<BFloat16>("bfloat16"),    described<float>("float32"),
    described<double>("float64"),
};

const TypeOfElements& described(ElementType type) {
    return element_types[static_cast<std::int32_t>(type)];
}

[[noreturn]] void refuse_value(const ArrayView& array, std::uint64_t index, ElementType type) {
    const double value = element_at(array.type, array.data, index);
    char text[64];
    std::snprintf(text, sizeof text, "%.17g", value);
    throw std::runtime_error(std::string("the value ") + text + " (element " +
                             std::to_string(index) + ") does not fit " + element_name(type));
}

}  // namespace

std::size_t element_size(ElementType type) { return described(type).size; }

const char* element_name(ElementType type) { return described(type).name; }

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
    return described(type).load(data, index);
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
    // Weights and outputs in bfloat16 have float32 files: worth loops of their own.
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
    const TypeOfElements& target = described(type);
    for (std::uint64_t i = 0; i < count; ++i) {
        const double value = element_at(array.type, bytes, i);
        if (check && (value < target.smallest || value > target.largest)) {
            refuse_value(array, i, type);
        }
        target.store(result.data(), i, value);
    }
    return result;
}

std::vector<std::byte> stored(std::span<const double> values, ElementType type) {
    std::vector<std::byte> result(values.size() * element_size(type));
    for (std::uint64_t i = 0; i < values.size(); ++i) {
        described(type).store(result.data(), i, values[i]);
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
