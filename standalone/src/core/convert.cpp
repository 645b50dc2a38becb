#include "core/convert.hpp"

#include <algorithm>
#include <cstring>

#include "core/conversion.hpp"
#include "core/parallel.hpp"
#include "core/typecast.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kChunk = 1024;
constexpr std::size_t kConversionGrain = 32 * kChunk;

/// Saturates integers to the range of 16 bits, as the vector engine does (tt-llk,
/// ckernel_sfpu_typecast.h).
void saturate(std::int64_t* values, std::size_t count) {
    std::transform(values, values + count, values,
                   [](std::int64_t value) { return std::clamp<std::int64_t>(value, 0, 0xffff); });
}

template <typename Value>
void convert_range(const std::byte* from, DataType from_dtype, std::byte* to, DataType to_dtype,
                   std::size_t begin, std::size_t end) {
    Value values[kChunk];
    for (; begin < end; begin += kChunk) {
        const std::size_t count = std::min(kChunk, end - begin);
        const std::byte* source = from + begin * stored_size(from_dtype);
        std::byte* target = to + begin * stored_size(to_dtype);
        if constexpr (std::is_same_v<Value, float>) {
            load_floats(source, from_dtype, count, values);
            store_floats(values, count, to_dtype, target);
        } else {
            load_integers(source, from_dtype, count, values);
            if (to_dtype == DataType::UINT16) {
                saturate(values, count);
            }
            store_integers(values, count, to_dtype, target);
        }
    }
}

}  // namespace

void typecast_into(const Tensor& input, const Tensor& output) {
    const DataType from = input.dtype();
    const DataType to = output.dtype();
    const bool between_floats = !is_integer(from) && !is_integer(to);
    if (!on_device(input) || from == to || between_floats) {
        convert_into(input, output);
        return;
    }
    Buffer& target = buffer_of(output);
    target.forget_derived();
    const std::byte* read = buffer_of(input).data();
    with_element(from, [&](auto source) {
        with_element(to, [&](auto element) {
            using Source = decltype(source);
            using Element = decltype(element);
            const auto* given = reinterpret_cast<const typename Source::Stored*>(read);
            auto* made = reinterpret_cast<typename Element::Stored*>(target.data());
            parallel_for(input.logical_volume(), kConversionGrain,
                         [&](std::size_t begin, std::size_t end) {
                             std::transform(given + begin, given + end, made + begin,
                                            typecast_element<Element, Source>);
                         });
        });
    });
    finish_block_float(output);
}

Tensor typecast(const Tensor& input, DataType dtype, Layout layout,
                const MemoryConfig& memory_config, MeshDevice* device) {
    const Tensor output =
        allocate(make_spec(input.logical_shape(), dtype, layout, memory_config), device);
    typecast_into(input, output);
    return output;
}

void convert_into(const Tensor& input, const Tensor& output) {
    const std::size_t count = input.logical_volume();
    TT_FATAL(output.logical_volume() == count,
             "{} elements cannot be stored in a tensor of shape {}", count, output.logical_shape());
    const Buffer& source = buffer_of(input);
    Buffer& target = buffer_of(output);
    target.forget_derived();
    const DataType from = input.dtype();
    const DataType to = output.dtype();
    const bool same_bits = from == to || (is_stored_as_float(from) && to == DataType::FLOAT32);
    parallel_for(count, kConversionGrain, [&](std::size_t begin, std::size_t end) {
        if (same_bits || (is_stored_as_float(from) && is_block(to))) {
            std::memcpy(target.data() + begin * stored_size(to),
                        source.data() + begin * stored_size(from), (end - begin) * stored_size(to));
        } else if (is_integer(from)) {
            convert_range<std::int64_t>(source.data(), from, target.data(), to, begin, end);
        } else {
            convert_range<float>(source.data(), from, target.data(), to, begin, end);
        }
    });
    if (from != to) {
        finish_block_float(output);
    }
}

Tensor convert(const Tensor& input, DataType dtype, Layout layout,
               const MemoryConfig& memory_config, MeshDevice* device) {
    const Tensor output =
        allocate(make_spec(input.logical_shape(), dtype, layout, memory_config), device);
    convert_into(input, output);
    return output;
}

Tensor with_type(const Tensor& input, DataType dtype) {
    return input.dtype() == dtype
               ? input
               : convert(input, dtype, input.layout(), input.memory_config(), device_of(input));
}

}  // namespace ttcodegen::cpu
