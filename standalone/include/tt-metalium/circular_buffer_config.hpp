#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>

#include "tt-metalium/buffer.hpp"
#include "tt-metalium/circular_buffer_constants.h"
#include "tt-metalium/tile.hpp"
#include "tt-metalium/tt_backend_api_types.hpp"

namespace tt::tt_metal {

using CBHandle = std::uintptr_t;

/// The size, data formats and page sizes of a circular buffer; several indices may share its
/// memory.
class CircularBufferConfig {
  public:
    CircularBufferConfig(std::uint32_t total_size,
                         const std::map<std::uint8_t, tt::DataFormat>& data_format_spec);
    CircularBufferConfig(std::uint32_t total_size);
    CircularBufferConfig(std::uint32_t total_size,
                         const std::map<std::uint8_t, tt::DataFormat>& data_format_spec,
                         const Buffer& buffer);

    /// @throws std::runtime_error if `page_size` does not divide the total size, or the index has
    /// no data format.
    CircularBufferConfig& set_page_size(std::uint8_t buffer_index, std::uint32_t page_size);
    CircularBufferConfig& set_total_size(std::uint32_t total_size);
    /// Places the circular buffer in an L1 buffer.
    CircularBufferConfig& set_globally_allocated_address(const Buffer& buffer);
    CircularBufferConfig& set_globally_allocated_address_and_total_size(const Buffer& buffer,
                                                                        std::uint32_t total_size);
    CircularBufferConfig& set_tile_dims(std::uint8_t buffer_index, const Tile& tile);

    const std::array<std::optional<Tile>, NUM_CIRCULAR_BUFFERS>& tiles() const;
    std::uint32_t total_size() const;
    std::optional<std::uint32_t> globally_allocated_address() const;
    const std::unordered_set<std::uint8_t>& buffer_indices() const;
    const std::unordered_set<std::uint8_t>& local_buffer_indices() const;
    const std::unordered_set<std::uint8_t>& remote_buffer_indices() const;
    const std::array<std::optional<tt::DataFormat>, NUM_CIRCULAR_BUFFERS>& data_formats() const;
    const std::array<std::optional<std::uint32_t>, NUM_CIRCULAR_BUFFERS>& page_sizes() const;
    bool dynamic_cb() const;
    std::uint32_t max_size() const;
    std::uint32_t buffer_size() const;

    const Buffer* shadow_global_buffer{nullptr};

    /// Sets the properties of one index; created by `index`.
    class Builder {
      public:
        static Builder LocalBuilder(CircularBufferConfig& parent, std::uint8_t buffer_index);
        const Builder& set_data_format(tt::DataFormat data_format) const;
        const Builder& set_total_size(std::uint32_t total_size) const;
        const Builder& set_page_size(std::uint32_t page_size) const;
        const Builder& set_tile_dims(const Tile& tile) const;

      private:
        Builder(CircularBufferConfig& parent, std::uint8_t buffer_index);
        CircularBufferConfig& parent_;
        std::uint8_t buffer_index_;
    };
    Builder index(std::uint8_t buffer_index);

  private:
    void set_config(const std::map<std::uint8_t, tt::DataFormat>& data_format_spec);

    std::uint32_t total_size_ = 0;
    std::optional<std::uint32_t> globally_allocated_address_;
    std::array<std::optional<tt::DataFormat>, NUM_CIRCULAR_BUFFERS> data_formats_;
    std::array<std::optional<std::uint32_t>, NUM_CIRCULAR_BUFFERS> page_sizes_;
    std::array<std::optional<Tile>, NUM_CIRCULAR_BUFFERS> tiles_;
    std::unordered_set<std::uint8_t> buffer_indices_;
    std::unordered_set<std::uint8_t> local_buffer_indices_;
    std::unordered_set<std::uint8_t> remote_buffer_indices_;
    bool dynamic_cb_ = false;
    std::uint32_t max_size_ = 0;
    std::uint32_t buffer_size_ = 0;
};

}  // namespace tt::tt_metal
