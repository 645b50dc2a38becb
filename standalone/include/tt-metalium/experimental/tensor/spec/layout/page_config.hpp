#pragma once

#include <optional>
#include <variant>

#include "tt-metalium/experimental/tensor/spec/layout/layout.hpp"
#include "tt-metalium/experimental/tensor/tensor_types.hpp"
#include "tt-metalium/tile.hpp"

namespace tt::tt_metal {

class RowMajorPageConfig {
  public:
    RowMajorPageConfig(const Tile& tile = Tile());
    const Tile& get_tile() const;
    bool operator==(const RowMajorPageConfig&) const = default;

  private:
    Tile tile_;
};

class TilePageConfig {
  public:
    TilePageConfig(const Tile& tile = Tile());
    const Tile& get_tile() const;
    bool operator==(const TilePageConfig&) const = default;

  private:
    Tile tile_;
};

/// The page layout of a tensor: rows or tiles.
class PageConfig {
  public:
    using Config = std::variant<RowMajorPageConfig, TilePageConfig>;

    PageConfig(const Config& config);
    PageConfig(Layout layout);
    PageConfig(Layout layout, const std::optional<Tile>& tile);

    Tile get_tile() const;
    Layout get_layout() const;
    bool operator==(const PageConfig&) const = default;

  private:
    Config config_;
};

}  // namespace tt::tt_metal
