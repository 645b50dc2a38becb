#include "ttnn/operations/reduction/sampling/sampling.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/chips.hpp"
#include "indexing/lanes.hpp"

namespace ttcodegen::cpu {

namespace {

constexpr std::size_t kUsers = 32;

void check_matrices(const Tensor& values, const Tensor& indices) {
    require_on_device(values, "Values to draw from");
    require_on_device(indices, "Indices to draw from");
    for (const Tensor* tensor : {&values, &indices}) {
        TT_FATAL(tensor->memory_config().memory_layout() == TensorMemoryLayout::INTERLEAVED,
                 "Only INTERLEAVED memory layout is supported for inputs!");
    }
    TT_FATAL(values.dtype() == DataType::BFLOAT16, "Only BFLOAT16 is supported for inputs, got {}",
             values.dtype());
    TT_FATAL(values.layout() == Layout::TILE, "Only TILE_LAYOUT is supported for inputs, got {}",
             values.layout());
    TT_FATAL(indices.dtype() == DataType::UINT32 || indices.dtype() == DataType::INT32,
             "Only UINT32 & INT32 dtypes are supported for input indices, got {}", indices.dtype());
    TT_FATAL(indices.layout() == Layout::ROW_MAJOR,
             "Only ROW_MAJOR is supported for input indices, got {}", indices.layout());
    const Shape& shape = values.logical_shape();
    TT_FATAL(indices.logical_shape() == shape,
             "Input values and indices must have the same shape, got {} and {}", shape,
             indices.logical_shape());
    TT_FATAL(shape.rank() == 4, "Input must have rank 4, got {}", shape);
    TT_FATAL(std::size_t{shape[0]} * shape[1] * shape[2] == kUsers,
             "Input must have {} users, got {}", kUsers, shape);
    TT_FATAL(shape[3] != 0 && shape[3] % 32 == 0,
             "Input inner dim ({}) must be non-zero and divisible by 32, pad if needed!", shape[3]);
}

void check_setting(const Tensor& setting, const char* name, DataType dtype) {
    require_on_device(setting, name);
    TT_FATAL(setting.dtype() == dtype, "Only {} is supported for {}, got {}", dtype, name,
             setting.dtype());
    TT_FATAL(setting.layout() == Layout::ROW_MAJOR,
             "Only ROW_MAJOR layout is supported for {}, got {}", name, setting.layout());
    TT_FATAL(setting.logical_shape() == Shape({kUsers}), "{} must have shape [{}], got {}", name,
             kUsers, setting.logical_shape());
}

Tensor output_for(const Tensor& values, const std::optional<Tensor>& output_tensor) {
    if (output_tensor) {
        const DataType dtype = output_tensor->dtype();
        TT_FATAL(dtype == DataType::UINT32 || dtype == DataType::INT32,
                 "Only UINT32 & INT32 dtypes are supported for outputs, got {}", dtype);
        TT_FATAL(output_tensor->memory_config().memory_layout() == TensorMemoryLayout::INTERLEAVED,
                 "Only INTERLEAVED memory layout is supported for outputs!");
        // Hardware would write the indices as a row into a tile.
        TT_FATAL(output_tensor->layout() == Layout::ROW_MAJOR,
                 "Only ROW_MAJOR layout is supported for outputs, got {}", output_tensor->layout());
    }
    const Tensor output =
        output_tensor ? *output_tensor
                      : allocate_like(values, Shape({1, 1, 1, values.logical_shape()[2]}),
                                      DataType::UINT32, Layout::ROW_MAJOR, values.memory_config());
    // Hardware would write the other users' indices past the end.
    TT_FATAL(output.logical_volume() == kUsers,
             "The output must have one element for each of the {} users, got shape {}", kUsers,
             output.logical_shape());
    return output;
}

/// One number in [0, 1) for each user.
std::array<double, kUsers> draw_numbers(std::uint32_t seed) {
    // Without a seed every call must differ, while the numbers stay the same from run to run. They
    // start far from 1, 2, ..., with which programs seed other groups of users.
    static std::atomic<std::uint32_t> next_seed = 0x80000000U;
    std::mt19937 generator(seed != 0 ? seed : next_seed.fetch_add(1));
    std::array<double, kUsers> numbers{};
    for (double& number : numbers) {
        number = generator() * 0x1p-32;
    }
    return numbers;
}

/// Sampling parameters of one user.
struct Settings {
    std::size_t k;
    double p;
    double temp;
    /// In [0, 1).
    double number;
};

/// Draws the index of one of `count` values.
std::size_t draw(const float* values, std::size_t count, const Settings& settings) {
    std::vector<double> scaled(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double value = values[i] * settings.temp;
        // NaN is the greatest value.
        scaled[i] = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
    }
    std::vector<std::size_t> places(count);
    std::iota(places.begin(), places.end(), std::size_t{0});
    const std::size_t most = std::clamp<std::size_t>(settings.k, 1, count);
    std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(most),
                      places.end(), [&](std::size_t a, std::size_t b) {
                          return scaled[a] > scaled[b] || (scaled[a] == scaled[b] && a < b);
                      });
    std::vector<double> weights(most);
    for (std::size_t i = 0; i < most; ++i) {
        weights[i] = std::exp(scaled[places[i]] - scaled[places[0]]);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    double kept_sum = weights[0];
    std::size_t kept = 1;
    while (kept < most && kept_sum < settings.p * sum) {
        kept_sum += weights[kept++];
    }
    // The last value with a probability is drawn if rounding leaves none above the number.
    std::size_t drawn = 0;
    double reached = 0;
    for (std::size_t i = 0; i < kept && weights[i] > 0 && reached <= settings.number * kept_sum;
         ++i) {
        reached += weights[i];
        drawn = i;
    }
    return places[drawn];
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor sampling(const Tensor& input_values_tensor, const Tensor& input_indices_tensor,
                const Tensor& k, const Tensor& p, const Tensor& temp,
                const std::optional<std::uint32_t>& seed,
                const std::optional<tt::tt_metal::CoreRangeSet>& sub_core_grids,
                const std::optional<Tensor>& output_tensor) {
    TTCODEGEN_ON_EACH_CHIP_IN_TURN(sampling, input_values_tensor, input_indices_tensor, k, p, temp,
                                   seed, sub_core_grids, output_tensor);
    const auto numbers = cpu::draw_numbers(seed.value_or(0));
    if (cpu::is_remote(input_values_tensor)) {
        return input_indices_tensor;  // The users of that chip have taken their numbers.
    }
    cpu::check_matrices(input_values_tensor, input_indices_tensor);
    TT_FATAL(!sub_core_grids || sub_core_grids->num_cores() == cpu::kUsers,
             "Subcore grid expects {} cores, but found {}!", cpu::kUsers,
             sub_core_grids->num_cores());
    cpu::check_setting(k, "k", DataType::UINT32);
    cpu::check_setting(p, "p", DataType::BFLOAT16);
    cpu::check_setting(temp, "temp", DataType::BFLOAT16);
    const Tensor output = cpu::output_for(input_values_tensor, output_tensor);

    const cpu::FloatElements values(input_values_tensor);
    const auto indices = cpu::elements<std::uint32_t>(input_indices_tensor);
    const auto counts = cpu::elements<std::uint32_t>(k);
    const cpu::FloatElements probabilities(p);
    const cpu::FloatElements factors(temp);
    // u32 and s32 store indices in the same bits.
    const auto drawn = cpu::mutable_elements<std::uint32_t>(output);
    const cpu::Lanes users(input_values_tensor.logical_shape(), 3);
    cpu::for_each_lane(users, [&](std::size_t user) {
        const std::size_t first = users.first(user);
        drawn[user] = indices[first + cpu::draw(values.data() + first, users.size,
                                                {.k = counts[user],
                                                 .p = probabilities[user],
                                                 .temp = factors[user],
                                                 .number = numbers[user]})];
    });
    return output;
}

}  // namespace ttnn
