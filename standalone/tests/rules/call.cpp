#include "call.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ttnn/operations/creation/creation.hpp"

namespace rules {

namespace {

constexpr std::size_t kL1SmallBytes = 32768;
constexpr std::uint32_t kTile = 32;

constexpr std::array<std::pair<const char*, DataType>, 8> kDataTypes{{
    {"bf16", DataType::BFLOAT16},
    {"f32", DataType::FLOAT32},
    {"bf8", DataType::BFLOAT8_B},
    {"bf4", DataType::BFLOAT4_B},
    {"u32", DataType::UINT32},
    {"i32", DataType::INT32},
    {"u16", DataType::UINT16},
    {"u8", DataType::UINT8},
}};

std::uint32_t round_up(std::uint32_t value, std::uint32_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

MemoryConfig height_sharded(const Shape& shape, Layout layout) {
    const std::uint32_t unit = layout == Layout::TILE ? kTile : 1;
    const std::uint32_t width = round_up(shape[-1], unit);
    std::uint32_t height = 1;
    for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(shape.rank()); ++i) {
        const bool is_second_last = i + 2 == static_cast<std::int32_t>(shape.rank());
        height *= is_second_last ? round_up(shape[i], unit) : shape[i];
    }
    const std::uint32_t cores = height % kTile == 0 && height / kTile >= 2 ? 2 : 1;
    const tt::tt_metal::CoreRangeSet grid(tt::tt_metal::CoreRange({0, 0}, {cores - 1, 0}));
    return MemoryConfig(tt::tt_metal::TensorMemoryLayout::HEIGHT_SHARDED,
                        tt::tt_metal::BufferType::L1,
                        tt::tt_metal::ShardSpec(grid, {height / cores, width},
                                                tt::tt_metal::ShardOrientation::ROW_MAJOR));
}

std::string memory_name(const Tensor& tensor) {
    using tt::tt_metal::TensorMemoryLayout;
    if (tensor.storage_type() == tt::tt_metal::StorageType::HOST) {
        return "host";
    }
    if (!tensor.is_allocated()) {
        return "dealloc";
    }
    const std::string place = tensor.memory_config().is_dram() ? "dram" : "l1";
    switch (tensor.memory_config().memory_layout()) {
        case TensorMemoryLayout::INTERLEAVED:
            return place;
        case TensorMemoryLayout::HEIGHT_SHARDED:
            return place + ":hs";
        case TensorMemoryLayout::WIDTH_SHARDED:
            return place + ":ws";
        case TensorMemoryLayout::BLOCK_SHARDED:
            return place + ":bs";
        default:
            return place + ":nd";
    }
}

}  // namespace

DataType dtype_of(const std::string& name) {
    for (const auto& [known, dtype] : kDataTypes) {
        if (name == known) {
            return dtype;
        }
    }
    throw Unmapped{"unknown data type " + name};
}

std::string name_of(DataType dtype) {
    for (const auto& [name, known] : kDataTypes) {
        if (dtype == known) {
            return name;
        }
    }
    return "invalid";
}

Layout layout_of(const std::string& name) { return name == "T" ? Layout::TILE : Layout::ROW_MAJOR; }

Shape shape_of(const std::string& text) {
    ttnn::SmallVector<std::uint32_t> sizes;
    if (text != "scalar()") {
        for (const std::string& size : split(text, 'x')) {
            sizes.push_back(static_cast<std::uint32_t>(std::stoul(size)));
        }
    }
    return Shape(std::move(sizes));
}

std::string name_of(const Shape& shape) {
    if (shape.rank() == 0) {
        return "scalar()";
    }
    std::string text;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        text += (i > 0 ? "x" : "") + std::to_string(shape[static_cast<std::int32_t>(i)]);
    }
    return text;
}

MemoryConfig memory_of(const std::string& storage, const Shape& shape, Layout layout) {
    if (storage == "hs") {
        return height_sharded(shape, layout);
    }
    return storage == "l1" || storage == "L1" ? ttnn::L1_MEMORY_CONFIG : ttnn::DRAM_MEMORY_CONFIG;
}

std::vector<std::int64_t> numbers_of(const std::string& text) {
    std::vector<std::int64_t> numbers;
    std::size_t i = 0;
    while (i < text.size()) {
        const std::size_t start = text.find_first_of("-0123456789", i);
        if (start == std::string::npos) {
            break;
        }
        std::size_t length = 0;
        numbers.push_back(std::stoll(text.substr(start), &length));
        i = start + length;
    }
    return numbers;
}

ttnn::MeshDevice* device() {
    static const auto opened = ttnn::open_mesh_device(0, kL1SmallBytes);
    return opened.get();
}

ttnn::MeshDevice* device_without_l1_small() {
    static const auto opened = ttnn::open_mesh_device(0, 0);
    return opened.get();
}

Tensor make_tensor(const Input& input, ttnn::MeshDevice* device) {
    const Shape shape = shape_of(input.shape);
    const Layout layout = layout_of(input.layout);
    if (input.storage == "host") {
        return ttnn::zeros(shape, dtype_of(input.dtype), layout);
    }
    const DataType dtype = dtype_of(input.dtype);
    const MemoryConfig memory_config = memory_of(input.storage, shape, layout);
    // Zeros are valid indices. Block floats in rows can be had without values only.
    if (layout == Layout::ROW_MAJOR && tt::tt_metal::is_block_float(dtype)) {
        return ttnn::empty(shape, dtype, layout, device, memory_config);
    }
    return ttnn::zeros(shape, dtype, layout, *device, memory_config);
}

Results::Results(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
        add(tensor);
    }
}

void Results::add(const Tensor& tensor) {
    append({name_of(tensor.dtype()), tensor.layout() == Layout::TILE ? "T" : "R",
            name_of(tensor.logical_shape()), memory_name(tensor)});
}

void Results::add(const std::string& type, const std::string& text) {
    append({type, "", text, ""});
}

void Results::append(const Result& result) {
    const std::string separator = first_ ? "" : ";";
    first_ = false;
    joined_.dtype += separator + result.dtype;
    joined_.layout += separator + result.layout;
    joined_.shape += separator + result.shape;
    joined_.memory += separator + result.memory;
}

Tensor Call::input(std::size_t i) {
    if (row_.variant == kWideRows) {
        i = 0;
    }
    if (i >= inputs()) {
        throw Unmapped{"the row names fewer inputs than the call takes"};
    }
    inputs_.resize(inputs());
    if (!inputs_[i]) {
        inputs_[i] = make_tensor(row_.inputs[i], device_);
    }
    return *inputs_[i];
}

std::optional<Tensor> Call::optional_input(std::size_t i) {
    return i < inputs() ? std::optional(input(i)) : std::nullopt;
}

std::vector<Tensor> Call::all_inputs() {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs(); ++i) {
        tensors.push_back(input(i));
    }
    return tensors;
}

bool Call::take(const std::string& words) {
    const auto is_end = [this](std::size_t i) {
        return i >= rest_.size() || rest_[i] == ' ' || rest_[i] == ',';
    };
    for (std::size_t at = rest_.find(words); at != std::string::npos;
         at = rest_.find(words, at + 1)) {
        if ((at == 0 || is_end(at - 1)) && is_end(at + words.size())) {
            rest_.erase(at, words.size());
            return true;
        }
    }
    return false;
}

std::optional<std::string> Call::value(const std::string& key) {
    const std::string start = key + "=";
    std::size_t at = rest_.find(start);
    while (at != std::string::npos && at > 0 && rest_[at - 1] != ' ' && rest_[at - 1] != ',') {
        at = rest_.find(start, at + 1);
    }
    if (at == std::string::npos) {
        return std::nullopt;
    }
    const std::size_t begin = at + start.size();
    std::size_t end = begin;
    int depth = 0;
    while (end < rest_.size() && (depth > 0 || (rest_[end] != ' ' && rest_[end] != ','))) {
        depth += rest_[end] == '(' || rest_[end] == '[' ? 1 : 0;
        depth -= rest_[end] == ')' || rest_[end] == ']' ? 1 : 0;
        ++end;
    }
    std::string found = rest_.substr(begin, end - begin);
    rest_.erase(at, end - at);
    return found;
}

std::optional<std::int64_t> Call::integer(const std::string& key) {
    const auto text = value(key);
    return text && *text != "None" ? std::optional(std::stoll(*text)) : std::nullopt;
}

std::optional<float> Call::number(const std::string& key) {
    const auto text = value(key);
    return text && *text != "None" ? std::optional(std::stof(*text)) : std::nullopt;
}

bool Call::flag(const std::string& key, bool otherwise) {
    const auto text = value(key);
    return text ? *text == "True" : otherwise;
}

std::string Call::rest() { return std::exchange(rest_, ""); }

std::optional<DataType> Call::dtype(const std::string& key) {
    const auto name = value(key);
    return name ? std::optional(dtype_of(*name)) : std::nullopt;
}

std::optional<Layout> Call::layout(const std::string& key) {
    const auto name = value(key);
    return name && *name != "None" ? std::optional(layout_of(*name)) : std::nullopt;
}

std::optional<MemoryConfig> Call::memory_config() {
    const auto name = value("memory_config");
    if (!name) {
        return std::nullopt;
    }
    return memory_of(*name, input(0).logical_shape(), input(0).layout());
}

std::string Call::unread() const {
    const std::size_t begin = rest_.find_first_not_of(" ,:");
    return begin == std::string::npos ? "" : rest_.substr(begin);
}

}  // namespace rules
