#pragma once

#include <cstddef>

#include "tt-metalium/experimental/tensor/spec/layout/alignment.hpp"
#include "tt-metalium/experimental/tensor/spec/layout/page_config.hpp"
#include "tt-metalium/experimental/tensor/spec/memory_config/memory_config.hpp"
#include "tt-metalium/experimental/tensor/tensor_types.hpp"
#include "tt-metalium/shape.hpp"
#include "tt-metalium/shape2d.hpp"

namespace tt::tt_metal {

/// Data type, page layout, memory config and alignment, independent of the shape.
class TensorLayout {
  public:
    TensorLayout(DataType dtype, const PageConfig& page_config, const MemoryConfig& memory_config,
                 const Alignment& alignment = {});

    Layout get_layout() const { return page_config_.get_layout(); }
    Tile get_tile() const { return page_config_.get_tile(); }
    PageConfig get_page_config() const { return page_config_; }
    DataType get_data_type() const { return dtype_; }
    const MemoryConfig& get_memory_config() const { return memory_config_; }
    const Alignment& get_alignment() const { return alignment_; }

    Shape compute_padded_shape(const Shape& shape) const;
    Shape2D compute_logical_2d_shape(const Shape& shape) const;
    Shape2D compute_physical_shape(const Shape& shape) const;

    bool operator==(const TensorLayout&) const = default;

  private:
    void initialize_alignment();

    DataType dtype_ = DataType::BFLOAT16;
    PageConfig page_config_;
    MemoryConfig memory_config_;
    Alignment alignment_;
};

}  // namespace tt::tt_metal
