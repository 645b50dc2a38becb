#include "ttnn/operations/creation/creation.hpp"

#include <atomic>
#include <cmath>
#include <random>
#include <vector>

#include "core/chips.hpp"
#include "core/parallel.hpp"
#include "core/tensor_data.hpp"
#include "core/trace.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/operations/full/full.hpp"
#include "ttnn/operations/rand/rand.hpp"

namespace ttcodegen::cpu {

namespace {

using OptionalDevice = std::optional<std::reference_wrapper<MeshDevice>>;

MeshDevice* pointer(const OptionalDevice& device) { return device ? &device->get() : nullptr; }

void fill(const Tensor& tensor, double value) {
    Buffer& buffer = buffer_of(tensor);
    buffer.forget_derived();
    const DataType dtype = tensor.dtype();
    const auto whole = static_cast<std::int64_t>(is_integer(dtype) ? value : 0.0);
    parallel_for(tensor.logical_volume(), std::size_t{1} << 16,
                 [&](std::size_t begin, std::size_t end) {
                     std::byte* first = buffer.data() + begin * stored_size(dtype);
                     if (is_integer(dtype)) {
                         // Through 64-bit integers: floats do not represent every integer.
                         for (std::size_t i = 0; i < end - begin; ++i) {
                             store_integers(&whole, 1, dtype, first + i * stored_size(dtype));
                         }
                     } else {
                         fill_elements(first, end - begin, dtype, static_cast<float>(value));
                     }
                 });
    // The host computes the values.
    finish_block_float(tensor, BlockRounding::Host);
}

/// Refuses a call that a trace cannot capture: the host computes the values and writes them.
void refuse_host_values(const OptionalDevice& device) {
    if (device) {
        refuse_write_in_capture();
    }
}

Tensor full(const Shape& shape, double value, const std::optional<DataType>& dtype,
            const std::optional<Layout>& layout, MeshDevice* device,
            const std::optional<MemoryConfig>& memory_config) {
    const DataType data_type = dtype.value_or(DataType::BFLOAT16);
    const Layout page_layout =
        layout.value_or(is_block(data_type) ? Layout::TILE : Layout::ROW_MAJOR);
    TT_FATAL(!is_block(data_type) || page_layout == Layout::TILE,
             "Block float types only supported in TILE layout");
    const Tensor tensor = allocate(
        make_spec(shape, data_type, page_layout, memory_config.value_or(MemoryConfig{})), device);
    fill(tensor, value);
    return tensor;
}

Tensor full_like(const Tensor& like, double value, const std::optional<DataType>& dtype,
                 const std::optional<Layout>& layout, const OptionalDevice& device,
                 const std::optional<MemoryConfig>& memory_config) {
    const Layout page_layout = layout.value_or(like.layout());
    DataType data_type = dtype.value_or(like.dtype());
    const bool both_tiles = like.layout() == Layout::TILE && page_layout == Layout::TILE;
    const bool filled = data_type == DataType::BFLOAT16 || data_type == DataType::FLOAT32 ||
                        data_type == DataType::BFLOAT8_B;
    if (on_device(like) && both_tiles && filled) {
        // The release fills a tensor like the first one here and ignores the data type.
        data_type = like.dtype();
    }
    MeshDevice* target = device ? &device->get() : device_of(like);
    return full(like.logical_shape(), value, data_type, page_layout, target,
                memory_config     ? memory_config
                : on_device(like) ? std::optional<MemoryConfig>(like.memory_config())
                                  : std::nullopt);
}

Tensor filled_output(const Tensor& output, double value) {
    require_on_device(output, "Output tensor");
    fill(output, value);
    return output;
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;
using OptionalDevice = std::optional<std::reference_wrapper<MeshDevice>>;

Tensor zeros(const Shape& shape, const std::optional<DataType>& dtype,
             const std::optional<Layout>& layout, OptionalDevice device,
             const std::optional<MemoryConfig>& memory_config) {
    cpu::refuse_host_values(device);
    TTCODEGEN_ON_EACH_CHIP(zeros, shape, dtype, layout, device, memory_config);
    return cpu::full(shape, 0.0, dtype, layout, cpu::pointer(device), memory_config);
}

Tensor ones(const Shape& shape, const std::optional<DataType>& dtype,
            const std::optional<Layout>& layout, OptionalDevice device,
            const std::optional<MemoryConfig>& memory_config) {
    cpu::refuse_host_values(device);
    TTCODEGEN_ON_EACH_CHIP(ones, shape, dtype, layout, device, memory_config);
    return cpu::full(shape, 1.0, dtype, layout, cpu::pointer(device), memory_config);
}

template <typename FillValueType>
    requires std::is_same_v<FillValueType, int> or std::is_same_v<FillValueType, float>
Tensor full(const Shape& shape, FillValueType fill_value, const std::optional<DataType>& dtype,
            const std::optional<Layout>& layout, OptionalDevice device,
            const std::optional<MemoryConfig>& memory_config,
            const std::optional<Tensor>& optional_output_tensor) {
    cpu::refuse_host_values(device);
    TTCODEGEN_ON_EACH_CHIP(full, shape, fill_value, dtype, layout, device, memory_config,
                           optional_output_tensor);
    if (optional_output_tensor) {
        return cpu::filled_output(*optional_output_tensor, static_cast<double>(fill_value));
    }
    return cpu::full(shape, static_cast<double>(fill_value), dtype, layout, cpu::pointer(device),
                     memory_config);
}

template <typename FillValueType>
    requires std::is_same_v<FillValueType, int> or std::is_same_v<FillValueType, float>
Tensor full_like(const Tensor& tensor, FillValueType fill_value,
                 const std::optional<DataType>& dtype, const std::optional<Layout>& layout,
                 OptionalDevice device, const std::optional<MemoryConfig>& memory_config,
                 const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(full_like, tensor, fill_value, dtype, layout, device, memory_config,
                           optional_output_tensor);
    if (optional_output_tensor) {
        return cpu::filled_output(*optional_output_tensor, static_cast<double>(fill_value));
    }
    return cpu::full_like(tensor, static_cast<double>(fill_value), dtype, layout, device,
                          memory_config);
}

#define INSTANTIATE_FULL(T)                                                                    \
    template Tensor full<T>(const Shape&, T, const std::optional<DataType>&,                   \
                            const std::optional<Layout>&, OptionalDevice,                      \
                            const std::optional<MemoryConfig>&, const std::optional<Tensor>&); \
    template Tensor full_like<T>(                                                              \
        const Tensor&, T, const std::optional<DataType>&, const std::optional<Layout>&,        \
        OptionalDevice, const std::optional<MemoryConfig>&, const std::optional<Tensor>&);
INSTANTIATE_FULL(int)
INSTANTIATE_FULL(float)
#undef INSTANTIATE_FULL

Tensor empty(const Shape& shape, const DataType& dtype, const Layout& layout, MeshDevice* device,
             const MemoryConfig& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(empty, shape, dtype, layout, device, memory_config);
    TT_FATAL(device != nullptr, "An empty tensor needs a device");
    Tensor tensor = cpu::allocate(cpu::make_spec(shape, dtype, layout, memory_config), device);
    cpu::buffer_of(tensor).mark_empty();
    return tensor;
}

Tensor zeros_like(const Tensor& tensor, const std::optional<DataType>& dtype,
                  const std::optional<Layout>& layout, OptionalDevice device,
                  const std::optional<MemoryConfig>& memory_config,
                  const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(zeros_like, tensor, dtype, layout, device, memory_config,
                           optional_output_tensor);
    return full_like(tensor, 0.0F, dtype, layout, device, memory_config, optional_output_tensor);
}

Tensor ones_like(const Tensor& tensor, const std::optional<DataType>& dtype,
                 const std::optional<Layout>& layout, OptionalDevice device,
                 const std::optional<MemoryConfig>& memory_config,
                 const std::optional<Tensor>& optional_output_tensor) {
    TTCODEGEN_ON_EACH_CHIP(ones_like, tensor, dtype, layout, device, memory_config,
                           optional_output_tensor);
    return full_like(tensor, 1.0F, dtype, layout, device, memory_config, optional_output_tensor);
}

Tensor empty_like(const Tensor& tensor, const std::optional<DataType>& dtype,
                  const std::optional<Layout>& layout, OptionalDevice device,
                  const std::optional<MemoryConfig>& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(empty_like, tensor, dtype, layout, device, memory_config);
    return empty(tensor.logical_shape(), dtype.value_or(tensor.dtype()),
                 layout.value_or(tensor.layout()), device ? cpu::pointer(device) : tensor.device(),
                 memory_config.value_or(tensor.memory_config()));
}

Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step, DataType dtype,
              OptionalDevice device, const MemoryConfig& memory_config, Layout layout) {
    cpu::refuse_host_values(device);
    TTCODEGEN_ON_EACH_CHIP(arange, start, stop, step, dtype, device, memory_config, layout);
    TT_FATAL(step != 0, "Step must be nonzero");
    TT_FATAL(!((step > 0 && start > stop) || (step < 0 && start < stop)),
             "Invalid range: Step direction does not match range bounds");
    TT_FATAL(!cpu::is_block(dtype) && dtype != DataType::UINT8, "Unsupported dtype");
    const std::int64_t distance = stop - start;
    const std::int64_t count = (distance + step - (step > 0 ? 1 : -1)) / step;
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = start + static_cast<std::int64_t>(i) * step;
    }
    const Shape shape({static_cast<std::uint32_t>(count)});
    const Tensor tensor =
        cpu::allocate(cpu::make_spec(shape, dtype, layout, memory_config), cpu::pointer(device));
    cpu::store_integers(values.data(), values.size(), dtype, cpu::buffer_of(tensor).data());
    return tensor;
}

Tensor arange(std::int64_t stop, DataType dtype, OptionalDevice device,
              const MemoryConfig& memory_config, Layout layout) {
    cpu::refuse_host_values(device);
    TTCODEGEN_ON_EACH_CHIP(arange, stop, dtype, device, memory_config, layout);
    return arange(0, stop, 1, dtype, device, memory_config, layout);
}

Tensor moreh_full(const SmallVector<std::uint32_t>& shape, std::variant<float, int> fill_value,
                  MeshDevice* mesh_device, const DataType& dtype, const Layout& layout,
                  const MemoryConfig& memory_config) {
    TTCODEGEN_ON_EACH_CHIP(moreh_full, shape, fill_value, mesh_device, dtype, layout,
                           memory_config);
    TT_FATAL(mesh_device != nullptr, "moreh_full needs a device");
    const double value =
        std::visit([](auto number) { return static_cast<double>(number); }, fill_value);
    return cpu::full(Shape(shape), value, dtype, layout, mesh_device, memory_config);
}

Tensor rand(const Shape& shape, MeshDevice& device, DataType dtype, Layout layout,
            const MemoryConfig& memory_config, float from, float to, std::uint32_t seed,
            const std::optional<tt::tt_metal::distributed::MeshMapperConfig>& mesh_mapper) {
    TTCODEGEN_ON_EACH_CHIP_IN_TURN(rand, shape, device, dtype, layout, memory_config, from, to,
                                   seed, mesh_mapper);
    TT_FATAL(from < to, "from must be lower than to, but {} and {} were given", from, to);
    TT_FATAL(dtype != DataType::UINT8, "Unsupported dtype {}", dtype);
    // Without a seed every call must differ, while the values stay the same from run to run.
    static std::atomic<std::uint32_t> next_seed = 1;
    std::mt19937 generator(seed != 0 ? seed : next_seed.fetch_add(1));
    std::uniform_real_distribution<float> distribution(from, to);
    std::vector<float> values(shape.volume());
    for (float& value : values) {
        value = distribution(generator);
    }
    // The values are drawn in tiles; bf8 tiles are converted to bf16 rows.
    const bool widens = dtype == DataType::BFLOAT8_B && layout == Layout::ROW_MAJOR;
    const DataType stored = widens ? DataType::BFLOAT16 : dtype;
    const Tensor tensor =
        cpu::allocate(cpu::make_spec(shape, stored, layout, memory_config), &device);
    cpu::store_floats(values.data(), values.size(), stored, cpu::buffer_of(tensor).data());
    cpu::finish_block_float(tensor);
    return tensor;
}

}  // namespace ttnn
