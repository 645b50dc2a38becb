#pragma once

// Storage and attributes of CPU backend tensors. Kernels include this header; programs never do.
//
// Elements are stored in the tensor's data type, in row-major order of the LOGICAL shape: the
// padding of tiles exists in padded_shape() only. BFLOAT8_B and BFLOAT4_B are stored as floats that
// have been quantised.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/numeric.hpp"
#include "tt_stl/assert.hpp"
#include "ttnn/types.hpp"

namespace ttcodegen::cpu {

using tt::tt_metal::BufferType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::PageConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::StorageType;
using tt::tt_metal::Tensor;
using tt::tt_metal::TensorLayout;
using tt::tt_metal::TensorMemoryLayout;
using tt::tt_metal::TensorSpec;
using tt::tt_metal::distributed::MeshDevice;

inline constexpr std::uint32_t kTileSide = 32;
inline constexpr std::uint32_t kFaceSide = 16;
inline constexpr std::size_t kTileElements = std::size_t{kTileSide} * kTileSide;

/// The size of a stored element in bytes.
constexpr std::size_t stored_size(DataType dtype) {
    switch (dtype) {
        case DataType::UINT8:
            return 1;
        case DataType::BFLOAT16:
        case DataType::UINT16:
            return 2;
        default:
            return 4;
    }
}

constexpr bool is_integer(DataType dtype) {
    return dtype == DataType::UINT8 || dtype == DataType::UINT16 || dtype == DataType::UINT32 ||
           dtype == DataType::INT32;
}
constexpr bool is_block(DataType dtype) {
    return dtype == DataType::BFLOAT8_B || dtype == DataType::BFLOAT4_B;
}
/// Returns whether elements are stored as floats (f32 and the block floats).
constexpr bool is_stored_as_float(DataType dtype) {
    return dtype == DataType::FLOAT32 || is_block(dtype);
}

/// A form that a kernel derived from a buffer's elements and caches with them, such as a packed
/// weight.
struct Derived {
    virtual ~Derived() = default;
};

/// Elements shared by all tensors on the same memory.
class Buffer {
  public:
    explicit Buffer(std::size_t bytes);
    /// A buffer on memory of someone else.
    Buffer(std::shared_ptr<std::byte> memory, std::size_t bytes);

    std::byte* data() { return memory_.get(); }
    const std::byte* data() const { return memory_.get(); }
    std::size_t bytes() const { return bytes_; }
    /// The number of buffers created before this one.
    std::uint64_t number() const { return number_; }
    static std::uint64_t made_so_far();
    /// Exchanges the elements with those of a buffer of the same size.
    void swap_elements(Buffer& other);

    /// The form derived from the elements under `key`, created by `make()` the first time.
    ///
    /// `key` distinguishes forms (a transposed weight from a plain one). Writing to the buffer
    /// (`Tensor` access through `mutable_elements`) drops the derived forms.
    template <typename Form, typename Make>
    std::shared_ptr<const Form> derived(std::uint64_t key, const Make& make) const {
        const std::lock_guard lock(derived_mutex_);
        if (!derived_ || derived_key_ != key) {
            derived_ = make();
            derived_key_ = key;
        }
        return std::static_pointer_cast<const Form>(derived_);
    }
    /// Must be called before elements are written.
    void forget_derived();
    /// Returns whether nothing was written since the tensor was created uninitialised.
    bool is_empty() const { return is_empty_; }
    void mark_empty() { is_empty_ = true; }

    /// Number of reads of the whole buffer as a weight; packing pays from the second on.
    mutable std::atomic<std::size_t> weight_uses = 0;

  private:
    std::shared_ptr<std::byte> memory_;
    std::size_t bytes_;
    std::uint64_t number_;
    bool is_empty_ = false;
    mutable std::mutex derived_mutex_;
    mutable std::shared_ptr<const Derived> derived_;
    mutable std::uint64_t derived_key_ = 0;
};

class L1Part;
class MemoryShare;

/// The allocation of a tensor or a view; `Tensor::deallocate` ends it.
struct Allocation {
    std::shared_ptr<Buffer> buffer;
    /// The allocation in the L1 banks; null in DRAM, on the host and for views.
    std::shared_ptr<L1Part> l1;
    /// The share in the device's memory use, common to all views; null on the host.
    std::shared_ptr<const MemoryShare> share;
    /// The buffer on the emulated device; null until a device program uses the tensor.
    std::shared_ptr<tt::tt_metal::Buffer> memory;
    bool allocated = true;
};

}  // namespace ttcodegen::cpu

namespace tt::tt_metal {

class TensorAttributes {
  public:
    TensorAttributes(TensorSpec spec_, distributed::MeshDevice* device_,
                     std::shared_ptr<ttcodegen::cpu::Allocation> allocation_,
                     std::shared_ptr<ttcodegen::cpu::Allocation> root_)
        : spec(std::move(spec_)),
          device(device_),
          allocation(std::move(allocation_)),
          root(std::move(root_)) {}

    TensorSpec spec;
    /// Null for a tensor on the host.
    distributed::MeshDevice* device;
    std::shared_ptr<ttcodegen::cpu::Allocation> allocation;
    /// The allocation this tensor is a view of; its own if it is not a view.
    std::shared_ptr<ttcodegen::cpu::Allocation> root;
    /// The tensors of the devices of a mesh; empty for a tensor of one device.
    std::vector<Tensor> parts;
};

}  // namespace tt::tt_metal

namespace ttcodegen::cpu {

/// A tensor spec with the default alignment of the layout.
TensorSpec make_spec(const Shape& shape, DataType dtype, Layout layout,
                     const MemoryConfig& memory_config);

/// A new tensor with uninitialised elements; on the host if `device` is null.
Tensor allocate(const TensorSpec& spec, MeshDevice* device);
/// A new tensor on the device of `like`, with uninitialised elements.
Tensor allocate_like(const Tensor& like, const Shape& shape, DataType dtype, Layout layout,
                     const MemoryConfig& memory_config);

/// A view with another shape or layout that shares the buffer.
Tensor make_view(const Tensor& tensor, const TensorSpec& spec);

/// The attributes, or those of the part on the chip that the thread is bound to (core/chips.hpp);
/// refuses a default-constructed tensor.
tt::tt_metal::TensorAttributes& attributes(const Tensor& tensor);
/// The buffer; refuses a deallocated tensor.
Buffer& buffer_of(const Tensor& tensor);
bool on_device(const Tensor& tensor);
/// The device of the tensor, null on the host.
MeshDevice* device_of(const Tensor& tensor);

/// Refuses a tensor on the host with "<what> must be on device, got storage type: ...", and a
/// deallocated one.
void require_on_device(const Tensor& tensor, std::string_view what);
void require_tile_layout(const Tensor& tensor, std::string_view what);

/// Elements as stored; `T` must be as wide as a stored element.
template <typename T>
std::span<const T> elements(const Tensor& tensor) {
    TT_FATAL(sizeof(T) == stored_size(tensor.dtype()), "elements of {} bytes read as {} bytes",
             stored_size(tensor.dtype()), sizeof(T));
    const Buffer& buffer = buffer_of(tensor);
    return {reinterpret_cast<const T*>(buffer.data()), tensor.logical_shape().volume()};
}
template <typename T>
std::span<T> mutable_elements(const Tensor& tensor) {
    TT_FATAL(sizeof(T) == stored_size(tensor.dtype()), "elements of {} bytes written as {} bytes",
             stored_size(tensor.dtype()), sizeof(T));
    Buffer& buffer = buffer_of(tensor);
    buffer.forget_derived();
    return {reinterpret_cast<T*>(buffer.data()), tensor.logical_shape().volume()};
}

/// Converts `count` stored elements to float.
void load_floats(const std::byte* stored, DataType dtype, std::size_t count, float* values);
/// Rounds floats to `dtype` (ties to even; integers truncate and saturate) without the shared
/// exponents of block floats: `finish_block_float` applies those.
void store_floats(const float* values, std::size_t count, DataType dtype, std::byte* stored);
/// Quantises the elements of a block float tensor; does nothing for other types. By default with
/// the rounding of the packer on the device, and of the host for host tensors.
void finish_block_float(const Tensor& tensor);
void finish_block_float(const Tensor& tensor, BlockRounding rounding);

/// All elements as floats: the stored ones if they are floats already, else converted to `scratch`.
class FloatElements {
  public:
    explicit FloatElements(const Tensor& tensor);
    std::span<const float> span() const { return span_; }
    const float* data() const { return span_.data(); }
    float operator[](std::size_t index) const { return span_[index]; }

  private:
    std::unique_ptr<float[]> converted_;
    std::span<const float> span_;
};

/// Converts `count` stored elements to 64-bit integers; floats truncate.
void load_integers(const std::byte* stored, DataType dtype, std::size_t count,
                   std::int64_t* values);
/// All elements as 64-bit integers.
std::unique_ptr<std::int64_t[]> load_integers(const Tensor& tensor);
/// Stores integers: wraps for integer types, rounds for floating ones.
void store_integers(const std::int64_t* values, std::size_t count, DataType dtype,
                    std::byte* stored);

/// Fills a new tensor from float values in row-major order.
Tensor tensor_from_floats(const Tensor& like, const Shape& shape, DataType dtype, Layout layout,
                          const MemoryConfig& memory_config, std::span<const float> values);

/// `memory_config` if given, else the tensor's own; the rule of most operations.
const MemoryConfig& output_memory_config(const Tensor& input,
                                         const std::optional<MemoryConfig>& memory_config);

/// The memory config with shards high enough for a tensor of this shape to fit on its
/// cores.
MemoryConfig with_fitting_shards(const MemoryConfig& memory_config, const Shape& shape,
                                 Layout layout);

/// Row-major strides in elements.
ttsl::SmallVector<std::size_t> element_strides(const Shape& shape);
/// Normalizes `dim` in [-rank, rank); refuses others.
std::size_t normalize_dim(std::int64_t dim, std::size_t rank);

}  // namespace ttcodegen::cpu
