#include "ttnn/operations/matmul/matmul.hpp"

#include "compute_testing.hpp"

using namespace compute_testing;

namespace {

/// batches x (rows x depth) times (depth x columns); a single right operand is used for all.
std::vector<float> reference_product(const std::vector<float>& a, const std::vector<float>& b,
                                     std::size_t batches, std::size_t rows, std::size_t depth,
                                     std::size_t columns) {
    std::vector<float> product(batches * rows * columns);
    const std::size_t b_stride = b.size() == depth * columns ? 0 : depth * columns;
    for (std::size_t batch = 0; batch < batches; ++batch) {
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) {
                double sum = 0;
                for (std::size_t k = 0; k < depth; ++k) {
                    sum += static_cast<double>(a[(batch * rows + i) * depth + k]) *
                           b[batch * b_stride + k * columns + j];
                }
                product[(batch * rows + i) * columns + j] = static_cast<float>(sum);
            }
        }
    }
    return product;
}

std::vector<float> transposed(const std::vector<float>& values, std::size_t batches,
                              std::size_t rows, std::size_t columns) {
    std::vector<float> result(values.size());
    for (std::size_t batch = 0; batch < batches; ++batch) {
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < columns; ++j) {
                result[(batch * columns + j) * rows + i] = values[(batch * rows + i) * columns + j];
            }
        }
    }
    return result;
}

void test_types_and_transposes() {
    for (const DataType dtype_a : {DataType::FLOAT32, DataType::BFLOAT16, DataType::BFLOAT8_B}) {
        for (const DataType dtype_b : {DataType::FLOAT32, DataType::BFLOAT16}) {
            for (const bool transpose_a : {false, true}) {
                for (const bool transpose_b : {false, true}) {
                    const Shape shape_a = transpose_a ? Shape({2, 45, 37}) : Shape({2, 37, 45});
                    const Shape shape_b = transpose_b ? Shape({2, 70, 45}) : Shape({2, 45, 70});
                    const Tensor a = draw_tensor(shape_a, dtype_a, Layout::TILE, 1);
                    const Tensor b = draw_tensor(shape_b, dtype_b, Layout::TILE, 2);
                    const Tensor product = ttnn::matmul(a, b, transpose_a, transpose_b);
                    expect_shape(product, Shape({2, 37, 70}));
                    expect(product.dtype() == dtype_a, "the first operand's type");
                    const auto values_a =
                        transpose_a ? transposed(values_of(a), 2, 45, 37) : values_of(a);
                    const auto values_b =
                        transpose_b ? transposed(values_of(b), 2, 70, 45) : values_of(b);
                    expect_close(
                        values_of(product), reference_product(values_a, values_b, 2, 37, 45, 70),
                        std::max(engine_tolerance_of(dtype_a), engine_tolerance_of(dtype_b)));
                }
            }
        }
    }
}

void test_transposed_column_in_batches() {
    // The transposed left operand has strides of 1 both ways, and is one row all the same.
    const Tensor a = draw_tensor(Shape({3, 7, 1}), DataType::FLOAT32, Layout::TILE, 1);
    const Tensor b = draw_tensor(Shape({7, 20}), DataType::FLOAT32, Layout::TILE, 2);
    expect_close(values_of(ttnn::matmul(a, b, true, false)),
                 reference_product(values_of(a), values_of(b), 3, 1, 7, 20),
                 engine_tolerance_of(DataType::FLOAT32));
}

void test_sizes() {
    struct Size {
        std::uint32_t rows, depth, columns;
    };
    for (const auto& [rows, depth, columns] :
         {Size{1, 1, 1}, Size{1, 700, 300}, Size{5, 7, 3}, Size{13, 600, 33}, Size{200, 33, 130},
          Size{150, 520, 800}, Size{40, 131, 2000}}) {
        for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
            const Tensor a = draw_tensor(Shape({rows, depth}), dtype, Layout::TILE, 3);
            const Tensor b = draw_tensor(Shape({depth, columns}), dtype, Layout::TILE, 4);
            const auto expected =
                reference_product(values_of(a), values_of(b), 1, rows, depth, columns);
            // The second and third matmul use the packed form that the buffer caches.
            for (int repetition = 0; repetition < 3; ++repetition) {
                expect_close(values_of(ttnn::matmul(a, b)), expected, engine_tolerance_of(dtype));
            }
        }
    }
}

void test_many_batches() {
    // Enough batches that every thread packs the operands of its own.
    const Tensor a = draw_tensor(Shape({50, 3, 9, 33}), DataType::BFLOAT16, Layout::TILE, 1);
    const Tensor b = draw_tensor(Shape({50, 3, 40, 33}), DataType::BFLOAT16, Layout::TILE, 2);
    const auto expected =
        reference_product(values_of(a), transposed(values_of(b), 150, 40, 33), 150, 9, 33, 40);
    for (int repetition = 0; repetition < 3; ++repetition) {
        expect_close(values_of(ttnn::matmul(a, b, false, true)), expected,
                     engine_tolerance_of(DataType::BFLOAT16));
    }
}

void test_shapes() {
    const auto shape_of = [](const Shape& a, const Shape& b) {
        return ttnn::matmul(draw_tensor(a), draw_tensor(b)).logical_shape();
    };
    expect(shape_of(Shape({64}), Shape({64})) == Shape(ttsl::SmallVector<std::uint32_t>{}),
           "two vectors");
    expect(shape_of(Shape({64}), Shape({64, 32})) == Shape({32}), "vector and matrix");
    expect(shape_of(Shape({2, 3, 32, 64}), Shape({64})) == Shape({2, 3, 32}), "batch and vector");
    expect(shape_of(Shape({2, 3, 32, 64}), Shape({1, 1, 64, 32})) == Shape({2, 3, 32, 32}),
           "broadcast batch");
    expect(shape_of(Shape({2, 3, 4, 32, 64}), Shape({64, 32})) == Shape({2, 3, 4, 32, 32}),
           "batch and matrix");
    const Tensor empty = ttnn::matmul(draw_tensor(Shape({32, 0})), draw_tensor(Shape({0, 32})));
    expect_close(values_of(empty), std::vector<float>(32 * 32), 0);
}

void test_results() {
    const Tensor a = draw_tensor(Shape({32, 64}), DataType::BFLOAT16);
    const Tensor b = draw_tensor(Shape({64, 32}), DataType::BFLOAT16);
    const Tensor wide = ttnn::matmul(a, b, false, false, ttnn::L1_MEMORY_CONFIG, DataType::FLOAT32);
    expect(wide.dtype() == DataType::FLOAT32 && wide.layout() == Layout::TILE, "asked-for type");
    expect(wide.memory_config() == ttnn::L1_MEMORY_CONFIG, "asked-for memory");
    expect_close(values_of(wide), reference_product(values_of(a), values_of(b), 1, 32, 64, 32),
                 engine_tolerance_of(DataType::FLOAT32));
    const Tensor output = draw_tensor(Shape({32, 32}), DataType::FLOAT32);
    const Tensor returned =
        ttnn::matmul(a, b, false, false, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                     std::nullopt, std::nullopt, std::nullopt, output);
    expect_close(values_of(output), values_of(wide), 0);
    expect(ttcodegen::cpu::buffer_of(returned).data() == ttcodegen::cpu::buffer_of(output).data(),
           "the given output");
}

void test_linear() {
    const Tensor a = draw_tensor(Shape({2, 30, 50}), DataType::FLOAT32, Layout::TILE, 1);
    const Tensor b = draw_tensor(Shape({50, 20}), DataType::FLOAT32, Layout::TILE, 2);
    const auto product = reference_product(values_of(a), values_of(b), 2, 30, 50, 20);
    for (const Shape& shape : {Shape({20}), Shape({1, 20}), Shape({1, 1, 20}), Shape({30, 20})}) {
        for (const Layout layout : {Layout::TILE, Layout::ROW_MAJOR}) {
            const Tensor bias = draw_tensor(shape, DataType::FLOAT32, layout, 3);
            const auto bias_values = values_of(bias);
            auto expected = product;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                expected[i] = std::max(0.0F, expected[i] + bias_values[i % bias_values.size()]);
            }
            const Tensor result = ttnn::linear(a, b, bias, false, false, std::nullopt, std::nullopt,
                                               std::nullopt, ttnn::Activation("relu"));
            expect_shape(result, Shape({2, 30, 20}));
            expect_close(values_of(result), expected, engine_tolerance_of(DataType::FLOAT32));
        }
    }
    const Tensor four_dimensional = draw_tensor(Shape({1, 1, 1, 20}));
    expect_shape(ttnn::linear(a, b, four_dimensional), Shape({1, 2, 30, 20}));
}

void test_activations() {
    const Tensor a = draw_tensor(Shape({33, 40}), DataType::FLOAT32, Layout::TILE, 1);
    const Tensor b = draw_tensor(Shape({40, 50}), DataType::FLOAT32, Layout::TILE, 2);
    const auto product = values_of(ttnn::matmul(a, b));
    const auto check = [&](const char* name, auto function) {
        auto expected = product;
        for (float& value : expected) {
            value = static_cast<float>(function(static_cast<double>(value)));
        }
        const Tensor result = ttnn::matmul(a, b, false, false, std::nullopt, std::nullopt,
                                           std::nullopt, ttnn::Activation(std::string(name)));
        expect_close(values_of(result), expected, engine_tolerance_of(DataType::FLOAT32));
    };
    check("silu", [](double x) { return x / (1 + std::exp(-x)); });
    check("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); });
    check("gelu", [](double x) { return x * (1 + std::erf(x / std::sqrt(2.0))) / 2; });
    check("tanh", [](double x) { return std::tanh(x); });
    check("relu6", [](double x) { return std::min(std::max(x, 0.0), 6.0); });
}

void test_addmm() {
    const Tensor a = draw_tensor(Shape({30, 50}), DataType::FLOAT32, Layout::TILE, 1);
    const Tensor b = draw_tensor(Shape({50, 20}), DataType::FLOAT32, Layout::TILE, 2);
    const Tensor c = draw_tensor(Shape({30, 20}), DataType::FLOAT32, Layout::TILE, 3);
    auto expected = reference_product(values_of(a), values_of(b), 1, 30, 50, 20);
    const auto addend = values_of(c);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = 0.5F * addend[i] + 2.0F * expected[i];
    }
    expect_close(values_of(ttnn::addmm(c, a, b, 2.0F, 0.5F)), expected,
                 engine_tolerance_of(DataType::FLOAT32));
    expect_refused([&] { ttnn::addmm(c, a, b, 0.0F); }, "alpha");
    expect_refused([&] { ttnn::addmm(draw_tensor(Shape({1, 20})), a, b); }, "shape");
}

void test_refusals() {
    const auto product = [](const Tensor& a, const Tensor& b) { return ttnn::matmul(a, b); };
    const Tensor matrix = draw_tensor(Shape({32, 64}));
    const Tensor fitting = draw_tensor(Shape({64, 32}));
    expect_refused([&] { product(matrix, matrix); }, "Mismatch: width=64 height=32");
    expect_refused([&] { product(matrix, draw_tensor(Shape({2, 64, 32}))); },
                   "front dimensions need to be 1");
    expect_refused(
        [&] { product(draw_tensor(Shape({2, 32, 64})), draw_tensor(Shape({3, 64, 32}))); },
        "batch dimension 0 mismatch: a=2 vs b=3");
    expect_refused(
        [&] { product(draw_tensor(Shape({2, 3, 32, 64})), draw_tensor(Shape({3, 64, 32}))); },
        "same rank");
    expect_refused(
        [&] {
            product(draw_tensor(Shape({32, 64}), DataType::FLOAT32, Layout::ROW_MAJOR), fitting);
        },
        "must be tilized");
    expect_refused([&] { product(draw_tensor(Shape({32, 64}), DataType::INT32), fitting); },
                   "Unsupported data format");
    expect_refused(
        [&] {
            product(draw_tensor(Shape({32, 64}), DataType::FLOAT32, Layout::TILE, 1, true),
                    fitting);
        },
        "must be on device");
    expect_refused(
        [&] {
            ttnn::matmul(matrix, fitting, false, false, std::nullopt, std::nullopt, std::nullopt,
                         ttnn::Activation("bogus"));
        },
        "Unknown unary op: bogus");
    expect_refused([&] { ttnn::linear(matrix, fitting, draw_tensor(Shape({2, 1, 32}))); },
                   "batch size not equal to 1");
    expect_refused([&] { ttnn::linear(matrix, fitting, draw_tensor(Shape({1}))); },
                   "Unsupported bias shape");
    expect_refused(
        [&] {
            ttnn::linear(matrix, fitting,
                         draw_tensor(Shape({32, 32}), DataType::FLOAT32, Layout::ROW_MAJOR));
        },
        "Unsupported input layout");
    expect_refused(
        [&] {
            ttnn::linear(draw_tensor(Shape({2, 32, 64})), draw_tensor(Shape({2, 64, 32})),
                         draw_tensor(Shape({32})));
        },
        "Batched input not supported when bias exists");
    Tensor gone = draw_tensor(Shape({32, 64}));
    gone.deallocate();
    expect_refused([&] { product(gone, fitting); }, "not allocated");
}

/// One row of `cores` cores, each with as many of `columns` tiles.
ttnn::operations::matmul::MatmulProgramConfig sparse_program(std::size_t cores, std::size_t rows,
                                                             std::size_t columns) {
    ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig config{};
    config.compute_with_storage_grid_size = {cores, 1};
    config.in0_block_w = 1;
    config.out_subblock_h = config.out_subblock_w = 1;
    config.out_block_h = config.out_block_w = 1;
    config.per_core_M = rows;
    config.per_core_N = columns;
    config.mcast_in0 = true;
    return config;
}

void expect_sparse(const Tensor& a, const Tensor& b, const std::vector<float>& flags,
                   const Shape& flag_shape, bool sparse_a, bool sparse_b, const Shape& shape) {
    const std::int64_t rows = a.logical_shape()[-2];
    const std::int64_t depth = a.logical_shape()[-1];
    const std::int64_t columns = b.logical_shape()[-1];
    const Tensor sparsity = make_tensor(flag_shape, flags, DataType::BFLOAT16, Layout::ROW_MAJOR);
    // With a program config, ttnn's default is less accurate.
    ttnn::DeviceComputeKernelConfig exact;
    exact.math_fidelity = tt::tt_metal::MathFidelity::HiFi4;
    const Tensor found = ttnn::sparse_matmul(a, b, sparsity, sparse_program(3, 2, 1), std::nullopt,
                                             sparse_a, sparse_b, std::nullopt, std::nullopt, exact);
    expect_shape(found, shape);
    const auto left = values_of(a);
    const auto right = values_of(b);
    const std::size_t experts = right.size() / static_cast<std::size_t>(depth * columns);
    std::vector<float> expected;
    for (std::size_t pair = 0; pair < flags.size(); ++pair) {
        const std::size_t row = sparse_a ? pair : pair / experts;
        const auto part = [](const std::vector<float>& values, std::size_t index,
                             std::int64_t size) {
            const auto begin = values.begin() + static_cast<std::int64_t>(index) * size;
            return std::vector<float>(begin, begin + size);
        };
        auto product = reference_product(
            part(left, row, rows * depth), part(right, pair % experts, depth * columns), 1,
            static_cast<std::size_t>(rows), static_cast<std::size_t>(depth),
            static_cast<std::size_t>(columns));
        for (float& value : product) {
            value = flags[pair] != 0.0F ? value : 0.0F;
        }
        expected.insert(expected.end(), product.begin(), product.end());
    }
    expect_close(values_of(found), expected, 0.02);
}

void test_sparse() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
        const Tensor b = draw_tensor(Shape({1, 4, 40, 70}), dtype, Layout::TILE, 2);
        expect_sparse(draw_tensor(Shape({2, 3, 37, 40}), dtype), b,
                      {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0.25F, 0, 0, 0, 0, 2, 0, -1, 0, 0, 0},
                      Shape({2, 3, 1, 4}), false, true, Shape({2, 3, 1, 4, 37, 70}));
        expect_sparse(draw_tensor(Shape({3, 4, 37, 40}), dtype), b,
                      {1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1}, Shape({1, 1, 3, 4}), true, false,
                      Shape({3, 4, 37, 70}));
        expect_sparse(draw_tensor(Shape({1, 4, 37, 40}), dtype), b, {0, 1, 1, 0},
                      Shape({1, 1, 1, 4}), true, true, Shape({1, 4, 37, 70}));
    }
}

void test_sparse_refusals() {
    const Tensor a = draw_tensor(Shape({1, 2, 32, 64}), DataType::BFLOAT16);
    const Tensor b = draw_tensor(Shape({1, 3, 64, 96}), DataType::BFLOAT16);
    const auto flags = [](DataType dtype, Layout layout, const Shape& shape) {
        return make_tensor(shape, std::vector<float>(shape.volume(), 1.0F), dtype, layout);
    };
    const Shape shape({1, 2, 1, 3});
    const Tensor all = flags(DataType::BFLOAT16, Layout::ROW_MAJOR, shape);
    const auto refused = [&](const Tensor& sparsity, const auto& program,
                             std::optional<std::uint32_t> nnz, const std::string& text) {
        expect_refused([&] { ttnn::sparse_matmul(a, b, sparsity, program, nnz); }, text);
    };
    const auto program = sparse_program(3, 1, 1);
    refused(flags(DataType::BFLOAT16, Layout::ROW_MAJOR, Shape({1, 1, 1, 3})), program,
            std::nullopt, "must be equal to the product of all batch dimensions (6)");
    refused(flags(DataType::BFLOAT16, Layout::ROW_MAJOR, Shape({1, 3, 1, 2})), program,
            std::nullopt, "the last dimension of sparsity must be the batch of B (3)");
    refused(flags(DataType::FLOAT32, Layout::ROW_MAJOR, shape), program, std::nullopt,
            "sparsity must have elements of 16 bits");
    refused(flags(DataType::BFLOAT16, Layout::TILE, shape), program, std::nullopt,
            "sparsity must be in row major layout");
    refused(all, program, 0, "nnz (0) must be greater than 0");
    refused(all, program, 7, "nnz (7) must be less than or equal to");
    refused(all, program, 5, "sparsity has 6 elements that are not zero");
    refused(all, sparse_program(2, 1, 1), std::nullopt, "3 blocks > 2 cores");
    refused(all, sparse_program(3, 0, 1), std::nullopt, "per_core_M is 0, which is not valid");
    auto odd =
        std::get<ttnn::operations::matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig>(program);
    odd.in0_block_w = 3;
    refused(all, ttnn::operations::matmul::MatmulProgramConfig(odd), std::nullopt,
            "Kt (2) must be divisible by in0_block_w (3)");
    odd.in0_block_w = 1;
    odd.compute_with_storage_grid_size = {2, 2};
    refused(all, ttnn::operations::matmul::MatmulProgramConfig(odd), std::nullopt,
            "num_cores_with_work (3) must be equal to in0_mcast_receiver_num_cores (4)");
    odd.mcast_in0 = false;
    refused(all, ttnn::operations::matmul::MatmulProgramConfig(odd), std::nullopt,
            "Only mcast_in0");
}

}  // namespace

int main() {
    test_types_and_transposes();
    test_transposed_column_in_batches();
    test_sizes();
    test_many_batches();
    test_shapes();
    test_results();
    test_linear();
    test_activations();
    test_addmm();
    test_sparse();
    test_sparse_refusals();
    test_refusals();
}
