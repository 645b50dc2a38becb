#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "tt-metalium/buffer.hpp"
#include "tt-metalium/memory_pin.hpp"
#include "tt-metalium/tile.hpp"
#include "tt_stl/optional_reference.hpp"
#include "ttcodegen/release.hpp"
#include "ttnn/common/queue_id.hpp"
#include "ttnn/tensor/layout/layout.hpp"
#include "ttnn/tensor/tensor_spec.hpp"
#include "ttnn/tensor/types.hpp"

namespace tt::tt_metal {

namespace distributed {
class MeshDevice;
}  // namespace distributed

/// The backend's state of a tensor: specification, storage and data.
class TensorAttributes;

#if TTCODEGEN_EXACT_8101
}  // namespace tt::tt_metal

namespace ttnn {
#endif

/// A tensor on the host or on a device. Copies share the data.
class Tensor {
  public:
    constexpr static std::uint64_t INVALID_TENSOR_ID = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t tensor_id{INVALID_TENSOR_ID};

    std::shared_ptr<tt::tt_metal::TensorAttributes> tensor_attributes = nullptr;

    [[nodiscard]] explicit Tensor() = default;
    [[nodiscard]] Tensor(Tensor&& other) noexcept = default;
#if TTCODEGEN_EXACT_8101
    [[nodiscard]] Tensor(const Tensor& other) = default;
    Tensor& operator=(const Tensor& other) = default;
#else
    [[nodiscard]] Tensor(const Tensor& other);
    Tensor& operator=(const Tensor& other);
#endif
    Tensor& operator=(Tensor&& other) noexcept;
    ~Tensor();

    /// Creates a tensor from row-major elements of `buffer`: on the host, or on `device` if given.
    ///
    /// For block floats `T` is float; otherwise it is the element type of `spec`.
    /// @throws std::runtime_error if the number or the type of the elements does not fit `spec`.
    template <typename T>
    [[nodiscard]] static Tensor from_span(ttsl::Span<const T> buffer,
                                          const tt::tt_metal::TensorSpec& spec,
                                          tt::tt_metal::distributed::MeshDevice* device = nullptr,
                                          std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt,
                                          T pad_value = 0);

    /// A tensor on the host, in rows, on memory that is not copied: its pages are read when they
    /// are needed. `buffer_pin` keeps it.
    /// @throws std::runtime_error if the number of elements is not that of the shape.
    template <typename T>
    [[nodiscard]] static Tensor from_borrowed_data(
        ttsl::Span<T> buffer, const tt::tt_metal::Shape& shape, tt::tt_metal::MemoryPin buffer_pin,
        const std::optional<tt::tt_metal::Tile>& tile = std::nullopt);

    /// As `from_span`.
    template <typename T>
    [[nodiscard]] static Tensor from_vector(
        const std::vector<T>& buffer, const tt::tt_metal::TensorSpec& spec,
        tt::tt_metal::distributed::MeshDevice* device = nullptr,
        std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt, T pad_value = 0) {
        return from_span(ttsl::Span<const T>(buffer), spec, device, cq_id, pad_value);
    }

    /// As `from_span`.
    template <typename T>
    [[nodiscard]] static Tensor from_vector(
        std::vector<T>&& buffer, const tt::tt_metal::TensorSpec& spec,
        tt::tt_metal::distributed::MeshDevice* device = nullptr,
        std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt, T pad_value = 0);

    /// The elements in row-major order; `T` as in `from_span`.
    template <typename T>
    [[nodiscard]] std::vector<T> to_vector(
        std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt) const;

    [[nodiscard]] Tensor to_device(
        tt::tt_metal::distributed::MeshDevice* mesh_device,
        ttsl::optional_reference<const tt::tt_metal::MemoryConfig> mem_config = std::nullopt,
        std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt) const;
    [[nodiscard]] Tensor to_layout(tt::tt_metal::Layout target_layout) const;
    [[nodiscard]] Tensor cpu(bool blocking = true,
                             std::optional<tt::tt_metal::QueueId> cq_id = std::nullopt) const;

    /// Frees the device memory; without `force` only if no other tensor shares it.
    void deallocate(bool force = false);

    tt::tt_metal::DataType dtype() const;
    tt::tt_metal::Layout layout() const;
    const tt::tt_metal::Shape& logical_shape() const;
    const tt::tt_metal::Shape& padded_shape() const;
    const tt::tt_metal::TensorSpec& tensor_spec() const;
    std::uint64_t logical_volume() const;
    std::uint64_t physical_volume() const;
    const tt::tt_metal::MemoryConfig& memory_config() const;
    const std::optional<tt::tt_metal::ShardSpec>& shard_spec() const;
    const std::optional<tt::tt_metal::NdShardSpec>& nd_shard_spec() const;
    tt::tt_metal::StorageType storage_type() const;
    tt::tt_metal::Shape strides() const;
    bool is_scalar() const;
    bool is_allocated() const;
    /// @throws std::runtime_error if the tensor is on the host.
    tt::tt_metal::distributed::MeshDevice* device() const;
    /// The memory of a tensor on the device, at the same address on all devices of a mesh.
    /// @throws std::runtime_error if the tensor is on the host or deallocated.
    tt::tt_metal::Buffer* buffer() const;
    bool is_sharded() const;
    std::uint32_t element_size() const;

  private:
    void deallocate_impl(bool force);
};

#if TTCODEGEN_EXACT_8101
using TensorSpec = tt::tt_metal::TensorSpec;

}  // namespace ttnn
#else
}  // namespace tt::tt_metal

namespace ttnn {

using Tensor = tt::tt_metal::Tensor;
using TensorSpec = tt::tt_metal::TensorSpec;

}  // namespace ttnn
#endif
