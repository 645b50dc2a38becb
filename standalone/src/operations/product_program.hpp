#pragma once

// How tt-metal divides a matrix product among the cores, by its own choice or by a given program
// configuration: which programs it refuses, where the result is placed, and how much of each core's
// L1 the circular buffers take.

#include <cstddef>
#include <optional>

#include "core/tensor_data.hpp"
#include "tt-metalium/math.hpp"
#include "ttnn/operations/matmul/device/config/matmul_program_config_types.hpp"

namespace ttcodegen::cpu {

using tt::div_up;
using tt::tt_metal::CoreCoord;
using ttnn::operations::matmul::MatmulProgramConfig;

/// A call of ttnn::matmul or linear as far as it concerns the placement of its parts.
struct ProductCall {
    ProductCall(const Tensor& left, const Tensor& right) : a(left), b(right) {}

    const Tensor& a;
    const Tensor& b;
    bool transpose_a = false;
    bool transpose_b = false;
    const Tensor* bias = nullptr;
    MemoryConfig memory_config;
    DataType dtype = DataType::BFLOAT16;
    /// Whether sums have 32 bits in the registers, and whether these are used as a whole.
    bool wide_sums = false;
    bool full_sync = false;
    /// The grid that the caller requests, and the program.
    std::optional<CoreCoord> grid;
    const MatmulProgramConfig* config = nullptr;
};

/// The sizes of a product in tiles.
struct ProductTiles {
    explicit ProductTiles(const ProductCall& call);

    std::size_t batch;
    std::size_t height;
    std::size_t inner;
    std::size_t width;
    std::size_t batch_b;

    /// Rows of tiles, those of all batches one after the other.
    std::size_t rows() const { return batch * height; }
    /// Those that a program divides among the cores: of all batches if it fuses them, else of one.
    std::size_t divided_rows(bool fuse_batch) const { return fuse_batch ? rows() : height; }
};

/// The part of a tensor that each core has, in tiles.
CoreCoord shard_tiles(const Tensor& tensor);

/// The program that the call requests, else that which tt-metal 0.70.1 chooses
/// (matmul_program_config.cpp).
MatmulProgramConfig program_of(const ProductCall& call);

/// Refuses a sharded result that is not divided as the first input is.
void check_result_kind(const ProductCall& call);

/// Refuses what tt-metal 0.70.1 refuses of a program (matmul_device_operation.cpp).
void check_program(const ProductCall& call, const MatmulProgramConfig& config);

/// The placement of the result of the program: a requested shard specification is replaced by
/// that of the program.
MemoryConfig result_memory(const ProductCall& call, const MatmulProgramConfig& config);

/// Refuses a program that divides the product into blocks of no tiles.
void check_sizes(
    const ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig& config);

/// Bytes of the circular buffers of the program, in each L1.
std::size_t circular_buffer_bytes(const ProductCall& call, const MatmulProgramConfig& config);

}  // namespace ttcodegen::cpu
