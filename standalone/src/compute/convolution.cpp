#include "compute/convolution.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/parallel.hpp"

namespace ttcodegen::cpu {
namespace {

constexpr std::int64_t kOutside = -1;

/// The input position of tap `tap` for output `output`, or kOutside.
std::int64_t input_position(const ConvolutionAxis& axis, bool replicate, std::int64_t output,
                            std::int64_t tap) {
    const std::int64_t position = output * axis.stride - axis.padding + tap * axis.dilation;
    const std::int64_t last = (axis.input - 1) * axis.input_dilation;
    if (replicate) {
        return std::clamp<std::int64_t>(position, 0, last) / axis.input_dilation;
    }
    if (position < 0 || position > last || position % axis.input_dilation != 0) {
        return kOutside;
    }
    return position / axis.input_dilation;
}

/// Gathers rows of the left operand (im2col): for each output pixel its taps, each with the group's
/// channels.
///
/// A line is the input of one row of the kernel: kernel width x channels elements, contiguous where
/// taps are neighbours.
template <typename Element, typename Source>
class PixelGatherer {
  public:
    PixelGatherer(const Convolution& convolution, const Source* input, MantissaCut cut)
        : convolution_(convolution),
          input_(input),
          cut_(cut),
          channels_(convolution.group_in()),
          line_(convolution.axes[2].kernel * channels_),
          lines_are_runs_(convolution.groups == 1 && convolution.axes[2].dilation == 1 &&
                          convolution.axes[2].input_dilation == 1 && !convolution.replicate &&
                          convolution.pixel_channels == convolution.in_channels) {}

    void operator()(std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t depth,
                    std::int64_t depths, Element* out, std::int64_t stride) const {
        for (std::int64_t r = 0; r < rows; ++r, out += stride) {
            gather_pixel(group, row + r, depth, depth + depths, out);
        }
    }

  private:
    void gather_pixel(std::int64_t group, std::int64_t pixel, std::int64_t begin, std::int64_t end,
                      Element* out) const {
        const auto& [depth_axis, height_axis, width_axis] = convolution_.axes;
        const std::int64_t x = pixel % width_axis.output;
        const std::int64_t y = pixel / width_axis.output % height_axis.output;
        const std::int64_t above = pixel / width_axis.output / height_axis.output;
        const std::int64_t z = above % depth_axis.output;
        const std::int64_t image = above / depth_axis.output;
        for (std::int64_t line = begin / line_; line * line_ < end; ++line) {
            const std::int64_t from = std::max(begin, line * line_) - line * line_;
            const std::int64_t to = std::min(end - line * line_, line_);
            const std::int64_t source_z =
                input_position(depth_axis, convolution_.replicate, z, line / height_axis.kernel);
            const std::int64_t source_y =
                input_position(height_axis, convolution_.replicate, y, line % height_axis.kernel);
            Element* target = out + line * line_ + from - begin;
            if (source_z == kOutside || source_y == kOutside) {
                std::fill_n(target, to - from, Element{});
                continue;
            }
            const Source* source_line =
                input_ + ((image * depth_axis.input + source_z) * height_axis.input + source_y) *
                             width_axis.input * convolution_.pixel_channels;
            if (lines_are_runs_) {
                gather_run(source_line, x, from, to, target);
            } else {
                gather_taps(source_line + group * channels_, x, from, to, target);
            }
        }
    }

    void gather_run(const Source* line, std::int64_t x, std::int64_t from, std::int64_t to,
                    Element* target) const {
        const ConvolutionAxis& axis = convolution_.axes[2];
        const std::int64_t start = (x * axis.stride - axis.padding) * channels_;
        const std::int64_t present_from = std::clamp<std::int64_t>(-start, from, to);
        const std::int64_t present_to =
            std::clamp<std::int64_t>(axis.input * channels_ - start, present_from, to);
        std::fill_n(target, present_from - from, Element{});
        copy(line + start + present_from, present_to - present_from, target + present_from - from);
        std::fill_n(target + present_to - from, to - present_to, Element{});
    }

    void gather_taps(const Source* line, std::int64_t x, std::int64_t from, std::int64_t to,
                     Element* target) const {
        for (std::int64_t tap = from / channels_; tap * channels_ < to; ++tap) {
            const std::int64_t first = std::max(from, tap * channels_);
            const std::int64_t count = std::min(to, (tap + 1) * channels_) - first;
            const std::int64_t source_x =
                input_position(convolution_.axes[2], convolution_.replicate, x, tap);
            if (source_x == kOutside) {
                std::fill_n(target + first - from, count, Element{});
            } else {
                copy(line + source_x * convolution_.pixel_channels + first - tap * channels_, count,
                     target + first - from);
            }
        }
    }

    void copy(const Source* source, std::int64_t count, Element* target) const {
        for (std::int64_t i = 0; i < count; ++i) {
            target[i] = cut_(convert_element<Element>(source[i]));
        }
    }

    const Convolution convolution_;
    const Source* input_;
    const MantissaCut cut_;
    const std::int64_t channels_;
    const std::int64_t line_;
    const bool lines_are_runs_;
};

/// Weights as one matrix (taps x input channels, output channels) per group.
std::vector<float> weight_matrices(const Tensor& weights, const WeightStrides& strides,
                                   DataType dtype, const Convolution& convolution) {
    const FloatElements elements(weights);
    const std::int64_t columns = convolution.group_out();
    const std::int64_t channels = convolution.group_in();
    // Not all of prepared weights, which have zeros between the groups.
    std::vector<float> matrices(
        static_cast<std::size_t>(convolution.groups * convolution.taps() * channels * columns));
    float* target = matrices.data();
    for (std::int64_t group = 0; group < convolution.groups; ++group) {
        for (std::int64_t tap = 0; tap < convolution.taps(); ++tap) {
            for (std::int64_t channel = 0; channel < channels; ++channel) {
                const float* source = elements.data() + group * strides.group + strides.first_tap +
                                      tap * strides.tap +
                                      channel % strides.channel_block * strides.in_channel +
                                      channel / strides.channel_block * strides.block;
                for (std::int64_t column = 0; column < columns; ++column) {
                    *target++ = source[column * strides.out_channel];
                }
            }
        }
    }
    if (is_block(dtype)) {
        quantize_block_float(matrices.data(), matrices.size() / static_cast<std::size_t>(columns),
                             static_cast<std::size_t>(columns), dtype, BlockRounding::Host);
    } else if (dtype == DataType::BFLOAT16) {
        std::transform(matrices.begin(), matrices.end(), matrices.begin(), round_to_bf16);
    }
    return matrices;
}

std::uint64_t key_of(const WeightStrides& strides, DataType dtype, const Convolution& convolution,
                     MantissaCut cut, std::uint64_t form) {
    std::uint64_t key = mix_key(mix_key(form, static_cast<std::uint64_t>(dtype)), cut.mask());
    for (const std::int64_t value :
         {strides.group, strides.out_channel, strides.in_channel, strides.tap, strides.first_tap,
          strides.channel_block, strides.block, convolution.taps(), convolution.groups,
          convolution.in_channels, convolution.out_channels}) {
        key = mix_key(key, static_cast<std::uint64_t>(value));
    }
    return key;
}

template <typename Element>
void convolve_as_product(const Tensor& input, const Tensor& weights, const WeightStrides& strides,
                         DataType weights_dtype, const Convolution& convolution,
                         const Arithmetic& arithmetic, const ProductOutput& output) {
    const std::int64_t depth = convolution.taps() * convolution.group_in();
    const std::int64_t columns = convolution.group_out();
    const auto packed = derive<PackedOperand<Element>>(
        weights,
        key_of(strides, weights_dtype, convolution, arithmetic.second(), 16 + sizeof(Element)),
        [&] {
            const auto matrices = weight_matrices(weights, strides, weights_dtype, convolution);
            return std::make_shared<PackedOperand<Element>>(
                PackedMatrix<Element>::pack(convolution.groups, depth, columns, matrices.data(),
                                            {depth * columns, columns, 1}, arithmetic.second()));
        });
    visit_elements(input, [&](const auto* data) {
        using Source = std::remove_cvref_t<decltype(*data)>;
        multiply<Element>(
            convolution.groups, convolution.pixels(),
            PixelGatherer<Element, Source>(convolution, data, arithmetic.first()), packed->matrix,
            sums_of(arithmetic),
            [&](std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                std::int64_t count, float* block, std::int64_t stride) {
                output.store(row, rows, group * columns + column, count, block, stride);
            });
    });
}

struct DepthwiseWeights : Derived {
    std::vector<float> by_tap;
};

/// The weights of a depthwise convolution, ordered by tap.
std::shared_ptr<const DepthwiseWeights> depthwise_weights(const Tensor& weights,
                                                          const WeightStrides& strides,
                                                          DataType dtype,
                                                          const Convolution& convolution,
                                                          MantissaCut cut) {
    return derive<DepthwiseWeights>(weights, key_of(strides, dtype, convolution, cut, 1), [&] {
        const auto by_channel = weight_matrices(weights, strides, dtype, convolution);
        const auto taps = static_cast<std::size_t>(convolution.taps());
        const auto channels = static_cast<std::size_t>(convolution.in_channels);
        auto result = std::make_shared<DepthwiseWeights>();
        result->by_tap.resize(by_channel.size());
        for (std::size_t i = 0; i < by_channel.size(); ++i) {
            result->by_tap[i % taps * channels + i / taps] = cut(by_channel[i]);
        }
        return result;
    });
}

/// Depthwise convolution: not worth a matmul, so vectors run over channels.
void convolve_depthwise(const Tensor& input, const Tensor& weights, const WeightStrides& strides,
                        DataType weights_dtype, const Convolution& convolution,
                        const Arithmetic& arithmetic, const ProductOutput& output) {
    const MantissaCut cut = arithmetic.first();
    constexpr std::int64_t chunk = 64;
    const std::int64_t channels = convolution.in_channels;
    const std::int64_t taps = convolution.taps();
    const auto prepared =
        depthwise_weights(weights, strides, weights_dtype, convolution, arithmetic.second());
    const FloatElements elements(input);
    const auto& [depth_axis, height_axis, width_axis] = convolution.axes;
    const auto convolve_pixel = [&](std::int64_t pixel, std::int64_t first, std::int64_t count,
                                    float* sums) {
        const std::int64_t x = pixel % width_axis.output;
        const std::int64_t y = pixel / width_axis.output % height_axis.output;
        const std::int64_t above = pixel / width_axis.output / height_axis.output;
        std::fill_n(sums, count, 0.0F);
        for (std::int64_t tap = 0; tap < taps; ++tap) {
            const std::int64_t tap_y = tap / width_axis.kernel % height_axis.kernel;
            const std::int64_t source_z =
                input_position(depth_axis, convolution.replicate, above % depth_axis.output,
                               tap / width_axis.kernel / height_axis.kernel);
            const std::int64_t source_y =
                input_position(height_axis, convolution.replicate, y, tap_y);
            const std::int64_t source_x =
                input_position(width_axis, convolution.replicate, x, tap % width_axis.kernel);
            if (source_z == kOutside || source_y == kOutside || source_x == kOutside) {
                continue;
            }
            const std::int64_t position =
                ((above / depth_axis.output * depth_axis.input + source_z) * height_axis.input +
                 source_y) *
                    width_axis.input +
                source_x;
            const float* source = elements.data() + position * convolution.pixel_channels + first;
            const float* factors = prepared->by_tap.data() + tap * channels + first;
            for (std::int64_t c = 0; c < count; ++c) {
                sums[c] += cut(source[c]) * factors[c];
            }
        }
    };
    const auto grain = std::max<std::int64_t>(1, (std::int64_t{1} << 16) / (channels * taps));
    parallel_for(static_cast<std::size_t>(convolution.pixels()), static_cast<std::size_t>(grain),
                 [&](std::size_t begin, std::size_t end) {
                     std::array<float, chunk> sums;
                     for (auto pixel = static_cast<std::int64_t>(begin);
                          pixel < static_cast<std::int64_t>(end); ++pixel) {
                         for (std::int64_t first = 0; first < channels; first += chunk) {
                             const std::int64_t count = std::min(chunk, channels - first);
                             convolve_pixel(pixel, first, count, sums.data());
                             output.store(pixel, 1, first, count, sums.data(), chunk);
                         }
                     }
                 });
}

}  // namespace

void convolve(const Tensor& input, const Tensor& weights, const WeightStrides& strides,
              DataType weights_dtype, const Convolution& convolution, const Arithmetic& arithmetic,
              const ProductOutput& output) {
    if (convolution.is_depthwise()) {
        convolve_depthwise(input, weights, strides, weights_dtype, convolution, arithmetic, output);
    } else if (std::is_same_v<NarrowElement, float> ||
               (fits_bfloat16(input.dtype()) && fits_bfloat16(weights_dtype))) {
        convolve_as_product<NarrowElement>(input, weights, strides, weights_dtype, convolution,
                                           arithmetic, output);
    } else {
        convolve_as_product<float>(input, weights, strides, weights_dtype, convolution, arithmetic,
                                   output);
    }
}

}  // namespace ttcodegen::cpu
