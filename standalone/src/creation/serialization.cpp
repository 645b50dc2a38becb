#include "ttnn/tensor/serialization.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/chips.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

namespace {

// The signature, numbers of 64 bits that say what the tensor is, and the elements of each part as
// they are stored.

constexpr std::array<char, 16> kSignature = {'t', 't', 'c', 'o', 'd', 'e', 'g', 'e',
                                             'n', ' ', 't', 'e', 'n', 's', 'o', 'r'};
/// More dimensions, ranges of cores or chips no tensor has: the file is damaged.
constexpr std::uint64_t kMost = 1U << 20U;

class Writer {
  public:
    explicit Writer(const std::string& name) : name_(name), file_(name, std::ios::binary) {
        TT_FATAL(file_.is_open(), "Cannot open \"{}\" for writing: {}", name, std::strerror(errno));
        file_.write(kSignature.data(), kSignature.size());
    }

    template <typename T>
    void number(T value) {
        const auto wide = static_cast<std::uint64_t>(value);
        file_.write(reinterpret_cast<const char*>(&wide), sizeof wide);
    }

    void bytes(const Buffer& buffer) {
        file_.write(reinterpret_cast<const char*>(buffer.data()),
                    static_cast<std::streamsize>(buffer.bytes()));
    }

    void finish() {
        file_.flush();
        TT_FATAL(file_.good(), "Failed to write \"{}\": {}", name_, std::strerror(errno));
    }

  private:
    const std::string& name_;
    std::ofstream file_;
};

class Reader {
  public:
    explicit Reader(const std::string& name) : name_(name), file_(name, std::ios::binary) {
        TT_FATAL(file_.is_open(), "Cannot open \"{}\": {}", name, std::strerror(errno));
        std::array<char, kSignature.size()> signature{};
        file_.read(signature.data(), signature.size());
        TT_FATAL(signature == kSignature,
                 "\"{}\" is no tensor that the CPU backend wrote; it reads no files of the library",
                 name);
    }

    template <typename T = std::uint64_t>
    T number() {
        std::uint64_t wide = 0;
        file_.read(reinterpret_cast<char*>(&wide), sizeof wide);
        require();
        return static_cast<T>(wide);
    }

    std::uint64_t count() {
        const auto found = number();
        TT_FATAL(found <= kMost, "Tensor file \"{}\" is truncated or corrupt", name_);
        return found;
    }

    void bytes(Buffer& buffer) {
        file_.read(reinterpret_cast<char*>(buffer.data()),
                   static_cast<std::streamsize>(buffer.bytes()));
        require();
    }

  private:
    void require() const {
        TT_FATAL(file_.good(), "Tensor file \"{}\" is truncated or corrupt", name_);
    }

    const std::string& name_;
    std::ifstream file_;
};

void write(Writer& writer, const tt::tt_metal::CoreRangeSet& cores) {
    writer.number(cores.ranges().size());
    for (const auto& range : cores.ranges()) {
        for (const auto& corner : {range.start_coord, range.end_coord}) {
            writer.number(corner.x);
            writer.number(corner.y);
        }
    }
}

tt::tt_metal::CoreRangeSet read_cores(Reader& reader) {
    std::vector<tt::tt_metal::CoreRange> ranges;
    for (auto left = reader.count(); left > 0; --left) {
        std::array<std::size_t, 4> corners{};
        for (auto& each : corners) {
            each = reader.number<std::size_t>();
        }
        ranges.emplace_back(tt::tt_metal::CoreCoord(corners[0], corners[1]),
                            tt::tt_metal::CoreCoord(corners[2], corners[3]));
    }
    return tt::tt_metal::CoreRangeSet(ranges);
}

void write(Writer& writer, const MemoryConfig& config, const std::string& name) {
    TT_FATAL(!config.created_with_nd_shard_spec(),
             "\"{}\" cannot hold shards of more than two dimensions", name);
    writer.number(config.memory_layout());
    writer.number(config.buffer_type());
    writer.number(config.shard_spec().has_value());
    if (const auto& shards = config.shard_spec()) {
        write(writer, shards->grid);
        writer.number(shards->shape[0]);
        writer.number(shards->shape[1]);
        writer.number(shards->orientation);
    }
}

MemoryConfig read_memory_config(Reader& reader) {
    const auto memory_layout = reader.number<TensorMemoryLayout>();
    const auto buffer_type = reader.number<BufferType>();
    if (reader.number() == 0) {
        return MemoryConfig(memory_layout, buffer_type);
    }
    const auto cores = read_cores(reader);
    const auto height = reader.number<std::uint32_t>();
    const auto width = reader.number<std::uint32_t>();
    const auto orientation = reader.number<tt::tt_metal::ShardOrientation>();
    return MemoryConfig(memory_layout, buffer_type,
                        tt::tt_metal::ShardSpec(cores, {height, width}, orientation));
}

TensorSpec read_spec(Reader& reader) {
    const auto dtype = reader.number<DataType>();
    const auto layout = reader.number<Layout>();
    ttsl::SmallVector<std::uint32_t> sizes;
    for (auto left = reader.count(); left > 0; --left) {
        sizes.push_back(reader.number<std::uint32_t>());
    }
    return make_spec(Shape(sizes), dtype, layout, read_memory_config(reader));
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace tt::tt_metal {

using ttcodegen::cpu::Reader;
using ttcodegen::cpu::Writer;

void dump_tensor_flatbuffer(const std::string& file_name, const Tensor& tensor,
                            DumpTensorMode /*mode*/) {
    const Tensor host = tensor.cpu();
    std::vector<Tensor> parts = ttcodegen::cpu::gathered_parts(host);
    if (parts.empty()) {
        parts.push_back(host);
    }
    Writer writer(file_name);
    const TensorSpec& spec = tensor.tensor_spec();
    writer.number(spec.data_type());
    writer.number(spec.layout());
    const auto sizes = spec.logical_shape().view();
    writer.number(sizes.size());
    for (const auto size : sizes) {
        writer.number(size);
    }
    write(writer, spec.memory_config(), file_name);
    writer.number(parts.size());
    for (const Tensor& part : parts) {
        writer.bytes(ttcodegen::cpu::buffer_of(part));
    }
    writer.finish();
}

Tensor load_tensor_flatbuffer(const std::string& file_name, distributed::MeshDevice* device) {
    Reader reader(file_name);
    const TensorSpec spec = ttcodegen::cpu::read_spec(reader);
    std::vector<Tensor> parts;
    for (auto left = reader.count(); left > 0; --left) {
        parts.push_back(ttcodegen::cpu::allocate(spec, nullptr));
        reader.bytes(ttcodegen::cpu::buffer_of(parts.back()));
    }
    TT_FATAL(!parts.empty(), "Tensor file \"{}\" is truncated or corrupt", file_name);
    const Tensor host = parts.size() == 1 ? parts.front() : ttcodegen::cpu::joined(parts, nullptr);
    return device == nullptr ? host : host.to_device(device, spec.memory_config());
}

}  // namespace tt::tt_metal
