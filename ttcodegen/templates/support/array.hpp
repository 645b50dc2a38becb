#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

// Declared, not included: arrays need only these declarations of the library.
namespace tt::tt_metal {

enum class DataType;

}  // namespace tt::tt_metal

namespace support {

/// Element types of arrays on the host. The numbers are part of the C API.
enum class ElementType : std::int32_t {
    boolean = 0,
    int8 = 1,
    int16 = 2,
    int32 = 3,
    int64 = 4,
    uint8 = 5,
    uint16 = 6,
    uint32 = 7,
    uint64 = 8,
    float16 = 9,
    bfloat16 = 10,
    float32 = 11,
    float64 = 12,
};

/// The size of one element in bytes.
std::size_t element_size(ElementType type);

/// The element type on the host of tensors of that data type.
ElementType element_type(tt::tt_metal::DataType data_type);

/// The name of the type in numpy (with ml_dtypes), "float32" for instance.
const char* element_name(ElementType type);

/// The name of the data type, "bfloat16" or "bfloat8_b" for instance.
const char* data_type_name(tt::tt_metal::DataType data_type);

bool is_element_type(std::int32_t number);
bool is_floating(ElementType type);

/// A view of row-major elements.
struct ArrayView {
    ElementType type;
    std::span<const std::uint64_t> shape;
    const void* data;
};

/// Row-major elements in the byte order of the machine.
struct Array {
    ElementType type = ElementType::float32;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
    /// The elements in a mapped file, which is unmapped with the last array that uses it; null
    /// where `bytes` holds them.
    std::shared_ptr<const std::byte> mapped = nullptr;

    ArrayView view() const {
        return {type, shape, mapped != nullptr ? mapped.get() : bytes.data()};
    }
};

/// The number of elements of a shape.
/// @throws std::runtime_error if it does not fit 64 bits.
std::uint64_t element_count(std::span<const std::uint64_t> shape);

/// The shape as numpy prints it: "(1, 784)".
std::string shape_text(std::span<const std::uint64_t> shape);

/// Converts elements to another type; floats are rounded to nearest even.
///
/// Integers and booleans convert to any type that can hold their values, floats to floats only.
/// @throws std::runtime_error if the types do not allow it or a value is out of range.
std::vector<std::byte> converted(const ArrayView& array, ElementType type);

/// Converts doubles to a type: rounded to nearest even for floats, towards zero for integers.
std::vector<std::byte> stored(std::span<const double> values, ElementType type);

/// The element at `index` of row-major `data`, as a double.
double element_at(ElementType type, const void* data, std::uint64_t index);

}  // namespace support
