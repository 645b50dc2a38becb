// Matmuls of the pairs that flags select (sparse_matmul_device_operation.cpp and its program
// factory in tt-metal 0.70.1).

#include <cmath>
#include <cstring>

#include "compute/product.hpp"
#include "core/chips.hpp"
#include "core/l1.hpp"
#include "core/tensor_data.hpp"
#include "operations/product_program.hpp"
#include "ttnn/operations/matmul/matmul.hpp"

namespace ttnn::operations::matmul {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;
using Program = MatmulMultiCoreReuseMultiCast1DProgramConfig;

/// Alignment of rows of flags in bytes.
constexpr std::size_t kFlagsAlignment = 32;

std::int64_t batches_of(const Shape& shape) {
    std::int64_t batches = 1;
    for (const auto* size = shape.cbegin(); size + 2 < shape.cend(); ++size) {
        batches *= *size;
    }
    return batches;
}

/// The pairs of matrices of a and b that are multiplied.
struct Pairs {
    std::int64_t left = 1;
    std::int64_t right = 1;
    /// Each matrix of a is multiplied by each of b, not only by the one with its index.
    bool each_with_all = false;

    static Pairs of(const Shape& a, const Shape& b, bool sparse_a, bool sparse_b) {
        Pairs pairs{batches_of(a), batches_of(b), !sparse_a};
        TT_FATAL(pairs.each_with_all || pairs.left % pairs.right == 0,
                 "A's batch ({}) must be divisible by B's batch ({}) when A is sparse", pairs.left,
                 pairs.right);
        TT_FATAL(!(sparse_a && sparse_b) || pairs.left == pairs.right,
                 "A's batch ({}) must be B's batch ({}) when both are sparse", pairs.left,
                 pairs.right);
        return pairs;
    }
    std::int64_t count() const { return each_with_all ? left * right : left; }
    std::int64_t left_of(std::int64_t pair) const { return each_with_all ? pair / right : pair; }
    std::int64_t right_of(std::int64_t pair) const { return pair % right; }
};

/// The batch dimensions of a, then those of b; common ones once.
Shape result_shape(const Shape& a, const Shape& b, bool sparse_a, bool sparse_b) {
    ttsl::SmallVector<std::uint32_t> sizes;
    if (a.rank() > 2 && !(sparse_a && sparse_b)) {
        sizes.append(a.cbegin(), a.cend() - 2);
    }
    if (b.rank() > 2 && (sparse_b || !sparse_a)) {
        sizes.append(b.cbegin(), b.cend() - 2);
    }
    sizes.push_back(a[-2]);
    sizes.push_back(b[-1]);
    return Shape(sizes);
}

void check_sparse_operands(const Tensor& a, const Tensor& b) {
    for (const Tensor* operand : {&a, &b}) {
        require_on_device(*operand, "Operand to sparse_matmul");
        TT_FATAL(operand->layout() == Layout::TILE, "Inputs to sparse_matmul must be tilized");
        TT_FATAL(operand->logical_shape().rank() >= 2,
                 "Inputs to sparse_matmul must have two dimensions or more, got {}",
                 operand->logical_shape());
        // Its kernels read interleaved tensors only.
        TT_FATAL(!operand->is_sharded(), "Inputs to sparse_matmul must not be sharded");
    }
    TT_FATAL(tt::tt_metal::is_floating_point(a.dtype()), "Unsupported data format {}", a.dtype());
    TT_FATAL(a.logical_shape()[-1] == b.logical_shape()[-2],
             "Dimension K (A.shape[-1] {}) and B.shape[-2] ({}) must match for A and B",
             a.logical_shape()[-1], b.logical_shape()[-2]);
}

/// The flags; the kernels read them as 16-bit integers, a row for each batch of a.
std::vector<bool> flags_of(const Tensor& sparsity, const Pairs& pairs,
                           std::optional<std::uint32_t> nnz) {
    require_on_device(sparsity, "sparsity");
    const auto count = static_cast<std::uint64_t>(pairs.count());
    const Shape& shape = sparsity.logical_shape();
    TT_FATAL(nnz.value_or(1) > 0, "nnz ({}) must be greater than 0", nnz.value_or(0));
    TT_FATAL(shape.volume() == count,
             "sparsity.logical_volume() ({}) must be equal to the product of all batch dimensions "
             "({})",
             shape.volume(), count);
    TT_FATAL(nnz.value_or(1) <= count,
             "nnz ({}) must be less than or equal to the length of all batch dimensions ({})",
             nnz.value_or(0), count);
    TT_FATAL(sparsity.layout() == Layout::ROW_MAJOR,
             "sparsity must be in row major layout: its rows are read as stored");
    TT_FATAL(sparsity.dtype() == DataType::BFLOAT16 || sparsity.dtype() == DataType::UINT16,
             "sparsity must have elements of 16 bits, got {}", sparsity.dtype());
    TT_FATAL(shape.rank() > 0 && shape[-1] == static_cast<std::uint32_t>(pairs.right),
             "the last dimension of sparsity must be the batch of B ({}), got {}", pairs.right,
             shape);
    std::vector<bool> flags(count);
    std::size_t wanted = 0;
    std::size_t index = 0;
    for (const std::uint16_t bits : elements<std::uint16_t>(sparsity)) {
        flags[index++] = bits != 0;
        wanted += bits != 0 ? 1 : 0;
    }
    TT_FATAL(!nnz || *nnz == wanted,
             "nnz is {}, but sparsity has {} elements that are not zero: the program would wait "
             "for others for ever",
             *nnz, wanted);
    return flags;
}

/// Refuses program configs that the program factory refuses.
void check_sparse_program(const MatmulProgramConfig& config, const Shape& a, const Shape& b) {
    const auto* program = std::get_if<Program>(&config);
    TT_FATAL(program != nullptr && program->mcast_in0,
             "Only mcast_in0 of MatmulMultiCoreReuseMultiCast1DProgramConfig is supported for "
             "sparse matmul");
    check_sizes(*program);
    const std::size_t inner = div_up(a[-1], kTileSide);
    TT_FATAL(inner % program->in0_block_w == 0, "Kt ({}) must be divisible by in0_block_w ({})",
             inner, program->in0_block_w);
    const CoreCoord grid = program->compute_with_storage_grid_size;
    const std::size_t blocks = div_up(div_up(a[-2], kTileSide), program->per_core_M) *
                               div_up(div_up(b[-1], kTileSide), program->per_core_N);
    TT_FATAL(blocks <= grid.x * grid.y,
             "Number of blocks exceeds number of cores available: {} blocks > {} cores", blocks,
             grid.x * grid.y);
    const std::size_t receivers = blocks <= grid.x ? blocks : div_up(blocks, grid.x) * grid.x;
    TT_FATAL(blocks == receivers,
             "num_cores_with_work ({}) must be equal to in0_mcast_receiver_num_cores ({}), please "
             "adjust the core grid to make it rectangular.",
             blocks, receivers);
}

template <typename Element>
void multiply_selected(const Tensor& a, const Tensor& b, const Pairs& pairs,
                       const std::vector<bool>& flags, const Arithmetic& arithmetic,
                       const ProductOutput& output) {
    const std::int64_t rows = a.logical_shape()[-2];
    const std::int64_t depth = a.logical_shape()[-1];
    const std::int64_t columns = b.logical_shape()[-1];
    const MatrixStrides left{rows * depth, depth, 1};
    const MatrixStrides right{depth * columns, columns, 1};
    visit_elements(a, [&](const auto* left_data) {
        visit_elements(b, [&](const auto* right_data) {
            for (std::int64_t pair = 0; pair < pairs.count(); ++pair) {
                if (!flags[static_cast<std::size_t>(pair)]) {
                    continue;
                }
                const BlockConsumer store = [&](std::int64_t, std::int64_t row,
                                                std::int64_t block_rows, std::int64_t column,
                                                std::int64_t block_columns, float* block,
                                                std::int64_t stride) {
                    output.store(pair * rows + row, block_rows, column, block_columns, block,
                                 stride);
                };
                multiply_unpacked<Element>(
                    1, rows,
                    left_operand<Element>(left_data + pairs.left_of(pair) * left.batch, left,
                                          arithmetic.first()),
                    1, depth, columns, right_data + pairs.right_of(pair) * right.batch, right,
                    arithmetic.second(), sums_of(arithmetic), store);
            }
        });
    });
}

/// The L1 size of the program's circular buffers: blocks of a matmul, and two rows of flags.
std::size_t buffer_bytes(const Tensor& a, const Tensor& b, const Tensor& sparsity, DataType dtype,
                         const std::optional<const DeviceComputeKernelConfig>& compute,
                         const MatmulProgramConfig& config) {
    ProductCall call{a, b};
    call.dtype = dtype;
    call.wide_sums = compute ? compute->fp32_dest_acc_en : dtype == DataType::FLOAT32;
    return circular_buffer_bytes(call, config) +
           2 * tt::round_up(sparsity.logical_shape()[-1] * sizeof(std::uint16_t), kFlagsAlignment);
}

}  // namespace

Tensor sparse_matmul(const Tensor& input_tensor_a, const Tensor& input_tensor_b,
                     const Tensor& sparsity, const MatmulProgramConfig& program_config,
                     std::optional<uint32_t> nnz, bool is_input_a_sparse, bool is_input_b_sparse,
                     const std::optional<const MemoryConfig>& memory_config,
                     std::optional<const DataType> dtype,
                     std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
                     std::optional<const CoreGrid> core_grid,
                     const std::optional<const tt::tt_metal::Tile>& output_tile,
                     const std::optional<Tensor>& optional_output_tensor,
                     const std::optional<const GlobalCircularBuffer>& global_cb,
                     const std::optional<tt::tt_metal::SubDeviceId>& sub_device_id) {
    TTCODEGEN_ON_EACH_CHIP(sparse_matmul, input_tensor_a, input_tensor_b, sparsity, program_config,
                           nnz, is_input_a_sparse, is_input_b_sparse, memory_config, dtype,
                           compute_kernel_config, core_grid, output_tile, optional_output_tensor,
                           global_cb, sub_device_id);
    const Tensor& a = input_tensor_a;
    const Tensor& b = input_tensor_b;
    check_sparse_operands(a, b);
    const Shape& shape_a = a.logical_shape();
    const Shape& shape_b = b.logical_shape();
    const Pairs pairs = Pairs::of(shape_a, shape_b, is_input_a_sparse, is_input_b_sparse);
    const std::vector<bool> flags = flags_of(sparsity, pairs, nnz);
    check_sparse_program(program_config, shape_a, shape_b);
    const Shape shape = result_shape(shape_a, shape_b, is_input_a_sparse, is_input_b_sparse);
    TT_FATAL(!optional_output_tensor || optional_output_tensor->logical_shape() == shape,
             "Invalid optional output tensor");
    const DataType type =
        optional_output_tensor ? optional_output_tensor->dtype() : dtype.value_or(a.dtype());
    const Tensor result = optional_output_tensor
                              ? *optional_output_tensor
                              : allocate_like(a, shape, type, Layout::TILE,
                                              memory_config.value_or(ttnn::DRAM_MEMORY_CONFIG));
    require_circular_buffers(
        a.device(), buffer_bytes(a, b, sparsity, type, compute_kernel_config, program_config));
    Buffer& target = buffer_of(result);
    target.forget_derived();
    std::memset(target.data(), 0, target.bytes());
    ProductOutput output;
    output.data = target.data();
    output.dtype = type;
    output.stride = shape[-1];
    const Arithmetic arithmetic =
        arithmetic_of(compute_kernel_config, ComputeDefault::matmul_with_program,
                      std::array{a.dtype(), b.dtype()}, type == DataType::FLOAT32);
    if (fits_bfloat16(a.dtype()) && fits_bfloat16(b.dtype())) {
        multiply_selected<NarrowElement>(a, b, pairs, flags, arithmetic, output);
    } else {
        multiply_selected<float>(a, b, pairs, flags, arithmetic, output);
    }
    finish_block_float(result);
    return result;
}

}  // namespace ttnn::operations::matmul
