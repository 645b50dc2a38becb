#include "ttnn/operations/pool/upsample/upsample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "compute/arithmetic.hpp"
#include "compute/sharding.hpp"
#include "core/chips.hpp"
#include "core/convert.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

namespace {

using ScaleFactor = std::variant<int, std::array<int, 2>, float, std::array<float, 2>>;

/// Scale factors of height and width.
std::array<float, 2> factors(const ScaleFactor& scale_factor) {
    return std::visit(
        [](const auto& scale) -> std::array<float, 2> {
            if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(scale)>>) {
                return {static_cast<float>(scale), static_cast<float>(scale)};
            } else {
                return {static_cast<float>(scale[0]), static_cast<float>(scale[1])};
            }
        },
        scale_factor);
}

bool is_whole(const std::array<float, 2>& scales) {
    return scales[0] == std::floor(scales[0]) && scales[1] == std::floor(scales[1]);
}

Shape enlarged(const Shape& shape, const std::array<float, 2>& scales) {
    const auto scaled = [](std::uint32_t size, float scale) {
        return static_cast<std::uint32_t>(std::floor(static_cast<float>(size) * scale));
    };
    return Shape({shape[0], scaled(shape[1], scales[0]), scaled(shape[2], scales[1]), shape[3]});
}

void check_nearest(const Tensor& input, const std::array<float, 2>& scales) {
    if (input.layout() == Layout::ROW_MAJOR) {
        return;
    }
    const Shape& shape = input.logical_shape();
    TT_FATAL(shape[-1] % 32 == 0 && shape[-2] % 32 == 0,
             "Tiled input must be tile-aligned (no padding difference)");
    TT_FATAL(is_whole(scales),
             "Unsupported upsample configuration: Mode: nearest Scales: {} x {} Layout: TILE",
             scales[0], scales[1]);
}

void check_bilinear(const Tensor& input, const std::array<float, 2>& scales) {
    TT_FATAL(input.layout() == Layout::ROW_MAJOR, "bilinear mode needs a row-major tensor");
    TT_FATAL(is_whole(scales), "bilinear mode requires integer scale factors, got ({}, {})",
             scales[0], scales[1]);
    TT_FATAL(input.dtype() == DataType::BFLOAT16, "bilinear mode takes BFLOAT16, not {}",
             input.dtype());
    TT_FATAL(input.logical_shape()[-1] % 32 == 0, "input channels should be divisible by 32");
}

/// Calls `body(image, row, result pixel row)` for every row of the result.
template <typename Body>
void for_each_row(const Shape& result, const Body& body) {
    parallel_for(std::size_t{result[0]} * result[1], 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            body(i / result[1], i % result[1], i);
        }
    });
}

void nearest(const Tensor& input, const Tensor& output, const std::array<float, 2>& scales) {
    const Shape& shape = input.logical_shape();
    const Shape& result = output.logical_shape();
    const std::size_t pixel = shape[3] * stored_size(input.dtype());
    const std::byte* from = buffer_of(input).data();
    std::byte* to = buffer_of(output).data();
    const auto origin = [](std::size_t position, float scale, std::uint32_t size) {
        const auto at = static_cast<std::size_t>(std::floor(static_cast<float>(position) / scale));
        return std::min<std::size_t>(at, size - 1);
    };
    for_each_row(result, [&](std::size_t image, std::size_t row, std::size_t flat) {
        const std::byte* source =
            from + (image * shape[1] + origin(row, scales[0], shape[1])) * shape[2] * pixel;
        std::byte* target = to + flat * result[2] * pixel;
        for (std::size_t column = 0; column < result[2]; ++column) {
            std::memcpy(target + column * pixel,
                        source + origin(column, scales[1], shape[2]) * pixel, pixel);
        }
    });
}

/// The two source positions of a result position, and the weight of the second one.
struct Neighbours {
    Neighbours(std::size_t position, float scale, std::uint32_t size) {
        const float centre = (static_cast<float>(position) + 0.5F) / scale - 0.5F;
        const float clamped = std::clamp(centre, 0.0F, static_cast<float>(size - 1));
        low = static_cast<std::size_t>(clamped);
        high = std::min<std::size_t>(low + 1, size - 1);
        weight = clamped - static_cast<float>(low);
    }
    std::size_t low;
    std::size_t high;
    float weight;

    /// The weights of both as fixed-point numbers, as in the kernel.
    std::array<std::uint32_t, 2> shares() const {
        const auto second = static_cast<std::uint32_t>(weight * kOne);
        return {kOne - second, second};
    }
    static constexpr int kFraction = 16;
    static constexpr std::uint32_t kOne = 1U << kFraction;
};

/// The product of a row and a column weight, truncated to bfloat16.
float weight_of(std::uint32_t row, std::uint32_t column) {
    const auto share = std::uint64_t{row} * column >> Neighbours::kFraction;
    return MantissaCut(7)(static_cast<float>(share) / static_cast<float>(Neighbours::kOne));
}

void bilinear(const Tensor& input, const Tensor& output, const std::array<float, 2>& scales,
              const Arithmetic& arithmetic) {
    const Shape& shape = input.logical_shape();
    const Shape& result = output.logical_shape();
    const std::size_t channels = shape[3];
    const FloatElements values(input);
    const auto target = mutable_elements<std::uint16_t>(output);
    for_each_row(result, [&](std::size_t image, std::size_t row, std::size_t flat) {
        const Neighbours y(row, scales[0], shape[1]);
        const float* top = values.data() + (image * shape[1] + y.low) * shape[2] * channels;
        const float* bottom = values.data() + (image * shape[1] + y.high) * shape[2] * channels;
        for (std::size_t column = 0; column < result[2]; ++column) {
            const Neighbours x(column, scales[1], shape[2]);
            std::uint16_t* pixel = target.data() + (flat * result[2] + column) * channels;
            const auto [above, below] = y.shares();
            const auto [before, after] = x.shares();
            const std::array weights{weight_of(above, before), weight_of(above, after),
                                     weight_of(below, before), weight_of(below, after)};
            const std::array sources{top + x.low * channels, top + x.high * channels,
                                     bottom + x.low * channels, bottom + x.high * channels};
            for (std::size_t c = 0; c < channels; ++c) {
                float sum = 0.0F;
                for (std::size_t i = 0; i < weights.size(); ++i) {
                    sum += arithmetic.product(sources[i][c], weights[i]);
                }
                pixel[c] = bf16_bits(sum);
            }
        }
    });
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn::operations::upsample {

namespace cpu = ttcodegen::cpu;

namespace {

using tt::tt_metal::ShardSpec;

/// The same sharding with shards higher by the factor of pixels.
MemoryConfig with_more_rows(const MemoryConfig& memory, const Shape& shape, const Shape& result) {
    ShardSpec shards = memory.shard_spec().value();
    const auto pixels = [](const Shape& image) { return image[0] * image[1] * image[2]; };
    shards.shape[0] *= pixels(result) / pixels(shape);
    return memory.with_shard_spec(shards);
}

/// The memory config of a bilinear result without shard spec: pixels are sharded over all cores.
MemoryConfig autosharded(const Shape& shape, const Shape& result) {
    return with_more_rows(cpu::sharded_l1(TensorMemoryLayout::HEIGHT_SHARDED,
                                          shape[0] * shape[1] * shape[2], shape[3], 1),
                          shape, result);
}

/// The memory config of the result: a sharded image keeps its cores, and a requested sharding
/// without shard spec is ignored then.
MemoryConfig enlarged_memory(const Tensor& input, const Shape& result,
                             const std::optional<MemoryConfig>& asked) {
    if (!input.is_sharded()) {
        return asked.value_or(input.memory_config());
    }
    TT_FATAL(!asked || asked->is_sharded(),
             "bad optional access: the result of a sharded image is sharded");
    return asked && asked->shard_spec()
               ? *asked
               : with_more_rows(input.memory_config(), input.logical_shape(), result);
}

}  // namespace

Tensor upsample(const Tensor& input,
                std::variant<int, std::array<int, 2>, float, std::array<float, 2>> scale_factor,
                const std::string& mode, const std::optional<MemoryConfig>& output_mem_config,
                const std::optional<DeviceComputeKernelConfig>& compute_kernel_config) {
    TTCODEGEN_ON_EACH_CHIP(upsample, input, scale_factor, mode, output_mem_config,
                           compute_kernel_config);
    cpu::require_on_device(input, "Tensor to upsample");
    const Shape& shape = input.logical_shape();
    TT_FATAL(shape.rank() == 4, "upsample takes a tensor (N, H, W, C), not {}", shape);
    TT_FATAL(mode == "nearest" || mode == "bilinear",
             "upsample mode must be nearest or bilinear, not {}", mode);
    const auto scales = cpu::factors(scale_factor);
    TT_FATAL(scales[0] > 0.0F && scales[1] > 0.0F, "Scale factors must be positive: ({}, {})",
             scales[0], scales[1]);
    const Shape result = cpu::enlarged(shape, scales);
    if (mode == "nearest") {
        cpu::check_nearest(input, scales);
        // bf8 tiles become bf16 rows.
        const DataType dtype =
            input.dtype() == DataType::BFLOAT8_B ? DataType::BFLOAT16 : input.dtype();
        const Tensor output = cpu::allocate_like(input, result, dtype, Layout::ROW_MAJOR,
                                                 enlarged_memory(input, result, output_mem_config));
        cpu::nearest(cpu::with_type(input, dtype), output, scales);
        return output;
    }
    cpu::check_bilinear(input, scales);
    TT_FATAL(!compute_kernel_config || !compute_kernel_config->fp32_dest_acc_en,
             "fp32_dest_acc_en as true not supported for upsample bilinear");
    cpu::require_l1_small(cpu::device_of(input));
    TT_FATAL(!input.is_sharded() ||
                 input.memory_config().memory_layout() == TensorMemoryLayout::HEIGHT_SHARDED,
             "Halos of a bilinear image are of shards by height");
    const Tensor output =
        cpu::allocate_like(input, result, DataType::BFLOAT16, Layout::ROW_MAJOR,
                           enlarged_memory(input, result,
                                           output_mem_config || input.is_sharded()
                                               ? output_mem_config
                                               : std::optional(autosharded(shape, result))));
    cpu::bilinear(input, output, scales,
                  cpu::arithmetic_of(compute_kernel_config, cpu::ComputeDefault::upsample,
                                     std::array{input.dtype()}, false));
    return output;
}

}  // namespace ttnn::operations::upsample
