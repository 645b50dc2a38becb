#include <algorithm>
#include <array>
#include <limits>

#include "compute/arithmetic.hpp"
#include "compute/sharding.hpp"
#include "core/chips.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"
#include "operations/pool_memory.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/experimental/adaptive_pool/adaptive_pools.hpp"
#include "ttnn/operations/pool/generic/generic_pools.hpp"
#include "ttnn/operations/pool/global_avg_pool/global_avg_pool.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"

namespace ttnn {
namespace {

using namespace ttcodegen::cpu;
using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::MemoryConfig;
using tt::tt_metal::Shape;
using tt::tt_metal::Tensor;

using Padding = std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>>;

/// The window of one output along one dimension; taps are `dilation` apart.
struct Window {
    int64_t begin;
    int64_t end;
    int64_t dilation;
    /// Positions of the window within input and padding, for averages.
    int64_t padded_size;
    /// The size of the kernel, and the index of its element at `begin`.
    int64_t kernel;
    int64_t first = 0;
};

struct PoolAxis {
    int64_t input = 1;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t before = 0;
    int64_t after = 0;
    int64_t dilation = 1;

    /// The windows of all outputs, clipped to the input.
    std::vector<Window> windows(bool ceil_mode) const {
        const int64_t reach = dilation * (kernel - 1) + 1;
        const int64_t room = input + before + after - reach;
        TT_FATAL(room >= 0, "The window of size {} is larger than the padded input of size {}",
                 reach, input + before + after);
        int64_t count = room / stride + 1;
        // With ceil mode, the last window must start inside of the input or the padding before it.
        if (ceil_mode && room % stride != 0 && count * stride < input + before) {
            ++count;
        }
        std::vector<Window> result;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t start = i * stride - before;
            const int64_t skipped = start < 0 ? (-start + dilation - 1) / dilation : 0;
            result.push_back({start + skipped * dilation, std::min(start + reach, input), dilation,
                              std::min(start + reach, input + after) - start, kernel, skipped});
        }
        return result;
    }
};

/// Checked arguments of a pool.
struct Pool {
    uint32_t batch;
    uint32_t channels;
    int64_t height;
    int64_t width;
    std::vector<Window> rows;
    std::vector<Window> columns;

    int64_t image() const { return height * width; }
};

struct PoolOptions {
    DataType dtype = DataType::BFLOAT16;
    Layout layout = Layout::ROW_MAJOR;
    std::optional<MemoryConfig> memory_config;
    std::optional<TensorMemoryLayout> scheme;
    bool deallocate_input = false;
    bool config_in_dram = false;
};

std::array<PoolAxis, 2> pool_axes(std::array<uint32_t, 2> input, std::array<uint32_t, 2> kernel,
                                  std::array<uint32_t, 2> stride, const Padding& padding,
                                  std::array<uint32_t, 2> dilation) {
    std::array<uint32_t, 4> sides;
    if (const auto* pair = std::get_if<0>(&padding)) {
        sides = {(*pair)[0], (*pair)[0], (*pair)[1], (*pair)[1]};
    } else {
        sides = std::get<1>(padding);
    }
    std::array<PoolAxis, 2> axes;
    for (std::size_t i = 0; i < 2; ++i) {
        TT_FATAL(kernel[i] > 0,
                 "Pool2D: Kernel size must be greater than 0 in both dimensions, got ({}, {})",
                 kernel[0], kernel[1]);
        TT_FATAL(dilation[i] > 0,
                 "Pool2D: Dilation must be greater than 0 in both dimensions, got ({}, {})",
                 dilation[0], dilation[1]);
        TT_FATAL(stride[i] > 0,
                 "Pool2D: Stride must be greater than 0 in both dimensions, got ({}, {})",
                 stride[0], stride[1]);
        const uint32_t before = sides[2 * i];
        const uint32_t after = sides[2 * i + 1];
        TT_FATAL(before <= kernel[i] / 2 && after <= kernel[i] / 2,
                 "Pool2D: Padding ({}, {}) should not exceed half of kernel size ({}, {})", before,
                 after, kernel[0], kernel[1]);
        axes[i] = {input[i], kernel[i], stride[i], before, after, dilation[i]};
    }
    return axes;
}

void check_input(const Tensor& input, const Pool& pool) {
    TT_FATAL(on_device(input), "Input tensor must be on device");
    TT_FATAL(input.dtype() == DataType::BFLOAT16 || is_block(input.dtype()),
             "Only BFLOAT16 supported for now, got {}", input.dtype());
    const Shape& shape = input.logical_shape();
    TT_FATAL(!input.is_sharded() || shape.rank() < 3 || shape[-2] * shape[-1] == shape.volume(),
             "A sharded input must be (1, 1, {}, {}), not {}", pool.batch * pool.image(),
             pool.channels, shape);
    const bool is_flat = shape.rank() < 3 || shape[-2] * shape[-1] == shape.volume();
    TT_FATAL(input.dtype() != DataType::BFLOAT4_B || is_flat,
             "Can only work with bfloat16/float32 or int32/uint32 tensors");
    TT_FATAL(shape.rank() != 2 || (pool.batch == 1 && pool.channels == 1),
             "Pool2D: For rank-2 input [H, W], batch_size and channels must be 1, got "
             "batch_size={}, channels={}",
             pool.batch, pool.channels);
    TT_FATAL(shape.rank() != 2 || (shape[0] == pool.height && shape[1] == pool.width),
             "Pool2D: For rank-2 input [H, W], dimensions must match: input_h={}, input_w={}, but "
             "got shape {}",
             pool.height, pool.width, shape);
    TT_FATAL(shape.rank() != 3 || (pool.batch == 1 && shape[0] == pool.height &&
                                   shape[1] == pool.width && shape[2] == pool.channels),
             "Pool2D: For rank-3 input [H, W, C], dimensions must match: input_h={}, input_w={}, "
             "channels={}, but got shape {}",
             pool.height, pool.width, pool.channels, shape);
    const int64_t volume = pool.batch * pool.image() * pool.channels;
    TT_FATAL(static_cast<int64_t>(input.logical_volume()) == volume &&
                 (shape.rank() < 4 || shape[-1] == pool.channels),
             "Pool2D: the input {} has not the {} elements of batch {}, height {}, width {} and {} "
             "channels",
             shape, volume, pool.batch, pool.height, pool.width, pool.channels);
}

/// Elements of the largest window.
int64_t kernel_size(const Pool& pool) {
    const auto largest = [](const std::vector<Window>& windows) {
        int64_t size = 0;
        for (const Window& window : windows) {
            size = std::max(size, window.kernel);
        }
        return size;
    };
    return largest(pool.rows) * largest(pool.columns);
}

/// The result image of a max pool.
PooledImage pooled_image(const Pool& pool, const PoolOptions& options) {
    PooledImage image;
    image.rows = static_cast<uint32_t>(pool.batch * pool.rows.size() * pool.columns.size());
    image.channels = pool.channels;
    image.kernel = kernel_size(pool);
    image.dtype = options.dtype;
    image.layout = options.layout;
    image.config_in_dram = options.config_in_dram;
    return image;
}

Tensor make_output(const Tensor& input, const PooledImage& image, const PoolOptions& options,
                   DataType dtype) {
    // The pool itself leaves its result in shards, which must be valid whatever its final memory.
    const MemoryConfig own = pooled_memory(input, image, options.scheme);
    return allocate_like(input, Shape({1, 1, image.rows, image.channels}), dtype, options.layout,
                         options.memory_config.value_or(own));
}

/// Calls `pool_window(rows, columns, image, channels, result row)` for each output pixel.
template <typename Function>
void for_each_output(const Pool& pool, const Function& pool_window) {
    const std::size_t outputs = pool.rows.size() * pool.columns.size();
    const auto work = static_cast<std::size_t>(pool.channels) * 9;
    parallel_for(pool.batch * outputs, std::max<std::size_t>(1, (std::size_t{1} << 15) / work),
                 [&](std::size_t begin, std::size_t end) {
                     std::vector<float> values(pool.channels);
                     for (std::size_t i = begin; i < end; ++i) {
                         const Window& row = pool.rows[i % outputs / pool.columns.size()];
                         const Window& column = pool.columns[i % pool.columns.size()];
                         pool_window(i, i / outputs, row, column, values.data());
                     }
                 });
}

/// Calls `visit(position)` for each input pixel of a window.
template <typename Function>
void for_each_input(const Pool& pool, const Window& row, const Window& column,
                    const Function& visit) {
    for (int64_t y = row.begin; y < row.end; y += row.dilation) {
        for (int64_t x = column.begin; x < column.end; x += column.dilation) {
            visit(y * pool.width + x);
        }
    }
}

/// Writes the maximum of each window, and its position in the image as an Index.
template <typename Index>
void find_maxima(const Tensor& input, const Pool& pool, const Tensor& output,
                 const std::optional<Tensor>& indices) {
    const FloatElements elements(input);
    std::byte* stored = buffer_of(output).data();
    const std::size_t channels = pool.channels;
    for_each_output(pool, [&](std::size_t i, std::size_t batch, const Window& row,
                              const Window& column, float* maxima) {
        std::fill_n(maxima, channels, -std::numeric_limits<float>::infinity());
        const float* source =
            elements.data() + batch * static_cast<std::size_t>(pool.image()) * channels;
        Index* positions =
            indices ? reinterpret_cast<Index*>(buffer_of(*indices).data()) + i * channels : nullptr;
        if (positions != nullptr) {
            std::fill_n(positions, channels,
                        static_cast<Index>(row.begin * pool.width + column.begin));
        }
        for_each_input(pool, row, column, [&](int64_t position) {
            const float* pixel = source + static_cast<std::size_t>(position) * channels;
            if (positions != nullptr) {
                for (std::size_t c = 0; c < channels; ++c) {
                    positions[c] =
                        pixel[c] > maxima[c] || (pixel[c] != pixel[c] && maxima[c] == maxima[c])
                            ? static_cast<Index>(position)
                            : positions[c];
                }
            }
            for (std::size_t c = 0; c < channels; ++c) {
                maxima[c] = pixel[c] > maxima[c] || pixel[c] != pixel[c] ? pixel[c] : maxima[c];
            }
        });
        store_floats(maxima, channels, output.dtype(),
                     stored + i * channels * stored_size(output.dtype()));
    });
}

std::vector<Tensor> run_max_pool(const Tensor& input, const Pool& pool, const PoolOptions& options,
                                 bool return_indices) {
    check_input(input, pool);
    PooledImage image = pooled_image(pool, options);
    image.returns_indices = return_indices;
    const Tensor output = make_output(input, image, options, options.dtype);
    std::optional<Tensor> indices;
    if (return_indices) {
        TT_FATAL(options.layout == Layout::ROW_MAJOR,
                 "Only ROW_MAJOR supported when return_indices is true");
        const bool narrow = pool.image() <= std::numeric_limits<uint16_t>::max();
        indices = make_output(input, image, options, narrow ? DataType::UINT16 : DataType::UINT32);
    }
    if (indices && indices->dtype() == DataType::UINT32) {
        find_maxima<uint32_t>(input, pool, output, indices);
    } else {
        find_maxima<uint16_t>(input, pool, output, indices);
    }
    finish_block_float(output);
    // An interleaved input is sharded first, and only that copy is deallocated.
    if (options.deallocate_input && input.is_sharded()) {
        Tensor(input).deallocate(true);
    }
    return indices ? std::vector<Tensor>{output, *indices} : std::vector<Tensor>{output};
}

/// The factor of each element of a window: the reciprocal of its size, truncated to bfloat16.
float factor_of(const Window& row, const Window& column, bool count_include_pad,
                std::optional<int32_t> divisor_override) {
    int64_t count =
        std::max<int64_t>(row.end - row.begin, 0) * std::max<int64_t>(column.end - column.begin, 0);
    if (divisor_override) {
        count = *divisor_override;
    } else if (count_include_pad) {
        count = row.padded_size * column.padded_size;
    }
    return count == 0 ? 0.0F : MantissaCut(7)(1.0F / static_cast<float>(count));
}

/// Returns whether all windows have the same factor.
bool has_uniform_factor(const Pool& pool, bool count_include_pad) {
    const auto are_equal = [&](const std::vector<Window>& windows) {
        return std::all_of(windows.begin(), windows.end(), [&](const Window& window) {
            return count_include_pad ? window.padded_size == windows.front().padded_size
                                     : window.padded_size == window.end - window.begin;
        });
    };
    return are_equal(pool.rows) && are_equal(pool.columns);
}

Arithmetic arithmetic_of_average(const Tensor& input, const Pool& pool,
                                 const std::optional<DeviceComputeKernelConfig>& compute) {
    const bool is_large = kernel_size(pool) > reduced_at_once(pool.channels);
    return arithmetic_of(compute, is_large ? ComputeDefault::large_pool : ComputeDefault::pool,
                         std::array{input.dtype()}, false);
}

Tensor run_avg_pool(const Tensor& input, const Pool& pool, const PoolOptions& options,
                    bool count_include_pad, std::optional<int32_t> divisor_override,
                    const std::optional<DeviceComputeKernelConfig>& compute) {
    check_input(input, pool);
    TT_FATAL(!divisor_override || *divisor_override != 0, "divisor_override must not be 0");
    const Arithmetic arithmetic = arithmetic_of_average(input, pool, compute);
    const int64_t at_once = reduced_at_once(pool.channels);
    PooledImage image = pooled_image(pool, options);
    image.is_average = true;
    image.has_one_scalar = divisor_override || has_uniform_factor(pool, count_include_pad);
    const Tensor output = make_output(input, image, options, options.dtype);
    const FloatElements elements(input);
    std::byte* stored = buffer_of(output).data();
    const std::size_t channels = pool.channels;
    for_each_output(pool, [&](std::size_t i, std::size_t batch, const Window& row,
                              const Window& column, float* sums) {
        std::fill_n(sums, channels, 0.0F);
        const float* source =
            elements.data() + batch * static_cast<std::size_t>(pool.image()) * channels;
        const float share = factor_of(row, column, count_include_pad, divisor_override);
        int64_t reduced = 0;
        for_each_input(pool, row, column, [&](int64_t position) {
            const float* pixel = source + static_cast<std::size_t>(position) * channels;
            const int64_t element =
                (row.first + position / pool.width - row.begin) * column.kernel + column.first +
                position % pool.width - column.begin;
            const bool is_next = arithmetic.narrow_sums && element / at_once != reduced;
            reduced = element / at_once;
            for (std::size_t c = 0; c < channels; ++c) {
                const float sum = is_next ? round_to_bf16(sums[c]) : sums[c];
                sums[c] = sum + arithmetic.product(pixel[c], share);
            }
        });
        store_floats(sums, channels, options.dtype,
                     stored + i * channels * stored_size(options.dtype));
    });
    finish_block_float(output);
    if (options.deallocate_input && input.is_sharded()) {
        Tensor(input).deallocate(true);
    }
    return output;
}

void check_options(const Tensor& input, const PoolOptions& options) {
    TT_FATAL(options.dtype == DataType::BFLOAT16 || is_block(options.dtype),
             "Currently only BFLOAT16, BFLOAT8_B, and BFLOAT4_B output data formats are supported");
    TT_FATAL(!is_block(options.dtype) || options.layout == Layout::TILE,
             "BFLOAT8_B/BFLOAT4_B output data format is not supported with ROW_MAJOR layout");
    if (!options.config_in_dram && on_device(input)) {
        require_l1_small(device_of(input));
    }
}

/// Windows [floor(i * input / output), ceil((i + 1) * input / output)), which only some sizes make
/// uniform up to padding.
std::vector<Window> adaptive_windows(uint32_t input, uint32_t output) {
    TT_FATAL(output > 0, "Adaptive pooling to size 0");
    std::vector<Window> windows;
    int64_t kernel = 0;
    for (int64_t i = 0; i < output; ++i) {
        const int64_t begin = i * input / output;
        const int64_t end = ((i + 1) * input + output - 1) / output;
        windows.push_back({begin, end, 1, end - begin, end - begin});
        kernel = std::max(kernel, end - begin);
    }
    const int64_t padding = kernel - (windows[0].end - windows[0].begin);
    const int64_t stride = output > 1 ? windows[1].begin + padding : 1;
    for (int64_t i = 0; i < output; ++i) {
        const int64_t start = i * stride - padding;
        const Window& window = windows[static_cast<std::size_t>(i)];
        if (std::max<int64_t>(start, 0) != window.begin ||
            std::min<int64_t>(start + kernel, input) != window.end) {
            TT_THROW(
                "Adaptive pooling configuration not supported. No kernel and stride divide {} "
                "inputs into {} outputs",
                input, output);
        }
    }
    return windows;
}

Pool adaptive_pool(uint32_t batch_size, uint32_t input_h, uint32_t input_w, uint32_t channels,
                   std::array<uint32_t, 2> output_size) {
    return {batch_size,
            channels,
            input_h,
            input_w,
            adaptive_windows(input_h, output_size[0]),
            adaptive_windows(input_w, output_size[1])};
}

}  // namespace

namespace operations::pool {

std::vector<Tensor> max_pool2d(
    const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h, uint32_t input_w,
    uint32_t channels, std::array<uint32_t, 2> kernel_size, std::array<uint32_t, 2> stride,
    std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
    std::array<uint32_t, 2> dilation, bool ceil_mode,
    const std::optional<const MemoryConfig>& memory_config,
    const std::optional<Op2DSliceConfig>& ignored,
    std::optional<const TensorMemoryLayout> applied_shard_scheme, bool deallocate_input,
    bool ignored_2, bool return_indices, DataType dtype, Layout output_layout,
    bool config_tensor_in_dram) {
    TTCODEGEN_ON_EACH_CHIP(max_pool2d, input_tensor, batch_size, input_h, input_w, channels,
                           kernel_size, stride, padding, dilation, ceil_mode, memory_config,
                           ignored, applied_shard_scheme, deallocate_input, ignored_2,
                           return_indices, dtype, output_layout, config_tensor_in_dram);
    const PoolOptions options{dtype,
                              output_layout,
                              memory_config,
                              applied_shard_scheme,
                              deallocate_input,
                              config_tensor_in_dram};
    check_options(input_tensor, options);
    const auto axes = pool_axes({input_h, input_w}, kernel_size, stride, padding, dilation);
    const Pool pool{batch_size,
                    channels,
                    input_h,
                    input_w,
                    axes[0].windows(ceil_mode),
                    axes[1].windows(ceil_mode)};
    return run_max_pool(input_tensor, pool, options, return_indices);
}

Tensor avg_pool2d(const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h,
                  uint32_t input_w, uint32_t channels, std::array<uint32_t, 2> kernel_size,
                  std::array<uint32_t, 2> stride,
                  std::variant<std::array<uint32_t, 2>, std::array<uint32_t, 4>> padding,
                  bool ceil_mode, bool count_include_pad, std::optional<int32_t> divisor_override,
                  const std::optional<const MemoryConfig>& memory_config,
                  const std::optional<Op2DSliceConfig>& ignored,
                  std::optional<const TensorMemoryLayout> applied_shard_scheme,
                  const std::optional<DeviceComputeKernelConfig>& compute_kernel_config,
                  bool deallocate_input, bool ignored_2, DataType dtype, Layout output_layout,
                  bool config_tensor_in_dram) {
    TTCODEGEN_ON_EACH_CHIP(avg_pool2d, input_tensor, batch_size, input_h, input_w, channels,
                           kernel_size, stride, padding, ceil_mode, count_include_pad,
                           divisor_override, memory_config, ignored, applied_shard_scheme,
                           compute_kernel_config, deallocate_input, ignored_2, dtype, output_layout,
                           config_tensor_in_dram);
    const PoolOptions options{dtype,
                              output_layout,
                              memory_config,
                              applied_shard_scheme,
                              deallocate_input,
                              config_tensor_in_dram};
    check_options(input_tensor, options);
    const auto axes = pool_axes({input_h, input_w}, kernel_size, stride, padding, {1, 1});
    const Pool pool{batch_size,
                    channels,
                    input_h,
                    input_w,
                    axes[0].windows(ceil_mode),
                    axes[1].windows(ceil_mode)};
    return run_avg_pool(input_tensor, pool, options, count_include_pad, divisor_override,
                        compute_kernel_config);
}

Tensor global_avg_pool2d(const Tensor& input, const std::optional<MemoryConfig>& memory_config_arg,
                         const std::optional<DataType>& ignored) {
    TTCODEGEN_ON_EACH_CHIP(global_avg_pool2d, input, memory_config_arg, ignored);
    TT_FATAL(on_device(input), "Input tensor needs to be on device");
    const Shape& shape = input.logical_shape();
    if (shape.rank() < 2 || shape.rank() > 4) {
        TT_THROW("Input tensor must be rank 2, 3, or 4, got rank {}", shape.rank());
    }
    const Shape image = shape.to_rank(4);
    // The output type argument has no effect in ttnn: the result keeps the input's.
    const Tensor pixels =
        make_view(input, make_spec(image, input.dtype(), input.layout(), input.memory_config()));
    const Tensor result = mean(pixels, SmallVector<int>{1, 2}, true, memory_config_arg);
    // Unlike other reductions, this one keeps bf8 for all sizes.
    return result.dtype() == input.dtype() ? result : typecast(result, input.dtype());
}

}  // namespace operations::pool

namespace operations::experimental::adaptive_pool {

Tensor adaptive_avg_pool2d(const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h,
                           uint32_t input_w, uint32_t channels, std::array<uint32_t, 2> output_size,
                           const std::optional<const MemoryConfig>& memory_config,
                           const std::optional<op_slicing::Op2DSliceConfig>& ignored,
                           std::optional<const TensorMemoryLayout> applied_shard_scheme,
                           const std::optional<DeviceComputeKernelConfig>& compute_kernel_config,
                           bool deallocate_input, bool ignored_2) {
    TTCODEGEN_ON_EACH_CHIP(adaptive_avg_pool2d, input_tensor, batch_size, input_h, input_w,
                           channels, output_size, memory_config, ignored, applied_shard_scheme,
                           compute_kernel_config, deallocate_input, ignored_2);
    const PoolOptions options{DataType::BFLOAT16, Layout::ROW_MAJOR, memory_config,
                              applied_shard_scheme, deallocate_input};
    check_options(input_tensor, options);
    const Pool pool = ttnn::adaptive_pool(batch_size, input_h, input_w, channels, output_size);
    return run_avg_pool(input_tensor, pool, options, false, std::nullopt, compute_kernel_config);
}

Tensor adaptive_max_pool2d(const Tensor& input_tensor, uint32_t batch_size, uint32_t input_h,
                           uint32_t input_w, uint32_t channels, std::array<uint32_t, 2> output_size,
                           const std::optional<const MemoryConfig>& memory_config,
                           const std::optional<op_slicing::Op2DSliceConfig>& ignored,
                           std::optional<const TensorMemoryLayout> applied_shard_scheme,
                           bool deallocate_input, bool ignored_2) {
    TTCODEGEN_ON_EACH_CHIP(adaptive_max_pool2d, input_tensor, batch_size, input_h, input_w,
                           channels, output_size, memory_config, ignored, applied_shard_scheme,
                           deallocate_input, ignored_2);
    const PoolOptions options{DataType::BFLOAT16, Layout::ROW_MAJOR, memory_config,
                              applied_shard_scheme, deallocate_input};
    check_options(input_tensor, options);
    const Pool pool = ttnn::adaptive_pool(batch_size, input_h, input_w, channels, output_size);
    return run_max_pool(input_tensor, pool, options, false).front();
}

}  // namespace operations::experimental::adaptive_pool

}  // namespace ttnn
