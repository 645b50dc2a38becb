#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tt::tt_metal {

/// A height and a width.
class Shape2D final {
  public:
    Shape2D(std::size_t height, std::size_t width);
    Shape2D(const std::pair<std::size_t, std::size_t>& size);
    Shape2D(const std::array<std::size_t, 2>& size);
    Shape2D(const std::array<std::uint32_t, 2>& size);

    operator std::pair<std::size_t, std::size_t>() const;
    operator std::array<std::size_t, 2>() const;
    operator std::array<std::uint32_t, 2>() const;

    Shape2D operator*(std::size_t scalar) const;
    bool operator==(const Shape2D& other) const;

    [[nodiscard]] std::size_t height() const;
    [[nodiscard]] std::size_t width() const;

  private:
    std::size_t height_ = 0;
    std::size_t width_ = 0;
};

}  // namespace tt::tt_metal
