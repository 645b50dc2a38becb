// Convolutions, pools and other image operations on sharded tensors.

#include <array>
#include <cctype>
#include <cmath>

#include "call.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/conv/conv_transpose2d/conv_transpose2d.hpp"
#include "ttnn/operations/normalization/groupnorm/groupnorm.hpp"
#include "ttnn/operations/pool/generic/generic_pools.hpp"
#include "ttnn/operations/pool/global_avg_pool/global_avg_pool.hpp"
#include "ttnn/operations/pool/upsample/upsample.hpp"

namespace rules {

namespace {

using tt::tt_metal::TensorMemoryLayout;
using Pair = std::array<std::uint32_t, 2>;

constexpr float kEpsilon = 1e-5F;

std::uint32_t number_of(const std::string& text) {
    return static_cast<std::uint32_t>(std::stoul(text));
}

std::uint32_t number(Call& call, const char* key, std::uint32_t otherwise) {
    const auto text = call.value(key);
    return text ? number_of(*text) : otherwise;
}

Pair both(std::uint32_t side) { return {side, side}; }

/// The word that begins with a digit and has that many sizes, "32x32" or "1x32x32x64".
std::vector<std::uint32_t> sizes_in(Call& call, std::size_t count) {
    for (const std::string& word : split(call.row().variant, ' ')) {
        const auto parts = split(word, 'x');
        if (parts.size() == count && std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
            call.take(word)) {
            std::vector<std::uint32_t> sizes;
            for (const std::string& part : parts) {
                sizes.push_back(number_of(part));
            }
            return sizes;
        }
    }
    throw Unmapped{"the row gives no sizes"};
}

/// "hs", "ws", "bs" or "il"; nothing for "None".
std::optional<TensorMemoryLayout> kind_of(const std::optional<std::string>& name) {
    if (!name || *name == "None") {
        return std::nullopt;
    }
    return *name == "hs"   ? TensorMemoryLayout::HEIGHT_SHARDED
           : *name == "ws" ? TensorMemoryLayout::WIDTH_SHARDED
           : *name == "bs" ? TensorMemoryLayout::BLOCK_SHARDED
                           : TensorMemoryLayout::INTERLEAVED;
}

/// Adds whether the call freed its first input.
void tell_input(Call& call, Results& results) {
    results.add(call.input(0).is_allocated() ? "input kept" : "input freed");
}

/// The words between braces, as a variant of their own.
std::string take_braces(std::string& variant) {
    const std::size_t begin = variant.find('{');
    if (begin == std::string::npos) {
        return "";
    }
    const std::size_t end = variant.find('}', begin);
    std::string inside = variant.substr(begin + 1, end - begin - 1);
    variant.erase(begin, end - begin + 1);
    return inside;
}

/// "(8, 4)": columns and rows of cores.
ttnn::CoreRangeSet cores_of(const std::string& text) {
    const auto sides = numbers_of(text);
    const auto side = [&sides](std::size_t i) { return static_cast<std::size_t>(sides.at(i)) - 1; };
    return ttnn::CoreRangeSet(ttnn::CoreRange({0, 0}, {side(0), side(1)}));
}

ttnn::Conv2dConfig config_of(Call& call) {
    using ttnn::operations::unary::UnaryOpType;
    ttnn::Conv2dConfig config;
    config.weights_dtype = call.dtype("weights_dtype");
    if (const auto name = call.value("activation")) {
        config.activation =
            ttnn::operations::unary::UnaryWithParam(*name == "RELU"   ? UnaryOpType::RELU
                                                    : *name == "SILU" ? UnaryOpType::SILU
                                                                      : UnaryOpType::GELU);
    }
    config.deallocate_activation = call.flag("dealloc", false);
    config.reallocate_halo_output = call.flag("reallocate_halo_output", true);
    config.config_tensors_in_dram = call.flag("config_tensors_in_dram", false);
    config.act_block_h_override = number(call, "act_block_h_override", 0);
    config.act_block_w_div = number(call, "act_block_w_div", 1);
    config.reshard_if_not_optimal = call.flag("reshard", false);
    config.override_sharding_config = call.flag("override_sharding_config", false);
    config.shard_layout = kind_of(call.value("shard_layout"));
    if (const auto cores = call.value("core_grid")) {
        config.core_grid = cores_of(*cores);
    }
    config.transpose_shards = call.flag("transpose_shards", false);
    config.output_layout = call.layout("output_layout").value_or(Layout::TILE);
    config.enable_act_double_buffer = call.flag("enable_act_double_buffer", false);
    config.enable_weights_double_buffer = call.flag("enable_weights_double_buffer", false);
    config.full_inner_dim = call.flag("full_inner_dim", false);
    if (const auto folds = call.value("enable_kernel_stride_folding")) {
        config.enable_kernel_stride_folding = *folds == "True";
    }
    config.enable_activation_reuse = call.flag("enable_activation_reuse", false);
    if (const auto splits = call.value("force_split_reader")) {
        config.force_split_reader = *splits == "True";
    }
    config.override_output_sharding_config = call.flag("override_output_sharding_config", false);
    return config;
}

std::optional<const ttnn::Conv2dSliceConfig> slices_of(Call& call) {
    using SliceType = ttnn::Conv2dSliceConfig::SliceType;
    ttnn::Conv2dSliceConfig config;
    if (call.take("L1Full")) {
        config.slice_type = SliceType::L1_FULL;
        return config;
    }
    for (const auto& [name, type] : {std::pair{"DRAMSliceHeight", SliceType::DRAM_HEIGHT},
                                     std::pair{"DRAMSliceWidth", SliceType::DRAM_WIDTH}}) {
        config.slice_type = type;
        if (call.take(std::string(name) + " auto")) {
            return config;
        }
        for (const std::uint32_t slices : {1U, 3U, 4U, 100U}) {
            if (call.take(std::string(name) + "," + std::to_string(slices))) {
                config.num_slices = slices;
                return config;
            }
        }
    }
    return std::nullopt;
}

std::optional<const ttnn::DeviceComputeKernelConfig> compute_config_of(Call& call) {
    for (const char* words : {"LoFi+l1acc", "HiFi4+fp32acc", "HiFi2+fp32acc+l1acc"}) {
        if (call.take(words)) {
            const std::string text = words;
            ttnn::DeviceComputeKernelConfig config;
            config.math_fidelity = text.starts_with("LoFi")    ? tt::tt_metal::MathFidelity::LoFi
                                   : text.starts_with("HiFi2") ? tt::tt_metal::MathFidelity::HiFi2
                                                               : tt::tt_metal::MathFidelity::HiFi4;
            config.fp32_dest_acc_en = text.find("fp32acc") != std::string::npos;
            config.packer_l1_acc = text.find("l1acc") != std::string::npos;
            return config;
        }
    }
    return std::nullopt;
}

/// A tensor of weights or of a bias on the host, in rows.
Tensor on_host(const Shape& shape, DataType dtype) {
    const auto name = dtype == DataType::FLOAT32 ? "f32" : "bf16";
    std::string sizes;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(shape.rank()); ++i) {
        sizes += (i == 0 ? "" : "x") + std::to_string(shape[i]);
    }
    return make_tensor({sizes, name, "R", "host"}, device());
}

/// The braces are read first: their words have other separators.
struct Configured {
    explicit Configured(const Call& call) : row(call.row()) {
        braces = row;
        braces.variant = take_braces(row.variant);
    }

    Row row;
    Row braces;
};

Results conv2d(Call& call) {
    Configured configured(call);
    call.rest();
    Call words(configured.row);
    Call fields(configured.braces);
    const auto config = config_of(fields);
    const auto sizes = sizes_in(words, 2);
    const std::uint32_t batch = number(words, "N", 1);
    const std::uint32_t channels = number(words, "Ci", 1);
    const std::uint32_t out = number(words, "Co", 1);
    const std::uint32_t kernel = number(words, "k", 3);
    const std::uint32_t stride = number(words, "s", 1);
    const std::uint32_t padding = number(words, "p", 1);
    const std::uint32_t dilation = number(words, "d", 1);
    const std::uint32_t groups = number(words, "g", 1);
    const auto weights_type = words.dtype("wd").value_or(DataType::BFLOAT16);
    if (weights_type != DataType::BFLOAT16 && weights_type != DataType::FLOAT32) {
        throw Unmapped{"weights of block floats on the host"};
    }
    std::optional<const Tensor> bias;
    if (words.flag("bias", false)) {
        bias.emplace(on_host(Shape({1, 1, 1, out}), weights_type));
    }
    const std::optional<const DataType> dtype(words.dtype());
    const std::optional<const MemoryConfig> memory_config(words.memory_config());
    const auto slices = slices_of(words);
    const auto compute_config = compute_config_of(words);
    if (!words.unread().empty() || !fields.unread().empty()) {
        throw Unmapped{"no C++ call for '" + words.unread() + fields.unread() + "'"};
    }
    const Tensor weights = on_host(Shape({out, channels / groups, kernel, kernel}), weights_type);
    const auto result =
        ttnn::conv2d(call.input(0), weights, call.on_device(), channels, out, batch, sizes[0],
                     sizes[1], both(kernel), both(stride), both(padding), both(dilation), groups,
                     dtype, bias, config, compute_config, memory_config, slices, true, false);
    const auto& [tensor, extent] =
        std::get<std::tuple<Tensor, std::tuple<std::uint32_t, std::uint32_t>>>(result);
    Results results(tensor);
    results.add(std::to_string(std::get<0>(extent)));
    results.add(std::to_string(std::get<1>(extent)));
    tell_input(call, results);
    return results;
}

/// "64->128": channels in and out
Results conv_transpose2d(Call& call) {
    const std::string channels = split(call.row().variant, ' ').front();
    const std::size_t arrow = channels.find("->");
    if (arrow == std::string::npos || !call.take(channels)) {
        throw Unmapped{"the row gives no channels"};
    }
    const std::uint32_t in = number_of(channels.substr(0, arrow));
    const std::uint32_t out = number_of(channels.substr(arrow + 2));
    const std::uint32_t kernel = number(call, "k", 3);
    const std::uint32_t stride = number(call, "s", 1);
    ttnn::Conv2dConfig config;
    config.shard_layout = kind_of(call.value("shard_layout"));
    config.reshard_if_not_optimal = call.flag("reshard", false);
    const Shape pixels = call.input(0).logical_shape();
    const auto side = static_cast<std::uint32_t>(std::lround(std::sqrt(double(pixels[-2]))));
    const std::uint32_t padding = kernel == 3 ? 1 : 0;
    const std::uint32_t more = kernel == 3 && stride == 2 ? 1 : 0;
    const Tensor weights = on_host(Shape({in, out, kernel, kernel}), DataType::BFLOAT16);
    const auto result = ttnn::conv_transpose2d(
        call.input(0), weights, call.on_device(), in, out, 1, side, side, both(kernel),
        both(stride), both(padding), both(more), both(1), 1, std::nullopt, std::nullopt,
        std::optional<const ttnn::Conv2dConfig>(config), std::nullopt, std::nullopt, std::nullopt,
        true, true, false);
    const auto& [tensor, extent] =
        std::get<std::tuple<Tensor, std::tuple<std::uint32_t, std::uint32_t>>>(result);
    Results results(tensor);
    results.add(std::to_string(std::get<0>(extent)));
    results.add(std::to_string(std::get<1>(extent)));
    return results;
}

Results max_pool2d(Call& call) {
    const auto sizes = sizes_in(call, 4);
    const std::uint32_t kernel = number(call, "k", 2);
    const std::uint32_t stride = number(call, "s", 2);
    const std::uint32_t padding = number(call, "p", 0);
    const std::string& variant = call.row().variant;
    const bool tells_input = variant.find("deallocate_input") != std::string::npos ||
                             variant.find("reallocate_halo_output") != std::string::npos ||
                             variant.find("config_tensor_in_dram") != std::string::npos;
    const bool deallocate = call.flag("deallocate_input", false);
    const bool reallocate = call.flag("reallocate_halo_output", true);
    const bool in_dram = call.flag("config_tensor_in_dram", false);
    const DataType dtype = call.dtype().value_or(DataType::BFLOAT16);
    const Layout layout = call.layout("output_layout").value_or(Layout::ROW_MAJOR);
    const std::optional<const TensorMemoryLayout> scheme(kind_of(call.value("scheme")));
    const std::optional<const MemoryConfig> memory_config(call.memory_config());
    Results results(ttnn::max_pool2d(call.input(0), sizes[0], sizes[1], sizes[2], sizes[3],
                                     both(kernel), both(stride), both(padding), both(1), false,
                                     memory_config, std::nullopt, scheme, deallocate, reallocate,
                                     false, dtype, layout, in_dram));
    if (tells_input) {
        tell_input(call, results);
    }
    return results;
}

Results group_norm(Call& call) {
    const auto groups = static_cast<int>(call.integer("groups").value());
    const bool in_place = call.flag("inplace", false);
    std::optional<ttnn::CoreGrid> grid;
    if (const auto text = call.value("core_grid"); text && *text != "None") {
        const auto sides = numbers_of(*text);
        grid = ttnn::CoreGrid(static_cast<std::size_t>(sides.at(0)),
                              static_cast<std::size_t>(sides.at(1)));
    }
    if (call.take("core_grid")) {
        throw Unmapped{"the row does not give the grid"};
    }
    std::optional<Tensor> mask;
    std::optional<Tensor> weight;
    std::optional<Tensor> bias;
    if (call.take("mask+weight+bias")) {
        mask = call.input(1);
        weight = call.input(2);
        bias = call.inputs() > 3 ? call.input(3) : call.input(2);
    }
    const auto memory_config = call.memory_config();
    return ttnn::group_norm(call.input(0), groups, kEpsilon, mask, weight, bias, std::nullopt,
                            memory_config, std::nullopt, grid, in_place, std::nullopt);
}

Results upsample(Call& call) {
    const std::string& variant = call.row().variant;
    const std::string scale = split(variant, ',').front();
    if (!call.take(scale)) {
        throw Unmapped{"the row gives no factor"};
    }
    const bool nearest = call.take("nearest");
    call.take("bilinear");
    return ttnn::upsample(call.input(0), static_cast<int>(number_of(scale)),
                          nearest ? "nearest" : "bilinear", call.memory_config());
}

}  // namespace

void add_placed_windows(Operations& operations) {
    operations["conv2d"] = conv2d;
    operations["conv_transpose2d"] = conv_transpose2d;
    operations["max_pool2d"] = max_pool2d;
    operations["group_norm"] = group_norm;
    operations["upsample"] = upsample;
    operations["global_avg_pool2d"] = [](Call& call) -> Results {
        return ttnn::global_avg_pool2d(call.input(0), std::nullopt, std::nullopt);
    };
}

}  // namespace rules
