#include "tt-metalium/circular_buffer_config.hpp"

#include "core/describe.hpp"
#include "device/architecture.hpp"
#include "device/program.hpp"
#include "tt-metalium/circular_buffer.hpp"

namespace tt::tt_metal {

namespace {

void check_index(std::uint8_t index) {
    const std::uint32_t count = ttcodegen::device::default_architecture().num_circular_buffers;
    TT_FATAL(index < count,
             "Buffer index ({}) exceeds max number of circular buffers per core ({})", index,
             count);
}

}  // namespace

CircularBufferConfig::CircularBufferConfig(
    std::uint32_t total_size, const std::map<std::uint8_t, tt::DataFormat>& data_format_spec)
    : total_size_(total_size) {
    set_config(data_format_spec);
}

CircularBufferConfig::CircularBufferConfig(std::uint32_t total_size) : total_size_(total_size) {}

CircularBufferConfig::CircularBufferConfig(
    std::uint32_t total_size, const std::map<std::uint8_t, tt::DataFormat>& data_format_spec,
    const Buffer& buffer)
    : total_size_(total_size) {
    set_globally_allocated_address(buffer);
    set_config(data_format_spec);
}

void CircularBufferConfig::set_config(
    const std::map<std::uint8_t, tt::DataFormat>& data_format_spec) {
    for (const auto& [index, data_format] : data_format_spec) {
        check_index(index);
        data_formats_[index] = data_format;
        buffer_indices_.insert(index);
        local_buffer_indices_.insert(index);
    }
}

CircularBufferConfig& CircularBufferConfig::set_page_size(std::uint8_t buffer_index,
                                                          std::uint32_t page_size) {
    check_index(buffer_index);
    TT_FATAL(buffer_indices_.contains(buffer_index),
             "Illegal circular buffer index {}. Page size can only be specified for buffer indices "
             "configured during config creation",
             buffer_index);
    TT_FATAL(
        page_size != 0 && total_size_ % page_size == 0,
        "Failed allocation attempt on buffer index {}. Total circular buffer size {} B must be "
        "divisible by page size {} B",
        buffer_index, total_size_, page_size);
    page_sizes_[buffer_index] = page_size;
    return *this;
}

CircularBufferConfig& CircularBufferConfig::set_total_size(std::uint32_t total_size) {
    TT_FATAL(
        !dynamic_cb_ || total_size <= max_size_,
        "Cannot set circular buffer size to {}. This is larger than the associated dynamically "
        "allocated L1 buffer bank size of {} B",
        total_size, max_size_);
    total_size_ = total_size;
    return *this;
}

CircularBufferConfig& CircularBufferConfig::set_globally_allocated_address(const Buffer& buffer) {
    return set_globally_allocated_address_and_total_size(buffer, total_size_);
}

CircularBufferConfig& CircularBufferConfig::set_globally_allocated_address_and_total_size(
    const Buffer& buffer, std::uint32_t total_size) {
    TT_FATAL(buffer.is_l1(), "Only L1 buffers can have an associated circular buffer!");
    globally_allocated_address_ = buffer.address();
    dynamic_cb_ = true;
    max_size_ = static_cast<std::uint32_t>(buffer.aligned_size_per_bank());
    buffer_size_ = static_cast<std::uint32_t>(buffer.aligned_size());
    shadow_global_buffer = &buffer;
    return set_total_size(total_size);
}

CircularBufferConfig& CircularBufferConfig::set_tile_dims(std::uint8_t buffer_index,
                                                          const Tile& tile) {
    tiles_.at(buffer_index) = tile;
    return *this;
}

const std::array<std::optional<Tile>, NUM_CIRCULAR_BUFFERS>& CircularBufferConfig::tiles() const {
    return tiles_;
}
std::uint32_t CircularBufferConfig::total_size() const { return total_size_; }
std::optional<std::uint32_t> CircularBufferConfig::globally_allocated_address() const {
    return globally_allocated_address_;
}
const std::unordered_set<std::uint8_t>& CircularBufferConfig::buffer_indices() const {
    return buffer_indices_;
}
const std::unordered_set<std::uint8_t>& CircularBufferConfig::local_buffer_indices() const {
    return local_buffer_indices_;
}
const std::unordered_set<std::uint8_t>& CircularBufferConfig::remote_buffer_indices() const {
    return remote_buffer_indices_;
}
const std::array<std::optional<tt::DataFormat>, NUM_CIRCULAR_BUFFERS>&
CircularBufferConfig::data_formats() const {
    return data_formats_;
}
const std::array<std::optional<std::uint32_t>, NUM_CIRCULAR_BUFFERS>&
CircularBufferConfig::page_sizes() const {
    return page_sizes_;
}
bool CircularBufferConfig::dynamic_cb() const { return dynamic_cb_; }
std::uint32_t CircularBufferConfig::max_size() const { return max_size_; }
std::uint32_t CircularBufferConfig::buffer_size() const { return buffer_size_; }

CircularBufferConfig::Builder::Builder(CircularBufferConfig& parent, std::uint8_t buffer_index)
    : parent_(parent), buffer_index_(buffer_index) {
    check_index(buffer_index);
    parent_.buffer_indices_.insert(buffer_index);
}

CircularBufferConfig::Builder CircularBufferConfig::Builder::LocalBuilder(
    CircularBufferConfig& parent, std::uint8_t buffer_index) {
    Builder builder(parent, buffer_index);
    parent.local_buffer_indices_.insert(buffer_index);
    return builder;
}

const CircularBufferConfig::Builder& CircularBufferConfig::Builder::set_data_format(
    tt::DataFormat data_format) const {
    parent_.data_formats_[buffer_index_] = data_format;
    return *this;
}

const CircularBufferConfig::Builder& CircularBufferConfig::Builder::set_total_size(
    std::uint32_t total_size) const {
    parent_.set_total_size(total_size);
    return *this;
}

const CircularBufferConfig::Builder& CircularBufferConfig::Builder::set_page_size(
    std::uint32_t page_size) const {
    parent_.set_page_size(buffer_index_, page_size);
    return *this;
}

const CircularBufferConfig::Builder& CircularBufferConfig::Builder::set_tile_dims(
    const Tile& tile) const {
    parent_.set_tile_dims(buffer_index_, tile);
    return *this;
}

CircularBufferConfig::Builder CircularBufferConfig::index(std::uint8_t buffer_index) {
    return Builder::LocalBuilder(*this, buffer_index);
}

Tile CircularBufferImpl::tile(std::uint32_t index) const {
    return config.tiles()[index].value_or(Tile());
}

std::uint32_t CircularBufferImpl::tile_size(std::uint32_t index) const {
    return tile(index).get_tile_size(*config.data_formats()[index]);
}

std::uint32_t CircularBufferImpl::page_size(std::uint32_t index) const {
    const auto page_size = config.page_sizes()[index];
    TT_FATAL(page_size.has_value(), "Circular buffer {} has no page size: call set_page_size",
             index);
    TT_FATAL(config.total_size() != 0 && config.total_size() % *page_size == 0,
             "Total circular buffer size {} B must be divisible by page size {} B",
             config.total_size(), *page_size);
    return *page_size;
}

CircularBuffer::CircularBuffer(const CircularBufferImpl* impl) : impl_(impl) {}
CBHandle CircularBuffer::id() const { return impl_->id; }
const CoreRangeSet& CircularBuffer::core_ranges() const { return impl_->cores; }
std::size_t CircularBuffer::size() const { return impl_->config.total_size(); }
bool CircularBuffer::globally_allocated() const {
    return impl_->config.globally_allocated_address().has_value();
}
const std::unordered_set<std::uint8_t>& CircularBuffer::buffer_indices() const {
    return impl_->config.buffer_indices();
}
std::uint32_t CircularBuffer::page_size(std::uint32_t buffer_index) const {
    return impl_->page_size(buffer_index);
}
std::uint32_t CircularBuffer::num_pages(std::uint32_t buffer_index) const {
    return static_cast<std::uint32_t>(size()) / page_size(buffer_index);
}
DataFormat CircularBuffer::data_format(std::uint32_t buffer_index) const {
    return *impl_->config.data_formats().at(buffer_index);
}

}  // namespace tt::tt_metal
