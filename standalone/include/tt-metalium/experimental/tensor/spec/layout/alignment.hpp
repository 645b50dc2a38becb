#pragma once

#include <cstdint>

#include "tt-metalium/shape_base.hpp"

namespace tt::tt_metal {

/// The factor that each dimension of the physical shape is a multiple of.
class Alignment final : protected ShapeBase {
  public:
    using ShapeBase::ShapeBase;
    using ShapeBase::operator[];
    using ShapeBase::cbegin;
    using ShapeBase::cend;
    using ShapeBase::empty;
    using ShapeBase::size;
    using ShapeBase::view;

    bool operator==(const Alignment& other) const;
    bool operator==(const ttsl::SmallVector<std::uint32_t>& other) const;
};

}  // namespace tt::tt_metal
