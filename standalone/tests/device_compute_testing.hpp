#pragma once

// Runs compute kernels on one core of the emulated device. The tiles of their circular buffers are
// in L1 buffers, which the test writes before and reads after the run.

#include <map>
#include <memory>

#include "compute_testing.hpp"
#include "device/compute/tile_format.hpp"
#include "kernels/compute_cases.hpp"
#include "tt-metalium/circular_buffer_config.hpp"
#include "tt-metalium/distributed.hpp"
#include "tt-metalium/host_api.hpp"
#include "ttcodegen/device/report.hpp"

namespace compute_testing {

using tt::DataFormat;
using ttcodegen::device::compute::Tile;
using Tiles = std::vector<Tile>;

/// The folder of the kernels of the tests; TESTS_FOLDER is set by the build.
inline std::string kernel_file(const std::string& name) {
    return std::string(TESTS_FOLDER) + "/kernels/" + name;
}

inline Tile float_tile(const std::vector<float>& values) {
    Tile tile;
    std::copy(values.begin(), values.end(), tile.floats());
    return tile;
}

/// A circular buffer of one core with its tiles.
class TileBuffer {
  public:
    TileBuffer(std::uint32_t index, DataFormat format, const Tiles& tiles, bool is_input)
        : index_(index), format_(format), tiles_(tiles.size()), is_input_(is_input) {
        using namespace tt::tt_metal;
        using namespace ttcodegen::device::compute;
        const auto bytes = static_cast<std::uint32_t>(tile_bytes(format));
        const auto height = static_cast<std::uint32_t>(tiles.size() * 32);
        const ShardSpecBuffer shards(CoreRangeSet(CoreRange({0, 0}, {0, 0})), {height, 32},
                                     ShardOrientation::ROW_MAJOR, {32, 32},
                                     {static_cast<std::uint32_t>(tiles.size()), 1});
        distributed::DeviceLocalBufferConfig local;
        local.page_size = bytes;
        local.buffer_type = BufferType::L1;
        local.sharding_args = BufferShardingArgs(shards, TensorMemoryLayout::HEIGHT_SHARDED);
        memory_ = distributed::MeshBuffer::create(
            distributed::ReplicatedBufferConfig{bytes * tiles.size()}, local, device());
        write(tiles);
    }

    void write(const Tiles& tiles) {
        using namespace ttcodegen::device::compute;
        std::vector<std::byte> bytes(tile_bytes(format_) * tiles.size());
        for (std::size_t i = 0; i < tiles.size(); ++i) {
            pack_words(tiles[i].words.data(), format_, bytes.data() + i * tile_bytes(format_));
        }
        tt::tt_metal::distributed::EnqueueWriteMeshBuffer(device()->mesh_command_queue(), memory_,
                                                          bytes, true);
    }

    std::vector<std::byte> bytes() {
        std::vector<std::byte> bytes;
        tt::tt_metal::distributed::EnqueueReadMeshBuffer(device()->mesh_command_queue(), bytes,
                                                         memory_, true);
        return bytes;
    }

    Tiles read() {
        using namespace ttcodegen::device::compute;
        const std::vector<std::byte> stored = bytes();
        Tiles tiles(tiles_);
        for (std::size_t i = 0; i < tiles_; ++i) {
            unpack_words(stored.data() + i * tile_bytes(format_), format_, SourcePrecision::Float32,
                         tiles[i].words.data());
        }
        return tiles;
    }

    void add_to(tt::tt_metal::Program& program, const tt::tt_metal::CoreCoord& core) const {
        using namespace tt::tt_metal;
        const auto bytes =
            static_cast<std::uint32_t>(ttcodegen::device::compute::tile_bytes(format_));
        CircularBufferConfig config(bytes * static_cast<std::uint32_t>(tiles_),
                                    {{static_cast<std::uint8_t>(index_), format_}});
        config.set_page_size(static_cast<std::uint8_t>(index_), bytes);
        config.set_globally_allocated_address(*memory_->get_backing_buffer());
        CreateCircularBuffer(program, core, config);
    }

    std::uint32_t index() const { return index_; }
    std::size_t tiles() const { return tiles_; }
    bool is_input() const { return is_input_; }

  private:
    std::uint32_t index_;
    DataFormat format_;
    std::size_t tiles_;
    bool is_input_;
    std::shared_ptr<tt::tt_metal::distributed::MeshBuffer> memory_;
};

/// A reader kernel that pushes all inputs, which are in place.
inline const char* kReader = R"(
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    const uint32_t count = get_arg_val<uint32_t>(0);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t cb = get_arg_val<uint32_t>(1 + 2 * i);
        const uint32_t tiles = get_arg_val<uint32_t>(2 + 2 * i);
        cb_reserve_back(cb, tiles);
        cb_push_back(cb, tiles);
    }
}
)";

/// Runs a compute kernel with runtime arguments on core (0, 0).
inline ttcodegen::device::ProgramReport run_compute(std::vector<TileBuffer*> buffers,
                                                    const std::string& kernel,
                                                    const std::vector<std::uint32_t>& arguments,
                                                    const tt::tt_metal::ComputeConfig& config) {
    using namespace tt::tt_metal;
    const CoreCoord core(0, 0);
    Program program = CreateProgram();
    std::vector<std::uint32_t> inputs{0};
    for (const TileBuffer* buffer : buffers) {
        buffer->add_to(program, core);
        if (buffer->is_input()) {
            ++inputs[0];
            inputs.push_back(buffer->index());
            inputs.push_back(static_cast<std::uint32_t>(buffer->tiles()));
        }
    }
    CircularBufferConfig own(2 * 2048, {{kCbOwn, DataFormat::Float16_b}});
    CreateCircularBuffer(program, core, own.set_page_size(kCbOwn, 2048));
    const KernelHandle reader =
        CreateKernelFromString(program, kReader, core, ReaderDataMovementConfig{});
    SetRuntimeArgs(program, reader, core, inputs);
    const KernelHandle compute = CreateKernel(program, kernel, core, config);
    SetRuntimeArgs(program, compute, core, arguments);
    distributed::MeshWorkload workload;
    const distributed::MeshCoordinateRange range(device()->shape());
    workload.add_program(range, std::move(program));
    distributed::EnqueueMeshWorkload(device()->mesh_command_queue(), workload, true);
    return ttcodegen::device::program_report(workload.get_programs().at(range));
}

/// The circular buffers that compute_cases.hpp names, with random tiles.
struct CaseBuffers {
    Tiles a{drawn(1), drawn(2), drawn(3), drawn(4)};
    Tiles b{drawn(5), drawn(6), drawn(7), drawn(8)};
    Tiles scaler{scaler_tile(0.5F)};
    Tiles floats{drawn_floats(9), drawn_floats(10)};
    Tiles integers{drawn_integers(11), drawn_integers(12)};
    Tiles blocks{drawn(13), drawn(14)};

    TileBuffer in_a{kCbA, DataFormat::Float16_b, a, true};
    TileBuffer in_b{kCbB, DataFormat::Float16_b, b, true};
    TileBuffer in_scaler{kCbScaler, DataFormat::Float16_b, scaler, true};
    TileBuffer in_floats{kCbFloat, DataFormat::Float32, floats, true};
    TileBuffer in_integers{kCbInteger, DataFormat::Int32, integers, true};
    TileBuffer in_blocks{kCbBlock, DataFormat::Bfp8_b, blocks, true};
    TileBuffer out{kCbOut, DataFormat::Float16_b, Tiles(4), false};
    TileBuffer out_floats{kCbOutFloat, DataFormat::Float32, Tiles(4), false};
    TileBuffer out_integers{kCbOutInteger, DataFormat::Int32, Tiles(4), false};
    TileBuffer out_blocks{kCbOutBlock, DataFormat::Bfp8_b, Tiles(4), false};

    std::vector<TileBuffer*> all() {
        return {&in_a,      &in_b, &in_scaler,  &in_floats,    &in_integers,
                &in_blocks, &out,  &out_floats, &out_integers, &out_blocks};
    }

    static Tile drawn_floats(unsigned seed) { return float_tile(draw(1024, -2.0F, 2.0F, seed)); }
    /// Random values that bfloat16 represents exactly.
    static Tile drawn(unsigned seed) {
        Tile tile = drawn_floats(seed);
        ttcodegen::device::compute::round_to_bfloat16(tile.floats(), 1024);
        return tile;
    }
    static Tile drawn_integers(unsigned seed) {
        Tile tile;
        std::mt19937 generator(seed);
        std::uniform_int_distribution<std::int32_t> distribution(-1000000, 1000000);
        for (std::int32_t& value : std::span(tile.integers(), 1024)) {
            value = distribution(generator);
        }
        return tile;
    }
    /// A scaler tile as kernels fill it: a value in the first row of each face.
    static Tile scaler_tile(float value) {
        Tile tile{};
        for (std::size_t face = 0; face < 4; ++face) {
            std::fill_n(tile.floats() + face * 256, 16, value);
        }
        return tile;
    }
};

}  // namespace compute_testing
