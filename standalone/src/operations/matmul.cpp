#include "ttnn/operations/matmul/matmul.hpp"

#include <algorithm>
#include <cstring>

#include "compute/product.hpp"
#include "core/chips.hpp"
#include "core/l1.hpp"
#include "core/result_shards.hpp"
#include "core/tensor_data.hpp"
#include "operations/product_program.hpp"

namespace ttnn::operations::matmul {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

/// One operand as a batch of matrices.
struct Matrices {
    std::int64_t batches = 1;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    MatrixStrides strides;

    /// A vector is one row, or one column if `vector_is_column`.
    static Matrices of(const Shape& shape, bool vector_is_column, bool transpose) {
        const auto rank = static_cast<std::int64_t>(shape.rank());
        Matrices result;
        if (rank == 1) {
            (vector_is_column ? result.rows : result.columns) = shape[0];
        } else {
            result.rows = shape[rank - 2];
            result.columns = shape[rank - 1];
        }
        for (std::int64_t dim = 0; dim < rank - 2; ++dim) {
            result.batches *= shape[dim];
        }
        result.strides = {result.rows * result.columns, result.columns, 1};
        if (transpose) {
            std::swap(result.rows, result.columns);
            std::swap(result.strides.row, result.strides.column);
        }
        return result;
    }
};

/// Operands and result shape of a matmul.
struct Product {
    Matrices left;
    Matrices right;
    Shape shape;
};

/// Checks batch dimensions: equal, or all 1 in b, or none in b.
void check_batch_dimensions(const Shape& a, const Shape& b) {
    const auto rank_a = static_cast<std::int64_t>(a.rank());
    const auto rank_b = static_cast<std::int64_t>(b.rank());
    for (std::int64_t dim = 0; dim < rank_b - std::max<std::int64_t>(rank_a, 2); ++dim) {
        TT_FATAL(b[dim] == 1, "When in1 rank greater than in0 rank front dimensions need to be 1");
    }
    const bool is_broadcast =
        rank_b <= 2 || std::all_of(b.cbegin(), b.cend() - 2, [](auto size) { return size == 1; });
    if (is_broadcast) {
        return;
    }
    TT_FATAL(rank_a == rank_b,
             "Input tensors must have the same rank, got a_shape rank: {} vs b_shape rank: {}",
             rank_a, rank_b);
    for (std::int64_t dim = 0; dim < rank_a - 2; ++dim) {
        TT_FATAL(a[dim] == b[dim],
                 "bmm (non-bcast matmul) expects input tensors of shapes BCMK*BCKN=BCMN or batch "
                 "dimension {} mismatch: a={} vs b={}",
                 dim, a[dim], b[dim]);
    }
}

Shape product_shape(const Shape& a, const Shape& b, std::int64_t rows, std::int64_t columns) {
    ttsl::SmallVector<std::uint32_t> sizes;
    if (a.rank() > 2) {
        sizes.append(a.cbegin(), a.cend() - 2);
    }
    if (a.rank() > 1) {
        sizes.push_back(static_cast<std::uint32_t>(rows));
    }
    if (b.rank() > 1) {
        sizes.push_back(static_cast<std::uint32_t>(columns));
    }
    return Shape(sizes);
}

Product plan(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
    const Shape& shape_a = a.logical_shape();
    const Shape& shape_b = b.logical_shape();
    if (shape_a.rank() == 0 || shape_b.rank() == 0) {
        TT_THROW(
            "ttnn.matmul: Both arguments to matmul need to be at least 1D, but got shapes {} and "
            "{}",
            shape_a, shape_b);
    }
    TT_FATAL(on_device(a), "Operand to matmul must be on device");
    TT_FATAL(on_device(b), "Expected Tensor with DeviceStorage, got {}", b.storage_type());
    check_batch_dimensions(shape_a, shape_b);
    Product product{Matrices::of(shape_a, false, transpose_a),
                    Matrices::of(shape_b, true, transpose_b), Shape{}};
    TT_FATAL(product.left.columns == product.right.rows,
             "The width of the first tensor must be equal to the height of the second tensor. "
             "Mismatch: width={} height={}",
             product.left.columns, product.right.rows);
    // Transposed vectors: their matmul is a matrix, for which the result has no dimensions.
    TT_FATAL((shape_a.rank() > 1 || product.left.rows == 1) &&
                 (shape_b.rank() > 1 || product.right.columns == 1),
             "Attempting to reshape between two shapes with different volumes");
    product.shape = product_shape(shape_a, shape_b, product.left.rows, product.right.columns);
    return product;
}

void check_operands(const Tensor& a, const Tensor& b) {
    TT_FATAL(a.layout() == Layout::TILE && b.layout() == Layout::TILE,
             "Inputs to matmul must be tilized");
    TT_FATAL(tt::tt_metal::is_floating_point(a.dtype()), "Unsupported data format {}", a.dtype());
    for (const Tensor* operand : {&a, &b}) {
        TT_FATAL(!operand->is_sharded() || operand->shard_spec(),
                 "Inputs to matmul need a shard_spec if they are sharded, got: {}",
                 operand->memory_config().memory_layout());
    }
}

/// Refuses biases that ttnn cannot add, and sets the strides of the others.
void plan_bias(const Tensor& bias, const Product& product, ProductOutput& output) {
    TT_FATAL(on_device(bias), "Expected Tensor with DeviceStorage, got {}", bias.storage_type());
    TT_FATAL(product.right.batches == 1,
             "Batched input not supported when bias exists (linear operation).");
    const Shape& shape = bias.logical_shape();
    const auto rank = static_cast<std::int64_t>(shape.rank());
    const std::int64_t columns = rank > 0 ? shape[rank - 1] : 1;
    const std::int64_t rows = rank > 1 ? shape[rank - 2] : 1;
    TT_FATAL(rows == 1 || product.right.columns != 1 || product.shape.rank() > 1,
             "Unsupported bias shape: {} would make a matrix of the product {}", shape,
             product.shape);
    for (std::int64_t dim = 0; dim < rank - 2; ++dim) {
        TT_FATAL(shape[dim] == 1, "Unsupported bias shape: batch size not equal to 1.");
    }
    if (bias.layout() == Layout::TILE) {
        TT_FATAL(rank > 0 && columns == product.right.columns,
                 "Unsupported bias shape: last dimension of bias, {}, not equal to second input's "
                 "last dimension, {}.",
                 columns, product.right.columns);
    } else {
        TT_FATAL(rows == 1 || rows % 32 != 0 || columns % 32 != 0, "Unsupported input layout");
    }
    TT_FATAL((columns == 1 || columns == product.right.columns) &&
                 (rows == 1 || rows == product.left.rows),
             "Fused matmul bias is not broadcastable to matmul output: output_shape={}, "
             "bias_shape={}",
             product.shape, shape);
    output.bias_rows = rows;
    output.bias_row_stride = rows == 1 ? 0 : columns;
    output.bias_column_stride = columns == 1 ? 0 : 1;
}

std::optional<UnaryWithParam> activation_of(
    const std::optional<const Activation>& activation,
    const std::optional<const MatmulProgramConfig>& program_config) {
    if (activation) {
        const auto* name = std::get_if<std::string>(&*activation);
        return name != nullptr ? activation_of_name(*name) : std::get<UnaryWithParam>(*activation);
    }
    if (program_config) {
        return std::visit(
            [](const auto& config) -> std::optional<UnaryWithParam> {
                if constexpr (requires { config.fused_activation; }) {
                    return config.fused_activation;
                } else {
                    return std::nullopt;
                }
            },
            *program_config);
    }
    return std::nullopt;
}

const MatmulProgramConfig* program_in(const std::optional<const MatmulProgramConfig>& config) {
    return config ? &*config : nullptr;
}

std::optional<CoreCoord> grid_of(const std::optional<const CoreGrid>& grid) {
    return grid ? std::optional(CoreCoord(grid->x, grid->y)) : std::nullopt;
}

template <typename Element>
void multiply_into(const Tensor& a, const Tensor& b, const Product& product,
                   const Arithmetic& arithmetic, const ProductOutput& output) {
    const auto& [left, right, shape] = product;
    // With one right operand for all batches, contiguous batches are folded into rows.
    const bool fold = right.batches == 1 && left.strides.batch == left.rows * left.strides.row;
    const std::int64_t batches = fold ? 1 : left.batches;
    const std::int64_t rows = fold ? left.batches * left.rows : left.rows;
    const BlockConsumer store = [&](std::int64_t batch, std::int64_t row, std::int64_t block_rows,
                                    std::int64_t column, std::int64_t columns, float* block,
                                    std::int64_t stride) {
        output.store(batch * left.rows + row, block_rows, column, columns, block, stride);
    };
    visit_elements(a, [&](const auto* data) {
        const auto operand = left_operand<Element>(data, left.strides, arithmetic.first());
        if (is_first_use(b)) {
            visit_elements(b, [&](const auto* right_data) {
                multiply_unpacked<Element>(batches, rows, operand, right.batches, right.rows,
                                           right.columns, right_data, right.strides,
                                           arithmetic.second(), sums_of(arithmetic), store);
            });
        } else {
            const auto packed = packed_operand<Element>(b, right.batches, right.rows, right.columns,
                                                        right.strides, arithmetic.second());
            multiply<Element>(batches, rows, operand, packed->matrix, sums_of(arithmetic), store);
        }
    });
}

/// Common options of matmul calls, after their arguments are checked.
struct ProductOptions {
    std::optional<UnaryWithParam> activation;
    /// The activation is an argument of the call, not of its program.
    bool activation_is_apart = false;
    std::optional<MemoryConfig> memory_config;
    std::optional<DataType> dtype;
    std::optional<Tensor> output;
    std::optional<DeviceComputeKernelConfig> compute;
    std::optional<CoreCoord> grid;
    const MatmulProgramConfig* program = nullptr;
    bool transpose_a = false;
    bool transpose_b = false;
    /// A program or grid lowers the default fidelity.
    bool has_program() const { return program != nullptr || grid; }
};

Arithmetic arithmetic_of_product(const Tensor& a, const Tensor& b, DataType result,
                                 const ProductOptions& options) {
    return arithmetic_of(
        options.compute,
        options.has_program() ? ComputeDefault::matmul_with_program : ComputeDefault::matmul,
        std::array{a.dtype(), b.dtype()}, result == DataType::FLOAT32);
}

/// Memory config and layout of the result, and the L1 size of the circular buffers.
struct Placed {
    MemoryConfig memory_config;
    Layout layout;
    std::size_t circular_buffers;
};

bool is_untilized(const MatmulProgramConfig& config) {
    const auto* shared = std::get_if<MatmulMultiCoreReuseMultiCast1DProgramConfig>(&config);
    return shared != nullptr && shared->untilize_out;
}

Placed place(const Tensor& a, const Tensor& b, const Tensor* bias, DataType dtype,
             const MemoryConfig& memory_config, const ProductOptions& options) {
    TT_FATAL(!options.activation_is_apart || (!a.is_sharded() && !b.is_sharded()),
             "Sharded matmul run with an activation: this should be placed in the program config's "
             "fused_activation field");
    TT_FATAL(!options.grid || options.program == nullptr,
             "Cannot use both user core grid/coordinates and a program config");
    ProductCall call{a, b};
    call.transpose_a = options.transpose_a;
    call.transpose_b = options.transpose_b;
    call.bias = bias;
    call.memory_config = memory_config;
    call.dtype = dtype;
    call.wide_sums =
        options.compute ? options.compute->fp32_dest_acc_en : dtype == DataType::FLOAT32;
    call.full_sync = options.compute && options.compute->dst_full_sync_en;
    call.grid = options.grid;
    call.config = options.program;
    const MatmulProgramConfig config = program_of(call);
    check_program(call, config);
    // These programs read shards in place, with circular buffers on them.
    TT_FATAL(!std::holds_alternative<MatmulMultiCoreReuseMultiCast1DProgramConfig>(config) ||
                 (!is_sharded_in_dram(a) && !is_sharded_in_dram(b)),
             "Only L1 buffers can have an associated circular buffer!");
    return {result_memory(call, config), is_untilized(config) ? Layout::ROW_MAJOR : Layout::TILE,
            circular_buffer_bytes(call, config)};
}

/// Computes a matmul; `finish` sets bias and activation of the output.
Tensor compute(const Tensor& a, const Tensor& b, const Product& product, const Shape& shape,
               const ProductOptions& options, ProductOutput output, const Tensor* bias = nullptr) {
    if (options.output) {
        TT_FATAL(options.output->logical_shape() == shape, "Invalid optional output tensor");
        TT_FATAL(!options.dtype || *options.dtype == options.output->dtype(),
                 "Type mismatch between optional output tensor & output dtype");
    }
    const bool is_empty = a.logical_volume() == 0 || b.logical_volume() == 0;
    const DataType dtype =
        options.output ? options.output->dtype() : options.dtype.value_or(a.dtype());
    const MemoryConfig asked = options.output ? options.output->memory_config()
                                              : options.memory_config.value_or(MemoryConfig{});
    Placed placed{asked, is_empty ? a.layout() : Layout::TILE, 0};
    if (!is_empty) {
        check_operands(a, b);
        placed = place(a, b, bias, dtype, asked, options);
    }
    // A given output is copied to, so this one must allocate no L1 itself.
    const Tensor result = allocate_like(a, shape, dtype, placed.layout,
                                        options.output ? MemoryConfig{} : placed.memory_config);
    require_circular_buffers(a.device(), placed.circular_buffers);
    output.data = buffer_of(result).data();
    output.dtype = dtype;
    output.stride = product.right.columns;
    output.activation = options.activation;
    const Arithmetic arithmetic = arithmetic_of_product(a, b, dtype, options);
    if (std::is_same_v<NarrowElement, float> ||
        (fits_bfloat16(a.dtype()) && fits_bfloat16(b.dtype()))) {
        multiply_into<NarrowElement>(a, b, product, arithmetic, output);
    } else {
        multiply_into<float>(a, b, product, arithmetic, output);
    }
    finish_block_float(result);
    if (options.output) {
        Buffer& target = buffer_of(*options.output);
        target.forget_derived();
        std::memcpy(target.data(), buffer_of(result).data(), target.bytes());
        return *options.output;
    }
    return result;
}

}  // namespace

Tensor matmul(const Tensor& input_tensor_a, const Tensor& input_tensor_b, bool transpose_a,
              bool transpose_b, const std::optional<const MemoryConfig>& memory_config,
              std::optional<const DataType> dtype,
              const std::optional<const MatmulProgramConfig>& program_config,
              const std::optional<const Activation>& activation,
              std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
              std::optional<const CoreGrid> core_grid,
              const std::optional<const tt::tt_metal::Tile>& ignored,
              std::optional<Tensor> optional_output_tensor,
              const std::optional<const GlobalCircularBuffer>& ignored_2,
              const std::optional<tt::tt_metal::SubDeviceId>& ignored_3) {
    TTCODEGEN_ON_EACH_CHIP(matmul, input_tensor_a, input_tensor_b, transpose_a, transpose_b,
                           memory_config, dtype, program_config, activation, compute_kernel_config,
                           core_grid, ignored, optional_output_tensor, ignored_2, ignored_3);
    const Product product = plan(input_tensor_a, input_tensor_b, transpose_a, transpose_b);
    return compute(input_tensor_a, input_tensor_b, product, product.shape,
                   {activation_of(activation, program_config), activation.has_value(),
                    memory_config, dtype, optional_output_tensor, compute_kernel_config,
                    grid_of(core_grid), program_in(program_config), transpose_a, transpose_b},
                   {});
}

Tensor linear(const Tensor& input_tensor_a, const Tensor& input_tensor_b,
              const std::optional<const Tensor>& bias, bool transpose_a, bool transpose_b,
              const std::optional<const MemoryConfig>& memory_config,
              std::optional<const DataType> dtype,
              const std::optional<const MatmulProgramConfig>& program_config,
              const std::optional<const Activation>& activation,
              std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
              std::optional<const CoreGrid> core_grid,
              const std::optional<const tt::tt_metal::Tile>& ignored,
              std::optional<Tensor> optional_output_tensor,
              const std::optional<const GlobalCircularBuffer>& ignored_2,
              const std::optional<tt::tt_metal::SubDeviceId>& ignored_3) {
    TTCODEGEN_ON_EACH_CHIP(linear, input_tensor_a, input_tensor_b, bias, transpose_a, transpose_b,
                           memory_config, dtype, program_config, activation, compute_kernel_config,
                           core_grid, ignored, optional_output_tensor, ignored_2, ignored_3);
    const Product product = plan(input_tensor_a, input_tensor_b, transpose_a, transpose_b);
    const ProductOptions options{activation_of(activation, program_config),
                                 activation.has_value(),
                                 memory_config,
                                 dtype,
                                 optional_output_tensor,
                                 compute_kernel_config,
                                 grid_of(core_grid),
                                 program_in(program_config),
                                 transpose_a,
                                 transpose_b};
    if (!bias) {
        return compute(input_tensor_a, input_tensor_b, product, product.shape, options, {});
    }
    ProductOutput output;
    plan_bias(*bias, product, output);
    const FloatElements bias_values(*bias);
    output.bias = bias_values.data();
    // Leading ones of the bias are kept: the sum has the rank of the longer operand.
    const std::size_t rank = std::max(product.shape.rank(), bias->logical_shape().rank());
    return compute(input_tensor_a, input_tensor_b, product, product.shape.to_rank(rank), options,
                   output, &*bias);
}

Tensor addmm(const Tensor& input_tensor, const Tensor& mat1_tensor, const Tensor& mat2_tensor,
             float alpha, float beta, const std::optional<const MemoryConfig>& memory_config,
             std::optional<const DataType> dtype,
             const std::optional<const MatmulProgramConfig>& program_config,
             std::optional<const DeviceComputeKernelConfig> compute_kernel_config,
             std::optional<const CoreGrid> core_grid,
             const std::optional<const tt::tt_metal::Tile>& ignored,
             std::optional<Tensor> optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(addmm, input_tensor, mat1_tensor, mat2_tensor, alpha, beta,
                           memory_config, dtype, program_config, compute_kernel_config, core_grid,
                           ignored, optional_output_tensor);
    TT_FATAL(alpha != 0.0F, "alpha parameter cannot be 0");
    for (const Tensor* operand : {&input_tensor, &mat1_tensor, &mat2_tensor}) {
        const DataType type = operand->dtype();
        TT_FATAL(
            type == DataType::BFLOAT16 || type == DataType::FLOAT32 || type == DataType::BFLOAT8_B,
            "only BFLOAT16, FLOAT32, and BFLOAT8_B data types are supported, got {}", type);
    }
    const Product product = plan(mat1_tensor, mat2_tensor, false, false);
    TT_FATAL(input_tensor.logical_shape() == product.shape && product.shape.rank() == 2,
             "input_tensor must have shape matching the result of mat1_tensor @ mat2_tensor: {} "
             "instead of {}",
             product.shape, input_tensor.logical_shape());
    require_on_device(input_tensor, "input_tensor");
    // alpha * (product + input * beta / alpha) would round differently: scale the sums afterwards.
    const FloatElements input(input_tensor);
    std::vector<float> scaled(input.span().begin(), input.span().end());
    for (float& value : scaled) {
        value = beta == 0.0F ? 0.0F : value * beta;
    }
    ProductOutput output;
    output.scale = alpha;
    output.bias = scaled.data();
    output.bias_rows = std::max<std::int64_t>(1, product.left.batches * product.left.rows);
    output.bias_row_stride = product.right.columns;
    return compute(mat1_tensor, mat2_tensor, product, product.shape,
                   {activation_of(std::nullopt, program_config), false, memory_config, dtype,
                    optional_output_tensor, compute_kernel_config, grid_of(core_grid),
                    program_in(program_config)},
                   output);
}

}  // namespace ttnn::operations::matmul
