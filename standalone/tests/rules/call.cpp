#include "call.hpp"

#include <algorithm>
#include <array>
#include <regex>
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

namespace {

using tt::tt_metal::CoreCoord;
using tt::tt_metal::CoreRange;
using tt::tt_metal::CoreRangeSet;
using tt::tt_metal::ShardOrientation;
using tt::tt_metal::TensorMemoryLayout;

constexpr std::size_t kGridColumns = 8;
const std::map<std::string, TensorMemoryLayout> kSchemes{
    {"hs", TensorMemoryLayout::HEIGHT_SHARDED},
    {"ws", TensorMemoryLayout::WIDTH_SHARDED},
    {"bs", TensorMemoryLayout::BLOCK_SHARDED},
};

/// The first cores of the grid, row by row.
CoreRangeSet first_cores(std::size_t count) {
    std::vector<CoreRange> ranges;
    if (const std::size_t rows = count / kGridColumns; rows > 0) {
        ranges.emplace_back(CoreCoord(0, 0), CoreCoord(kGridColumns - 1, rows - 1));
    }
    if (const std::size_t rest = count % kGridColumns; rest > 0) {
        ranges.emplace_back(CoreCoord(0, count / kGridColumns),
                            CoreCoord(rest - 1, count / kGridColumns));
    }
    return CoreRangeSet(std::move(ranges));
}

}  // namespace

MemoryConfig placement_of(const std::string& text) {
    if (text == "dram") {
        return ttnn::DRAM_MEMORY_CONFIG;
    }
    if (text == "l1") {
        return ttnn::L1_MEMORY_CONFIG;
    }
    static const std::regex form(
        R"((d?)(hs|ws|bs)(?:(?:n(\d+)|(\d+)x(\d+))(?:@(\d+)-(\d+))?\[(\d+)x(\d+)\](c?))?)");
    std::smatch found;
    if (!std::regex_match(text, found, form)) {
        throw Unmapped{"no memory is called " + text};
    }
    const auto number = [&found](std::size_t group) -> std::uint32_t {
        return found[group].matched ? static_cast<std::uint32_t>(std::stoul(found[group])) : 0;
    };
    const auto buffer_type =
        found[1].length() > 0 ? tt::tt_metal::BufferType::DRAM : tt::tt_metal::BufferType::L1;
    const TensorMemoryLayout scheme = kSchemes.at(found[2].str());
    if (!found[8].matched) {
        return MemoryConfig(scheme, buffer_type);
    }
    const CoreCoord origin(number(6), number(7));
    const CoreRangeSet cores =
        found[3].matched
            ? first_cores(number(3))
            : CoreRangeSet(CoreRange(origin, {origin.x + number(4) - 1, origin.y + number(5) - 1}));
    const auto orientation =
        found[10].length() > 0 ? ShardOrientation::COL_MAJOR : ShardOrientation::ROW_MAJOR;
    return MemoryConfig(scheme, buffer_type,
                        tt::tt_metal::ShardSpec(cores, {number(8), number(9)}, orientation));
}

std::string placement_name(const MemoryConfig& memory_config) {
    if (!memory_config.is_sharded()) {
        return memory_config.is_dram() ? "dram" : "l1";
    }
    std::string text = memory_config.is_dram() ? "d" : "";
    for (const auto& [name, scheme] : kSchemes) {
        text += scheme == memory_config.memory_layout() ? name : "";
    }
    if (!memory_config.shard_spec()) {
        return text;
    }
    const tt::tt_metal::ShardSpec& spec = *memory_config.shard_spec();
    const CoreRange box = spec.grid.bounding_box();
    if (box.size() == spec.grid.num_cores()) {
        text += std::to_string(box.grid_size().x) + "x" + std::to_string(box.grid_size().y);
        if (box.start_coord.x > 0 || box.start_coord.y > 0) {
            text +=
                "@" + std::to_string(box.start_coord.x) + "-" + std::to_string(box.start_coord.y);
        }
    } else {
        text += "n" + std::to_string(spec.grid.num_cores());
    }
    text += "[" + std::to_string(spec.shape[0]) + "x" + std::to_string(spec.shape[1]) + "]";
    return text + (spec.orientation == ShardOrientation::COL_MAJOR ? "c" : "");
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
    const MemoryConfig memory_config = input.storage == "hs" || input.storage == "L1"
                                           ? memory_of(input.storage, shape, layout)
                                           : placement_of(input.storage);
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
    const Shape& shape = tensor.logical_shape();
    const bool tiles = tensor.layout() == Layout::TILE;
    Part part{{name_of(tensor.dtype()), tiles ? "T" : "R", name_of(shape), memory_name(tensor)},
              name_of(shape),
              memory_name(tensor)};
    if (part.placement != "host" && part.placement != "dealloc") {
        part.placement = placement_name(tensor.memory_config());
    }
    const Shape padded = tensor.padded_shape();
    const tt::tt_metal::TensorSpec plain(
        shape, tt::tt_metal::TensorLayout(tensor.dtype(), tt::tt_metal::PageConfig(tensor.layout()),
                                          MemoryConfig{}));
    if (padded != plain.padded_shape()) {
        part.shape += "(p" + name_of(padded) + ")";
    }
    parts_.push_back(part);
}

void Results::add(const std::string& type, const std::string& text) {
    parts_.push_back({{type, "", text, ""}, text, ""});
}

Result Results::joined(bool tells_shards) const {
    const auto column = [&](bool once, const auto& word_of) {
        std::string text;
        bool alike = once;
        for (const Part& part : parts_) {
            text += (&part == parts_.data() ? "" : ";") + word_of(part);
            alike = alike && word_of(part) == word_of(parts_.front());
        }
        return alike && !parts_.empty() ? word_of(parts_.front()) : text;
    };
    return {
        column(tells_shards, [](const Part& part) { return part.result.dtype; }),
        column(tells_shards, [](const Part& part) { return part.result.layout; }),
        column(false,
               [&](const Part& part) { return tells_shards ? part.shape : part.result.shape; }) +
            additions_,
        column(tells_shards, [&](const Part& part) {
            return tells_shards ? part.placement : part.result.memory;
        })};
}

Tensor Call::input(std::size_t i) {
    if (row_.variant == kWideRows) {
        i = 0;
    }
    // In rows with shards, a call whose columns have one value has as many such inputs as it
    // takes.
    if (row_.tells_shards && inputs() == 1 && i > 0) {
        inputs_.resize(std::max(inputs_.size(), i + 1));
        if (!inputs_[i]) {
            inputs_[i] = make_tensor(row_.inputs[0], device_);
        }
        return *inputs_[i];
    }
    if (i >= inputs()) {
        throw Unmapped{"the row names fewer inputs than the call takes"};
    }
    inputs_.resize(std::max(inputs_.size(), inputs()));
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
    if (row_.tells_shards) {
        const auto placement = value("mc");
        return placement ? std::optional(placement_of(*placement)) : std::nullopt;
    }
    const auto name = value("memory_config");
    if (!name) {
        return std::nullopt;
    }
    return memory_of(*name, input(0).logical_shape(), input(0).layout());
}

std::optional<Tensor> Call::given_output() {
    return value("out") ? std::optional(input(inputs() - 1)) : std::nullopt;
}

std::optional<Tensor> Call::take_resident() {
    if (!row_.variant.starts_with("with resident")) {
        return std::nullopt;
    }
    rest();
    return input(2);
}

std::string Call::unread() const {
    const std::size_t begin = rest_.find_first_not_of(" ,:");
    return begin == std::string::npos ? "" : rest_.substr(begin);
}

}  // namespace rules
