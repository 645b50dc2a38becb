#include "ttnn/tensor/tensor.hpp"

#include <cstring>

#include "core/chips.hpp"
#include "core/conversion.hpp"
#include "core/l1.hpp"
#include "core/tensor_data.hpp"
#include "core/trace.hpp"

namespace tt::tt_metal {

using ttcodegen::cpu::attributes;

Tensor::Tensor(const Tensor& other) = default;
Tensor& Tensor::operator=(const Tensor& other) = default;
Tensor& Tensor::operator=(Tensor&& other) noexcept = default;
// Data is freed with the last tensor that refers to it; only `deallocate` frees it earlier.
Tensor::~Tensor() = default;

void Tensor::deallocate(bool force) { deallocate_impl(force); }

void Tensor::deallocate_impl(bool force) {
    if (tensor_attributes == nullptr || tensor_attributes->device == nullptr) {
        return;
    }
    TensorAttributes& self = *tensor_attributes;
    if (!self.parts.empty()) {
        if (force || tensor_attributes.use_count() == 1) {
            for (Tensor& part : self.parts) {
                part.deallocate(force);
            }
        }
        return;
    }
    // The attributes hold two references to their own allocation if the tensor is not a view.
    const bool is_view = self.root != self.allocation;
    const bool sole_owner =
        tensor_attributes.use_count() == 1 && !is_view && self.allocation->buffer.use_count() <= 1;
    if (!force && !sole_owner) {
        return;
    }
    for (const auto& allocation : {self.root, self.allocation}) {
        allocation->allocated = false;
        allocation->buffer.reset();
        allocation->l1.reset();
        allocation->share.reset();
        allocation->memory.reset();
    }
}

template <typename T>
Tensor Tensor::from_span(ttsl::Span<const T> buffer, const TensorSpec& spec,
                         distributed::MeshDevice* device, std::optional<QueueId> /*cq_id*/,
                         T /*pad_value*/) {
    TTCODEGEN_ON_CHIPS(Any, Tensor::from_span<T>, buffer, spec, device);
    if (device != nullptr) {
        ttcodegen::cpu::refuse_write_in_capture();
    }
    const DataType dtype = spec.data_type();
    const DataType element = is_block_float(dtype) ? DataType::FLOAT32 : dtype;
    TT_FATAL(element == convert_to_data_type<T>(), "Elements of {} cannot fill a tensor of {}",
             convert_to_data_type<T>(), dtype);
    TT_FATAL(buffer.size() == spec.logical_shape().volume(),
             "Current buffer size is {} different from shape volume {}", buffer.size(),
             spec.logical_shape().volume());
    Tensor tensor = ttcodegen::cpu::allocate(spec, device);
    if (!buffer.empty()) {
        std::memcpy(ttcodegen::cpu::buffer_of(tensor).data(), buffer.data(), buffer.size_bytes());
    }
    ttcodegen::cpu::finish_block_float(tensor, ttcodegen::cpu::BlockRounding::Host);
    return tensor;
}

template <typename T>
Tensor Tensor::from_borrowed_data(ttsl::Span<T> buffer, const Shape& shape, MemoryPin buffer_pin,
                                  const std::optional<Tile>& /*tile*/) {
    TT_FATAL(buffer.size() == shape.volume(),
             "Current buffer size is {} different from shape volume {}", buffer.size(),
             shape.volume());
    const TensorSpec spec =
        ttcodegen::cpu::make_spec(shape, convert_to_data_type<T>(), Layout::ROW_MAJOR, {});
    const auto allocation = std::make_shared<ttcodegen::cpu::Allocation>();
    allocation->buffer = std::make_shared<ttcodegen::cpu::Buffer>(
        std::shared_ptr<std::byte>(buffer_pin.resource(),
                                   reinterpret_cast<std::byte*>(buffer.data())),
        buffer.size_bytes());
    Tensor tensor;
    tensor.tensor_attributes =
        std::make_shared<TensorAttributes>(spec, nullptr, allocation, allocation);
    return tensor;
}

template <typename T>
Tensor Tensor::from_vector(std::vector<T>&& buffer, const TensorSpec& spec,
                           distributed::MeshDevice* device, std::optional<QueueId> cq_id,
                           T pad_value) {
    return from_span(ttsl::Span<const T>(buffer), spec, device, cq_id, pad_value);
}

template <typename T>
std::vector<T> Tensor::to_vector(std::optional<QueueId> /*cq_id*/) const {
    const DataType element = is_block_float(dtype()) ? DataType::FLOAT32 : dtype();
    TT_FATAL(element == convert_to_data_type<T>(), "A tensor of {} has no elements of {}", dtype(),
             convert_to_data_type<T>());
    TT_FATAL(ttcodegen::cpu::parts_of(*this).empty() || ttcodegen::cpu::current_chip(),
             "A tensor of a mesh of several devices has no elements of its own: compose it");
    if (ttcodegen::cpu::on_device(*this)) {
        ttcodegen::cpu::refuse_read_in_capture();
    }
    const auto stored = ttcodegen::cpu::elements<T>(*this);
    return std::vector<T>(stored.begin(), stored.end());
}

#define INSTANTIATE_ELEMENT(T)                                                                   \
    template Tensor Tensor::from_span<T>(ttsl::Span<const T>, const TensorSpec&,                 \
                                         distributed::MeshDevice*, std::optional<QueueId>, T);   \
    template Tensor Tensor::from_borrowed_data<T>(ttsl::Span<T>, const Shape&, MemoryPin,        \
                                                  const std::optional<Tile>&);                   \
    template Tensor Tensor::from_vector<T>(std::vector<T>&&, const TensorSpec&,                  \
                                           distributed::MeshDevice*, std::optional<QueueId>, T); \
    template std::vector<T> Tensor::to_vector<T>(std::optional<QueueId>) const;

INSTANTIATE_ELEMENT(bfloat16)
INSTANTIATE_ELEMENT(float)
INSTANTIATE_ELEMENT(std::int32_t)
INSTANTIATE_ELEMENT(std::uint32_t)
INSTANTIATE_ELEMENT(std::uint16_t)
INSTANTIATE_ELEMENT(std::uint8_t)

#undef INSTANTIATE_ELEMENT

DataType Tensor::dtype() const { return tensor_spec().data_type(); }
Layout Tensor::layout() const { return tensor_spec().layout(); }
const Shape& Tensor::logical_shape() const { return tensor_spec().logical_shape(); }
const Shape& Tensor::padded_shape() const { return tensor_spec().padded_shape(); }
const TensorSpec& Tensor::tensor_spec() const { return attributes(*this).spec; }
std::uint64_t Tensor::logical_volume() const { return logical_shape().volume(); }
std::uint64_t Tensor::physical_volume() const { return padded_shape().volume(); }
const MemoryConfig& Tensor::memory_config() const { return tensor_spec().memory_config(); }
const std::optional<ShardSpec>& Tensor::shard_spec() const { return memory_config().shard_spec(); }
const std::optional<NdShardSpec>& Tensor::nd_shard_spec() const {
    return memory_config().nd_shard_spec();
}
StorageType Tensor::storage_type() const {
    return attributes(*this).device == nullptr ? StorageType::HOST : StorageType::DEVICE;
}
Shape Tensor::strides() const {
    const auto strides = ttcodegen::cpu::element_strides(padded_shape());
    return Shape(ttsl::SmallVector<std::uint32_t>(strides.begin(), strides.end()));
}
bool Tensor::is_scalar() const {
    return logical_shape().rank() == 0 || logical_shape().volume() == 1;
}
bool Tensor::is_allocated() const {
    return tensor_attributes != nullptr && tensor_attributes->allocation->allocated;
}
distributed::MeshDevice* Tensor::device() const {
    distributed::MeshDevice* device = attributes(*this).device;
    TT_FATAL(device != nullptr, "Cannot get the device from a tensor with host storage");
    return device;
}
bool Tensor::is_sharded() const {
    return storage_type() == StorageType::DEVICE && memory_config().is_sharded();
}
std::uint32_t Tensor::element_size() const {
    return is_block_float(dtype())
               ? 1
               : static_cast<std::uint32_t>(ttcodegen::cpu::stored_size(dtype()));
}

}  // namespace tt::tt_metal

bfloat16 bfloat16::truncate(float value) {
    bfloat16 result;
    result.uint16_data = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    return result;
}
std::uint16_t bfloat16::from_float(float value) { return ttcodegen::cpu::bf16_bits(value); }
bfloat16& bfloat16::operator+=(bfloat16 other) noexcept { return *this = *this + other; }
bfloat16& bfloat16::operator-=(bfloat16 other) noexcept { return *this = *this - other; }
bfloat16& bfloat16::operator*=(bfloat16 other) noexcept { return *this = *this * other; }
bfloat16& bfloat16::operator/=(bfloat16 other) noexcept { return *this = *this / other; }
bfloat16 bfloat16::operator+(bfloat16 other) const {
    return static_cast<float>(*this) + static_cast<float>(other);
}
bfloat16 bfloat16::operator-(bfloat16 other) const {
    return static_cast<float>(*this) - static_cast<float>(other);
}
bfloat16 bfloat16::operator*(bfloat16 other) const {
    return static_cast<float>(*this) * static_cast<float>(other);
}
bfloat16 bfloat16::operator/(bfloat16 other) const {
    return static_cast<float>(*this) / static_cast<float>(other);
}
