#include "core/tensor_data.hpp"

#include <algorithm>
#include <cstring>

#include "core/chips.hpp"
#include "core/conversion.hpp"
#include "core/device.hpp"
#include "core/l1.hpp"
#include "core/memory_use.hpp"
#include "core/parallel.hpp"
#include "core/shard_rules.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::TensorAttributes;

namespace {

// Minimum elements per thread of a conversion; below that, waking threads costs more.
constexpr std::size_t kGrain = std::size_t{1} << 15;

std::int64_t truncate_to_int64(float value) {
    constexpr float kLimit = 9.0e18F;
    return value == value ? static_cast<std::int64_t>(std::clamp(value, -kLimit, kLimit)) : 0;
}

/// The number of shards of a height-sharded tensor; 0 for others.
std::size_t shards_along_height(const TensorSpec& spec) {
    const MemoryConfig& memory_config = spec.memory_config();
    if (memory_config.memory_layout() != TensorMemoryLayout::HEIGHT_SHARDED ||
        !memory_config.shard_spec()) {
        return 0;
    }
    const std::size_t shard_height = memory_config.shard_spec()->shape[0];
    return (spec.physical_shape().height() + shard_height - 1) / shard_height;
}

Tensor wrap(TensorAttributes attributes) {
    Tensor tensor;
    tensor.tensor_attributes = std::make_shared<TensorAttributes>(std::move(attributes));
    return tensor;
}

}  // namespace

TensorSpec make_spec(const Shape& shape, DataType dtype, Layout layout,
                     const MemoryConfig& memory_config) {
    return TensorSpec(shape, TensorLayout(dtype, PageConfig(layout), memory_config));
}

MemoryConfig with_fitting_shards(const MemoryConfig& memory_config, const Shape& shape,
                                 Layout layout) {
    const TensorSpec spec = make_spec(shape, DataType::BFLOAT16, layout, memory_config);
    const std::size_t shards = shards_along_height(spec);
    if (shards == 0 || shards <= memory_config.shard_spec()->num_cores()) {
        return memory_config;
    }
    auto shard_spec = *memory_config.shard_spec();
    const std::size_t unit = layout == Layout::TILE ? 32 : 1;
    const std::size_t units = (spec.physical_shape().height() + unit - 1) / unit;
    const std::size_t cores = shard_spec.num_cores();
    shard_spec.shape[0] = static_cast<std::uint32_t>((units + cores - 1) / cores * unit);
    return MemoryConfig(memory_config.memory_layout(), memory_config.buffer_type(), shard_spec);
}

Tensor allocate(const TensorSpec& spec, MeshDevice* device) {
    device = chip_device(device);
    TT_FATAL(device == nullptr || device->impl().chips.empty(),
             "The CPU backend has this operation on one chip only");
    TT_FATAL(device == nullptr || device->is_initialized(), "The device has been closed");
    auto allocation = std::make_shared<Allocation>();
    if (device != nullptr) {
        check_shards(spec);
        allocation->l1 = take_l1(spec, device);
    }
    const std::size_t bytes = spec.logical_shape().volume() * stored_size(spec.data_type());
    allocation->buffer = std::make_shared<Buffer>(bytes);
    if (device != nullptr && !is_replaying()) {
        allocation->share = std::make_shared<const MemoryShare>(device->impl().memory_use, spec);
    }
    return wrap({spec, device, allocation, allocation});
}

Tensor allocate_like(const Tensor& like, const Shape& shape, DataType dtype, Layout layout,
                     const MemoryConfig& memory_config) {
    return allocate(make_spec(shape, dtype, layout, memory_config), device_of(like));
}

Tensor make_view(const Tensor& tensor, const TensorSpec& spec) {
    TT_FATAL(spec.logical_shape().volume() == tensor.logical_volume(),
             "A view of {} cannot have the shape {}", tensor.logical_shape(), spec.logical_shape());
    const TensorAttributes& source = attributes(tensor);
    buffer_of(tensor);
    auto allocation = std::make_shared<Allocation>(*source.allocation);
    allocation->l1.reset();
    return wrap({spec, source.device, allocation, source.root});
}

TensorAttributes& attributes(const Tensor& tensor) {
    TT_FATAL(tensor.tensor_attributes != nullptr, "Tensor is not initialized");
    const auto& parts = tensor.tensor_attributes->parts;
    if (!parts.empty() && current_chip()) {
        return *parts.at(*current_chip()).tensor_attributes;
    }
    return *tensor.tensor_attributes;
}

Buffer& buffer_of(const Tensor& tensor) {
    const TensorAttributes& self = attributes(tensor);
    TT_FATAL(self.parts.empty(), "The CPU backend has this operation on one chip only");
    TT_FATAL(self.allocation->allocated, "Tensor is not allocated");
    // On hardware this would read memory that may belong to another tensor by now.
    TT_FATAL(self.root->allocated,
             "Tensor is a view of a tensor that has been deallocated, so its memory is gone");
    TT_FATAL(self.allocation->buffer != nullptr,
             "The elements of this tensor are on a device of another process");
    return *self.allocation->buffer;
}

bool on_device(const Tensor& tensor) { return device_of(tensor) != nullptr; }
MeshDevice* device_of(const Tensor& tensor) { return attributes(tensor).device; }

void require_on_device(const Tensor& tensor, std::string_view what) {
    TT_FATAL(on_device(tensor), "{} must be on device, got storage type: {}", what,
             StorageType::HOST);
    buffer_of(tensor);
}

void require_tile_layout(const Tensor& tensor, std::string_view what) {
    TT_FATAL(tensor.layout() == Layout::TILE, "{} must be in TILE layout, got {}", what,
             tensor.layout());
}

void load_floats(const std::byte* stored, DataType dtype, std::size_t count, float* values) {
    with_element(dtype, [&](auto element) {
        using Element = decltype(element);
        const auto* typed = reinterpret_cast<const typename Element::Stored*>(stored);
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = Element::load(typed[i]);
        }
    });
}

void store_floats(const float* values, std::size_t count, DataType dtype, std::byte* stored) {
    with_element(dtype, [&](auto element) {
        using Element = decltype(element);
        auto* typed = reinterpret_cast<typename Element::Stored*>(stored);
        for (std::size_t i = 0; i < count; ++i) {
            typed[i] = Element::store(values[i]);
        }
    });
}

void finish_block_float(const Tensor& tensor) {
    finish_block_float(tensor, on_device(tensor) ? BlockRounding::Packer : BlockRounding::Host);
}

void finish_block_float(const Tensor& tensor, BlockRounding rounding) {
    if (!is_block(tensor.dtype()) || tensor.logical_volume() == 0) {
        return;
    }
    const auto values = mutable_elements<float>(tensor);
    const std::size_t width = tensor.logical_shape()[-1];
    quantize_block_float(values.data(), values.size() / width, width, tensor.dtype(), rounding);
}

FloatElements::FloatElements(const Tensor& tensor) {
    const std::size_t count = tensor.logical_volume();
    const DataType dtype = tensor.dtype();
    if (is_stored_as_float(dtype)) {
        span_ = elements<float>(tensor);
        return;
    }
    converted_ = std::make_unique_for_overwrite<float[]>(count);
    const std::byte* stored = buffer_of(tensor).data();
    parallel_for(count, kGrain, [&](std::size_t begin, std::size_t end) {
        load_floats(stored + begin * stored_size(dtype), dtype, end - begin,
                    converted_.get() + begin);
    });
    span_ = {converted_.get(), count};
}

void load_integers(const std::byte* stored, DataType dtype, std::size_t count,
                   std::int64_t* values) {
    with_element(dtype, [&](auto element) {
        using Element = decltype(element);
        const auto* typed = reinterpret_cast<const typename Element::Stored*>(stored);
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (std::is_same_v<Element, Bfloat16Element> ||
                          std::is_same_v<Element, FloatElement>) {
                values[i] = truncate_to_int64(Element::load(typed[i]));
            } else {
                values[i] = static_cast<std::int64_t>(typed[i]);
            }
        }
    });
}

std::unique_ptr<std::int64_t[]> load_integers(const Tensor& tensor) {
    const std::size_t count = tensor.logical_volume();
    auto values = std::make_unique_for_overwrite<std::int64_t[]>(count);
    load_integers(buffer_of(tensor).data(), tensor.dtype(), count, values.get());
    return values;
}

void store_integers(const std::int64_t* values, std::size_t count, DataType dtype,
                    std::byte* stored) {
    with_element(dtype, [&](auto element) {
        using Element = decltype(element);
        using Stored = typename Element::Stored;
        auto* typed = reinterpret_cast<Stored*>(stored);
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (std::is_same_v<Element, Bfloat16Element> ||
                          std::is_same_v<Element, FloatElement>) {
                typed[i] = Element::store(static_cast<float>(values[i]));
            } else {
                typed[i] = static_cast<Stored>(values[i]);
            }
        }
    });
}

Tensor tensor_from_floats(const Tensor& like, const Shape& shape, DataType dtype, Layout layout,
                          const MemoryConfig& memory_config, std::span<const float> values) {
    Tensor tensor = allocate_like(like, shape, dtype, layout, memory_config);
    TT_FATAL(values.size() == shape.volume(), "{} values do not fill the shape {}", values.size(),
             shape);
    std::byte* stored = buffer_of(tensor).data();
    parallel_for(values.size(), kGrain, [&](std::size_t begin, std::size_t end) {
        store_floats(values.data() + begin, end - begin, dtype,
                     stored + begin * stored_size(dtype));
    });
    finish_block_float(tensor);
    return tensor;
}

const MemoryConfig& output_memory_config(const Tensor& input,
                                         const std::optional<MemoryConfig>& memory_config) {
    return memory_config ? *memory_config : input.memory_config();
}

ttsl::SmallVector<std::size_t> element_strides(const Shape& shape) {
    ttsl::SmallVector<std::size_t> strides(shape.rank(), 1);
    for (std::size_t i = shape.rank(); i-- > 1;) {
        strides[i - 1] = strides[i] * shape[static_cast<std::int32_t>(i)];
    }
    return strides;
}

std::size_t normalize_dim(std::int64_t dim, std::size_t rank) {
    const auto signed_rank = static_cast<std::int64_t>(rank);
    TT_FATAL(dim >= -signed_rank && dim < signed_rank,
             "Dimension {} is out of range for a tensor of rank {}", dim, rank);
    return static_cast<std::size_t>(dim < 0 ? dim + signed_rank : dim);
}

}  // namespace ttcodegen::cpu
