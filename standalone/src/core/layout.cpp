#include <utility>

#include "core/describe.hpp"
#include "ttnn/tensor/tensor_spec.hpp"

namespace tt::tt_metal {

namespace {

std::uint32_t round_up(std::uint32_t value, std::uint32_t multiple) {
    return multiple <= 1 ? value : (value + multiple - 1) / multiple * multiple;
}

}  // namespace

bool is_floating_point(DataType dtype) {
    return dtype == DataType::BFLOAT16 || dtype == DataType::FLOAT32 || is_block_float(dtype);
}
bool is_block_float(DataType dtype) {
    return dtype == DataType::BFLOAT8_B || dtype == DataType::BFLOAT4_B;
}
tt::DataFormat datatype_to_dataformat_converter(DataType datatype) {
    switch (datatype) {
        case DataType::BFLOAT16:
            return tt::DataFormat::Float16_b;
        case DataType::FLOAT32:
            return tt::DataFormat::Float32;
        case DataType::UINT32:
            return tt::DataFormat::UInt32;
        case DataType::BFLOAT8_B:
            return tt::DataFormat::Bfp8_b;
        case DataType::BFLOAT4_B:
            return tt::DataFormat::Bfp4_b;
        case DataType::UINT8:
            return tt::DataFormat::UInt8;
        case DataType::UINT16:
            return tt::DataFormat::UInt16;
        case DataType::INT32:
            return tt::DataFormat::Int32;
        case DataType::INVALID:
            break;
    }
    TT_THROW("Unsupported DataType: {}", datatype);
}

Tile::Tile(std::array<std::uint32_t, 2> shape, bool transpose_tile)
    : tile_shape(shape),
      face_shape{std::min(shape[0], constants::FACE_HEIGHT),
                 std::min(shape[1], constants::FACE_WIDTH)},
      tile_hw(shape[0] * shape[1]),
      face_hw(face_shape[0] * face_shape[1]),
      num_faces(tile_hw / face_hw),
      transpose_within_face(transpose_tile),
      transpose_of_faces(transpose_tile) {
    const bool height_is_valid =
        shape[0] == 32 || (shape[0] <= 16 && (shape[0] & (shape[0] - 1)) == 0);
    TT_FATAL(shape[0] > 0 && height_is_valid && (shape[1] == 32 || shape[1] == 16),
             "Tile size is not valid for our hardware: {}x{}", shape[0], shape[1]);
}
std::uint32_t Tile::get_tile_size(const DataFormat& format) const {
    const std::uint32_t exponents = face_shape[0] * num_faces;
    switch (format) {
        case DataFormat::Bfp2:
        case DataFormat::Bfp2_b:
            return tile_hw / 4 + exponents;
        case DataFormat::Bfp4:
        case DataFormat::Bfp4_b:
            return tile_hw / 2 + exponents;
        case DataFormat::Bfp8:
        case DataFormat::Bfp8_b:
            return tile_hw + exponents;
        case DataFormat::Tf32:
        case DataFormat::MxFp4:
        case DataFormat::Invalid:
            TT_THROW("Invalid data format {}", static_cast<int>(format));
        default:
            return tile_hw * datum_size(format);
    }
}
bool Tile::operator==(const Tile& other) const {
    return tile_shape == other.tile_shape && face_shape == other.face_shape;
}

MemoryConfig::MemoryConfig(TensorMemoryLayout memory_layout, BufferType buffer_type,
                           std::optional<ShardSpec> shard_spec)
    : memory_layout_(memory_layout),
      buffer_type_(buffer_type),
      shard_spec_(std::move(shard_spec)) {}
MemoryConfig::MemoryConfig(BufferType buffer_type, std::optional<NdShardSpec> nd_shard_spec)
    : memory_layout_(nd_shard_spec ? TensorMemoryLayout::ND_SHARDED
                                   : TensorMemoryLayout::INTERLEAVED),
      buffer_type_(buffer_type),
      nd_shard_spec_(std::move(nd_shard_spec)),
      created_with_nd_shard_spec_(nd_shard_spec_.has_value()) {}
bool MemoryConfig::is_sharded() const { return memory_layout_ != TensorMemoryLayout::INTERLEAVED; }
bool MemoryConfig::is_l1() const {
    return buffer_type_ == BufferType::L1 || buffer_type_ == BufferType::L1_SMALL;
}
bool MemoryConfig::is_dram() const { return buffer_type_ == BufferType::DRAM; }
bool operator==(const MemoryConfig& a, const MemoryConfig& b) {
    return a.buffer_type() == b.buffer_type() && a.memory_layout() == b.memory_layout() &&
           a.shard_spec() == b.shard_spec() && a.nd_shard_spec() == b.nd_shard_spec();
}
bool operator!=(const MemoryConfig& a, const MemoryConfig& b) { return !(a == b); }

RowMajorPageConfig::RowMajorPageConfig(const Tile& tile) : tile_(tile) {}
const Tile& RowMajorPageConfig::get_tile() const { return tile_; }
TilePageConfig::TilePageConfig(const Tile& tile) : tile_(tile) {}
const Tile& TilePageConfig::get_tile() const { return tile_; }

PageConfig::PageConfig(const Config& config) : config_(config) {}
PageConfig::PageConfig(Layout layout) : PageConfig(layout, std::nullopt) {}
PageConfig::PageConfig(Layout layout, const std::optional<Tile>& tile) {
    TT_FATAL(layout != Layout::INVALID, "A tensor's layout is ROW_MAJOR or TILE");
    const Tile shape = tile.value_or(Tile());
    if (layout == Layout::TILE) {
        config_ = TilePageConfig(shape);
    } else {
        config_ = RowMajorPageConfig(shape);
    }
}
Tile PageConfig::get_tile() const {
    return std::visit([](const auto& config) { return config.get_tile(); }, config_);
}
Layout PageConfig::get_layout() const {
    return std::holds_alternative<TilePageConfig>(config_) ? Layout::TILE : Layout::ROW_MAJOR;
}

TensorLayout::TensorLayout(DataType dtype, const PageConfig& page_config,
                           const MemoryConfig& memory_config, const Alignment& alignment)
    : dtype_(dtype),
      page_config_(page_config),
      memory_config_(memory_config),
      alignment_(alignment) {
    initialize_alignment();
}

void TensorLayout::initialize_alignment() {
    if (!alignment_.empty()) {
        return;
    }
    if (get_layout() == Layout::TILE) {
        const Tile tile = get_tile();
        alignment_ = Alignment({tile.get_height(), tile.get_width()});
    } else if (memory_config_.shard_spec()) {
        alignment_ = Alignment({memory_config_.shard_spec()->shape[1]});
    } else {
        alignment_ = Alignment({1U});
    }
}

Shape TensorLayout::compute_padded_shape(const Shape& shape) const {
    const std::size_t rank = std::max(shape.rank(), alignment_.size());
    ttsl::SmallVector<std::uint32_t> padded(rank, 1);
    for (std::size_t i = 1; i <= rank; ++i) {
        const std::uint32_t size =
            i <= shape.rank() ? shape.cend()[-static_cast<std::ptrdiff_t>(i)] : 1;
        const std::uint32_t multiple =
            i <= alignment_.size() ? alignment_[-static_cast<std::int32_t>(i)] : 1;
        padded[rank - i] = round_up(size, multiple);
    }
    return Shape(std::move(padded));
}

Shape2D TensorLayout::compute_logical_2d_shape(const Shape& shape) const {
    const std::size_t width = shape[-1];
    std::size_t height = 1;
    for (std::size_t i = 0; i + 1 < shape.rank(); ++i) {
        height *= shape[static_cast<std::int32_t>(i)];
    }
    return {height, width};
}

Shape2D TensorLayout::compute_physical_shape(const Shape& shape) const {
    return compute_logical_2d_shape(compute_padded_shape(shape));
}

TensorSpec::TensorSpec(Shape logical_shape, TensorLayout tensor_layout)
    : logical_shape_(std::move(logical_shape)),
      tensor_layout_(std::move(tensor_layout)),
      cached_padded_shape_(tensor_layout_.compute_padded_shape(logical_shape_)),
      cached_logical_2d_shape_(tensor_layout_.compute_logical_2d_shape(logical_shape_)),
      cached_physical_shape_(tensor_layout_.compute_physical_shape(logical_shape_)) {}

TensorSpec TensorSpec::with_memory_config(MemoryConfig memory_config) const {
    return TensorSpec(logical_shape_,
                      TensorLayout(data_type(), page_config(), std::move(memory_config)));
}

std::string describe(DataType dtype) {
    static constexpr const char* kNames[] = {"BFLOAT16",  "FLOAT32", "UINT32", "BFLOAT8_B",
                                             "BFLOAT4_B", "UINT8",   "UINT16", "INT32"};
    const auto index = static_cast<std::size_t>(dtype);
    return std::string("DataType::") + (index < std::size(kNames) ? kNames[index] : "INVALID");
}
std::string describe(Layout layout) {
    return layout == Layout::TILE        ? "Layout::TILE"
           : layout == Layout::ROW_MAJOR ? "Layout::ROW_MAJOR"
                                         : "Layout::INVALID";
}
std::string describe(StorageType storage) {
    return storage == StorageType::HOST ? "StorageType::HOST" : "StorageType::DEVICE";
}
std::string describe(BufferType buffer_type) {
    static constexpr const char* kNames[] = {"DRAM", "L1", "SYSTEM_MEMORY", "L1_SMALL", "TRACE"};
    return std::string("BufferType::") + kNames[static_cast<std::size_t>(buffer_type)];
}
std::string describe(TensorMemoryLayout memory_layout) {
    static constexpr const char* kNames[] = {
        "INTERLEAVED", "", "HEIGHT_SHARDED", "WIDTH_SHARDED", "BLOCK_SHARDED", "ND_SHARDED"};
    return std::string("TensorMemoryLayout::") + kNames[static_cast<std::size_t>(memory_layout)];
}
std::string describe(const Shape& shape) {
    std::string text = "Shape([";
    for (std::size_t i = 0; i < shape.rank(); ++i) {
        text += (i > 0 ? ", " : "") + std::to_string(shape[static_cast<std::int32_t>(i)]);
    }
    return text + "])";
}
std::string describe(const MemoryConfig& memory_config) {
    return "MemoryConfig(" + describe(memory_config.memory_layout()) + ", " +
           describe(memory_config.buffer_type()) + ")";
}

}  // namespace tt::tt_metal
