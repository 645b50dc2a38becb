#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

    static MeshCoordinate zero_coordinate(std::size_t dimensions);

    std::size_t dims() const;
    ttsl::Span<const std::uint32_t> coords() const;
    std::uint32_t operator[](std::int32_t dim) const;

    friend bool operator==(const MeshCoordinate& lhs, const MeshCoordinate& rhs);
    friend bool operator!=(const MeshCoordinate& lhs, const MeshCoordinate& rhs);

  private:
    ttsl::SmallVector<std::uint32_t> value_;
};

/// A box of devices of a mesh; both corners are inclusive.
class MeshCoordinateRange {
  public:
    MeshCoordinateRange(const MeshCoordinate& start, const MeshCoordinate& end);
    explicit MeshCoordinateRange(const MeshShape& shape);
    explicit MeshCoordinateRange(const MeshCoordinate& coord);

    std::size_t dims() const;
    const MeshCoordinate& start_coord() const;
    const MeshCoordinate& end_coord() const;
    bool contains(const MeshCoordinate& coord) const;
    bool intersects(const MeshCoordinateRange& range) const;

    friend bool operator==(const MeshCoordinateRange& lhs, const MeshCoordinateRange& rhs);
    friend bool operator!=(const MeshCoordinateRange& lhs, const MeshCoordinateRange& rhs);

  private:
    MeshCoordinate start_;
    MeshCoordinate end_;
};

}  // namespace tt::tt_metal::distributed

template <>
struct std::hash<tt::tt_metal::distributed::MeshCoordinateRange> {
    std::size_t operator()(
        const tt::tt_metal::distributed::MeshCoordinateRange& range) const noexcept;
};
