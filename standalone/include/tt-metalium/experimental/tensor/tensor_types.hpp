#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <variant>

#include "tt-metalium/bfloat16.hpp"
#include "tt-metalium/buffer.hpp"
#include "tt-metalium/core_coord.hpp"
#include "tt-metalium/shape.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"
#include "tt_stl/span.hpp"

namespace tt::tt_metal {

enum class DataType {
    BFLOAT16 = 0,
    FLOAT32 = 1,
    UINT32 = 2,
    BFLOAT8_B = 3,
    BFLOAT4_B = 4,
    UINT8 = 5,
    UINT16 = 6,
    INT32 = 7,
    INVALID = 8,
};

/// The data type of elements of the C++ type `T`.
template <typename T>
consteval DataType convert_to_data_type() {
    if constexpr (std::same_as<T, std::uint8_t>) {
        return DataType::UINT8;
    } else if constexpr (std::same_as<T, std::uint16_t>) {
        return DataType::UINT16;
    } else if constexpr (std::same_as<T, std::int32_t>) {
        return DataType::INT32;
    } else if constexpr (std::same_as<T, std::uint32_t>) {
        return DataType::UINT32;
    } else if constexpr (std::same_as<T, float>) {
        return DataType::FLOAT32;
    } else {
        static_assert(std::same_as<T, ::bfloat16>, "no tensor has elements of this type");
        return DataType::BFLOAT16;
    }
}

bool is_floating_point(DataType dtype);
bool is_block_float(DataType dtype);
tt::DataFormat datatype_to_dataformat_converter(DataType datatype);

/// Sharding of any number of dimensions.
struct NdShardSpec {
    Shape shard_shape;
    CoreRangeSet grid;
    ShardOrientation orientation = ShardOrientation::ROW_MAJOR;
    ShardDistributionStrategy shard_distribution_strategy =
        ShardDistributionStrategy::ROUND_ROBIN_1D;

    bool operator==(const NdShardSpec& other) const = default;
};

using PadValue = std::variant<std::uint32_t, float>;

}  // namespace tt::tt_metal
