#include "support/description.hpp"

#include <tt-metalium/experimental/tensor/tensor_types.hpp>

namespace support {

using tt::tt_metal::DataType;

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
