#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "tt-metalium/shape_base.hpp"

namespace tt::tt_metal::distributed {

/// The sizes of a mesh of devices.
class MeshShape : public ShapeBase {
  public:
    using ShapeBase::operator[];

    explicit MeshShape(std::uint32_t s);
    MeshShape(std::uint32_t s0, std::uint32_t s1);
    MeshShape(std::uint32_t s0, std::uint32_t s1, std::uint32_t s2);
    explicit MeshShape(const ttsl::SmallVector<std::uint32_t>& shape);
    explicit MeshShape(ttsl::SmallVector<std::uint32_t>&& shape);
    explicit MeshShape(std::initializer_list<std::uint32_t> ilist);
    explicit MeshShape(ttsl::Span<const std::uint32_t> span);

    std::size_t dims() const;
    std::size_t get_stride(std::size_t dim) const;
    std::size_t mesh_size() const;

    friend bool operator==(const MeshShape& lhs, const MeshShape& rhs);
    friend bool operator!=(const MeshShape& lhs, const MeshShape& rhs);

  private:
    void compute_strides();
    ttsl::SmallVector<std::size_t> strides_;
};

/// The position of a device in a mesh.
class MeshCoordinate {
  public:
    explicit MeshCoordinate(std::uint32_t c);
    MeshCoordinate(std::uint32_t c0, std::uint32_t c1);
    MeshCoordinate(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2);
    explicit MeshCoordinate(ttsl::Span<const std::uint32_t> coords);

    std::size_t dims() const;
    ttsl::Span<const std::uint32_t> coords() const;

  private:
    ttsl::SmallVector<std::uint32_t> value_;
};

}  // namespace tt::tt_metal::distributed
