#pragma once

// tt-metal's division of a matmul among the cores, automatic or by a program config:
// refused programs, memory config of the result, and L1 size of the circular
// buffers.

#include <cstddef>
#include <optional>

#include "core/tensor_data.hpp"
#include "tt-metalium/math.hpp"
#include "ttnn/operations/matmul/device/config/matmul_program_config_types.hpp"

namespace ttcodegen::cpu {

using tt::div_up;
using tt::tt_metal::CoreCoord;
using ttnn::operations::matmul::MatmulProgramConfig;

/// A call of ttnn::matmul or linear, as far as it determines program and placement.
struct ProductCall {
    ProductCall(const Tensor& left, const Tensor& right) : a(left), b(right) {}

    const Tensor& a;
    const Tensor& b;
    bool transpose_a = false;
    bool transpose_b = false;
    const Tensor* bias = nullptr;
    MemoryConfig memory_config;
    DataType dtype = DataType::BFLOAT16;
    /// Sums have 32 bits in the destination register, and the register is used as a whole.
    bool wide_sums = false;
    bool full_sync = false;
    /// The grid that the caller requests, and the program config.
    std::optional<CoreCoord> grid;
    const MatmulProgramConfig* config = nullptr;
};

/// The sizes of a matmul in tiles.
struct ProductTiles {
    explicit ProductTiles(const ProductCall& call);

    std::size_t batch;
    std::size_t height;
    std::size_t inner;
    std::size_t width;
    std::size_t batch_b;

    /// Rows of tiles of all batches.
    std::size_t rows() const { return batch * height; }
    /// Rows that a program divides among the cores: of all batches if it fuses them, else of one.
    std::size_t divided_rows(bool fuse_batch) const { return fuse_batch ? rows() : height; }
};

/// The shard of a tensor in tiles.
CoreCoord shard_tiles(const Tensor& tensor);

/// The program config of the call, else the automatic choice of tt-metal 0.70.1
/// (matmul_program_config.cpp).
MatmulProgramConfig program_of(const ProductCall& call);

/// Refuses a sharded result whose sharding differs from the first input's.
void check_result_kind(const ProductCall& call);

/// Refuses program configs that tt-metal 0.70.1 refuses (matmul_device_operation.cpp).
void check_program(const ProductCall& call, const MatmulProgramConfig& config);

/// The memory config of the program's result: a requested shard spec is replaced by that of the
/// program.
MemoryConfig result_memory(const ProductCall& call, const MatmulProgramConfig& config);

/// Refuses a program that divides the matmul into blocks without tiles.
void check_sizes(
    const ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig& config);

/// Bytes of the program's circular buffers in each L1.
std::size_t circular_buffer_bytes(const ProductCall& call, const MatmulProgramConfig& config);

}  // namespace ttcodegen::cpu
