// Compute kernels of ttnn, from the released wheel, on the emulated device: real kernels must pass
// all checks, and compute the right results.
//
// The environment variable TTNN_OPERATIONS names the wheel's folder ttnn/cpp/ttnn/operations; the
// test is skipped (status 77) without it. Nothing of the kernels is part of this project.

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "device_compute_testing.hpp"

using namespace compute_testing;
using namespace ttcodegen::device::compute;
using tt::tt_metal::ComputeConfig;

namespace {

constexpr std::size_t kTiles = 4;
constexpr std::uint32_t kInner = 4;

/// Element `i` of tile `tile` of the result; the operands are the tiles of buffers 0 and 1.
using Reference =
    std::function<double(const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i)>;

struct KernelRow {
    const char* path;
    std::vector<std::uint32_t> arguments;
    std::uint32_t output;
    Reference reference;
    std::map<std::string, std::string> defines = {};
    std::vector<std::uint32_t> compile_args = {};
    std::unordered_map<std::string, std::uint32_t> named = {};
    std::size_t results = kTiles;
    double tolerance = 0.02;
};

double element(const Tiles& tiles, std::size_t tile, std::size_t i) {
    return tiles[tile].floats()[i];
}

double softplus(double x) { return std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

Reference unary(double (*function)(double)) {
    return [function](const Tiles& a, const Tiles&, std::size_t tile, std::size_t i) {
        return function(element(a, tile, i));
    };
}

/// Row and column of element `i` of a tile.
std::pair<std::size_t, std::size_t> place(std::size_t i) {
    const std::size_t face = i / 256;
    return {face / 2 * 16 + i % 256 / 16, face % 2 * 16 + i % 16};
}

double product(const Tile& a, const Tile& b, std::size_t i) {
    const auto [row, column] = place(i);
    double sum = 0.0;
    for (std::size_t k = 0; k < 32; ++k) {
        sum += static_cast<double>(a.floats()[tile_offset(row, k)]) *
               b.floats()[tile_offset(k, column)];
    }
    return sum;
}

const std::unordered_map<std::string, std::uint32_t> kMatmulBuffers{
    {"cb_in0", 0}, {"cb_in1", 1}, {"cb_out", 2}, {"cb_intermed0", 24}};

const std::vector<KernelRow> kKernels{
    {"eltwise/unary/device/kernels/compute/eltwise_sfpu.cpp",
     {kTiles},
     2,
     unary([](double x) { return sigmoid(x); }),
     {{"SFPU_OP_COMPUTE_KERNEL_API_INCLUDE", "1"},
      {"SFPU_OP_CHAIN_0", "sigmoid_tile_init<false>(); sigmoid_tile<VectorMode::RC, false>(0);"}}},
    {"eltwise/unary/device/kernels/compute/eltwise_sfpu.cpp",
     {kTiles},
     2,
     unary([](double x) { return std::sqrt(std::fabs(x) + 0.5); }),
     {{"SFPU_OP_SQRT_INCLUDE", "1"},
      {"SFPU_OP_COMPUTE_KERNEL_API_INCLUDE", "1"},
      {"SFPU_OP_BINOP_WITH_SCALAR_INCLUDE", "1"},
      {"SFPU_OP_CHAIN_0",
       "abs_tile_init(); abs_tile(0); binop_with_scalar_tile_init(); add_unary_tile(0, "
       "0x3f000000u); sqrt_tile_init(); sqrt_tile(0);"}}},
    {"eltwise/unary/device/kernels/compute/mish_kernel.cpp",
     {kTiles, 0},
     2,
     unary([](double x) { return x * std::tanh(softplus(x)); }),
     {{"INP_FLOAT", "1"}}},
    {"eltwise/unary/device/kernels/compute/hardswish_kernel.cpp",
     {kTiles},
     2,
     unary([](double x) { return x * std::clamp(x / 6.0 + 0.5, 0.0, 1.0); }),
     {{"INP_FLOAT", "1"}}},
    {"eltwise/unary/device/kernels/compute/tanhshrink_kernel.cpp",
     {kTiles},
     2,
     unary([](double x) { return x - std::tanh(x); }),
     {{"INP_FLOAT", "1"}}},
    {"eltwise/unary/device/kernels/compute/logsigmoid_kernel.cpp", {kTiles}, 2, unary([](double x) {
         return -softplus(-x);
     })},
    {"eltwise/unary/device/kernels/compute/eltwise_identity_kernel.cpp",
     {kTiles},
     2,
     unary([](double x) { return x; })},
    {"eltwise/binary/device/kernels/compute/eltwise_binary_kernel.cpp",
     {1, kTiles},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return element(a, tile, i) * element(b, tile, i);
     },
     {{"ELTWISE_OP", "mul_tiles"}, {"ELTWISE_OP_TYPE", "EltwiseBinaryType::ELWMUL"}}},
    {"eltwise/binary/device/kernels/compute/eltwise_binary_kernel.cpp",
     {2, kTiles / 2},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return std::max(std::exp(element(a, tile, i)) + element(b, tile, i), 0.0);
     },
     {{"ELTWISE_OP", "add_tiles"},
      {"ELTWISE_OP_TYPE", "EltwiseBinaryType::ELWADD"},
      {"SFPU_OP_EXP_INCLUDE", "1"},
      {"SFPU_OP_RELU_FAMILY_INCLUDE", "1"},
      {"SFPU_OP_INIT_PRE_IN0_0", "exp_tile_init();"},
      {"SFPU_OP_FUNC_PRE_IN0_0", "exp_tile(i);"},
      {"SFPU_OP_INIT_0", "relu_tile_init();"},
      {"SFPU_OP_FUNC_0", "relu_tile(i);"}}},
    {"eltwise/binary/device/kernels/compute/eltwise_binary_sfpu_kernel.cpp",
     {2, 2},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return element(a, tile, i) - element(b, tile, i);
     },
     {{"BINOP_INIT", "sub_binary_tile_init();"},
      {"BINARY_SFPU_OP", "sub_binary_tile(i * 2, i * 2 + 1, i * 2);"}}},
    {"eltwise/binary/device/kernels/compute/bcast_hw.cpp",
     {1, 2, 2},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return element(a, tile, i) * element(b, tile, 0);
     },
     {{"BCAST_LLKOP", "EltwiseBinaryType::ELWMUL"},
      {"BCAST_DIM", "BroadcastType::SCALAR"},
      {"BCAST_OP", "mul_tiles_bcast"}}},
    {"data_movement/bcast/device/kernels/compute/bcast_h.cpp",
     {1, 2, 2},
     16,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return element(a, tile, i) + b[tile].floats()[tile_offset(0, place(i).second)];
     },
     {{"BCAST_LLKOP", "EltwiseBinaryType::ELWADD"},
      {"BCAST_DIM", "BroadcastType::ROW"},
      {"BCAST_OP", "add_tiles_bcast"}}},
    {"data_movement/transpose/device/kernels/compute/transpose_wh.cpp",
     {kTiles},
     16,
     [](const Tiles& a, const Tiles&, std::size_t tile, std::size_t i) {
         const auto [row, column] = place(i);
         return static_cast<double>(a[tile].floats()[tile_offset(column, row)]);
     }},
    {"matmul/device/kernels/compute/bmm.cpp",
     {},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t, std::size_t i) {
         double sum = 0.0;
         for (std::size_t k = 0; k < kInner; ++k) {
             sum += product(a[k], b[k], i);
         }
         return sum;
     },
     {},
     {1, 1, kInner, 1},
     kMatmulBuffers,
     1},
    // Two blocks of the inner dimension: partial results go through another buffer and back.
    {"matmul/device/kernels/compute/bmm_large_block_zm.cpp",
     {},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         // [2 x 1] tiles times [1 x 2] tiles in each block; a result of [2 x 2] tiles.
         const std::size_t row = tile / 2;
         const std::size_t column = tile % 2;
         return product(a[row], b[column], i) + product(a[2 + row], b[2 + column], i);
     },
     {},
     {1, 1, 2, 2, 1, 2, 2, 2, 2, 2, 4, 1},
     kMatmulBuffers},
    {"experimental/transformer/rotary_embedding_llama/device/kernels/compute/"
     "rotary_embedding_llama.cpp",
     {0, 1, 0, 1},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         // Buffer 1 is the cosine, buffer 3 the sine and the matrix: the same tiles.
         return element(a, tile, i) * element(b, tile, i) +
                product(a[tile], b[0], i) * element(b, tile, i);
     },
     {{"RELOAD_IMPL", "1"}},
     {0, 1, 5, 6, 24, 25, 26, 2, kTiles, 1},
     {},
     kTiles,
     0.05},
    // Rows of four tiles: element `row * 128 + column` of the buffer's memory.
    {"data_movement/tilize/device/kernels/compute/tilize.cpp",
     {},
     2,
     [](const Tiles& a, const Tiles&, std::size_t tile, std::size_t i) {
         const auto [row, column] = place(i);
         const std::size_t index = row * 128 + tile * 32 + column;
         return element(a, index / kTileElements, index % kTileElements);
     },
     {},
     {0, 2, 1, kTiles}},
    {"data_movement/untilize/device/kernels/compute/untilize.cpp",
     {},
     2,
     [](const Tiles& a, const Tiles&, std::size_t tile, std::size_t i) {
         const std::size_t index = tile * kTileElements + i;
         return element(a, index % 128 / 32, tile_offset(index / 128, index % 32));
     },
     {},
     {1, kTiles, 0, 2}},
    {"eltwise/unary_backward/tanh_bw/device/kernels/compute/eltwise_bw_tanh_deriv.cpp",
     {1, kTiles},
     2,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         const double t = std::tanh(element(b, tile, i));
         return element(a, tile, i) * (1.0 - t * t);
     }},
    {"reduction/prod/device/kernels/compute/prod_nc.cpp",
     {2, 2},
     3,
     [](const Tiles& a, const Tiles& b, std::size_t tile, std::size_t i) {
         return element(a, 2 * tile, i) * element(b, 0, i) * element(a, 2 * tile + 1, i);
     },
     {},
     {},
     {},
     2},
};

/// Buffers of the kernels: two operands, copies of the second, the output, and room in between.
class KernelBuffers {
  public:
    explicit KernelBuffers(std::uint32_t output) : output_(output) {
        add(0, a, true);
        add(1, b, true);
        add(5, b, true);
        add(6, b, true);
        for (const std::uint32_t index : {2U, 3U, 4U, 16U, 24U, 25U, 26U}) {
            add(index, Tiles(kTiles), false);
        }
    }

    std::vector<TileBuffer*> all() {
        std::vector<TileBuffer*> found;
        for (auto& [index, buffer] : buffers_) {
            found.push_back(&buffer);
        }
        return found;
    }
    Tiles read() { return buffers_.at(output_).read(); }

    Tiles a{CaseBuffers::drawn(1), CaseBuffers::drawn(2), CaseBuffers::drawn(3),
            CaseBuffers::drawn(4)};
    Tiles b{CaseBuffers::drawn(5), CaseBuffers::drawn(6), CaseBuffers::drawn(7),
            CaseBuffers::drawn(8)};

  private:
    void add(std::uint32_t index, const Tiles& tiles, bool is_input) {
        buffers_.try_emplace(index, index, DataFormat::Float16_b, tiles, is_input);
    }

    std::uint32_t output_;
    std::map<std::uint32_t, TileBuffer> buffers_;
};

void run_kernel(const std::string& folder, const KernelRow& row) {
    std::printf("%s\n", row.path);
    KernelBuffers buffers(row.output);
    ComputeConfig config;
    config.defines = row.defines;
    config.compile_args = row.compile_args;
    config.named_compile_args = row.named;
    run_compute(buffers.all(), folder + "/" + row.path, row.arguments, config);
    const Tiles found = buffers.read();
    std::vector<float> values;
    std::vector<float> expected;
    for (std::size_t tile = 0; tile < row.results; ++tile) {
        for (std::size_t i = 0; i < kTileElements; ++i) {
            values.push_back(found[tile].floats()[i]);
            expected.push_back(static_cast<float>(row.reference(buffers.a, buffers.b, tile, i)));
        }
    }
    expect_close(values, expected, row.tolerance);
}

}  // namespace

int main() {
    const char* folder = std::getenv("TTNN_OPERATIONS");
    if (folder == nullptr) {
        std::puts("skipped: TTNN_OPERATIONS does not name the kernels of the wheel");
        return 77;
    }
    // Kernels include headers of the library by their paths from its root.
    const std::filesystem::path root = std::filesystem::path(folder) / "../../../..";
    setenv("CPLUS_INCLUDE_PATH", root.lexically_normal().c_str(), 1);
    for (const KernelRow& row : kKernels) {
        run_kernel(folder, row);
    }
}
