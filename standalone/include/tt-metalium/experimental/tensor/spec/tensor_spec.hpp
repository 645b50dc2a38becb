#pragma once

#include "tt-metalium/experimental/tensor/spec/layout/tensor_layout.hpp"
#include "tt-metalium/experimental/tensor/tensor_types.hpp"
#include "tt-metalium/shape.hpp"

namespace tt::tt_metal {

/// Shape and layout of a tensor.
class TensorSpec final {
  public:
    TensorSpec(Shape logical_shape, TensorLayout tensor_layout);
    TensorSpec(TensorSpec&&) noexcept = default;
    TensorSpec& operator=(TensorSpec&&) = default;
    TensorSpec(const TensorSpec&) = default;
    TensorSpec& operator=(const TensorSpec&) = default;
    bool operator==(const TensorSpec&) const = default;

    const Shape& logical_shape() const { return logical_shape_; }
    const TensorLayout& tensor_layout() const { return tensor_layout_; }
    DataType data_type() const { return tensor_layout_.get_data_type(); }
    Layout layout() const { return tensor_layout_.get_layout(); }
    PageConfig page_config() const { return tensor_layout_.get_page_config(); }
    const MemoryConfig& memory_config() const { return tensor_layout_.get_memory_config(); }
    const Shape& padded_shape() const { return cached_padded_shape_; }
    const Shape2D& logical_2d_shape() const { return cached_logical_2d_shape_; }
    const Shape2D& physical_shape() const { return cached_physical_shape_; }
    Tile tile() const { return tensor_layout_.get_tile(); }

    TensorSpec with_memory_config(MemoryConfig memory_config) const;

  private:
    Shape logical_shape_;
    TensorLayout tensor_layout_;
    Shape cached_padded_shape_;
    Shape2D cached_logical_2d_shape_;
    Shape2D cached_physical_shape_;
};

}  // namespace tt::tt_metal
