// New tensors.

#include "ttnn/operations/creation/creation.hpp"

#include "call.hpp"
#include "ttnn/operations/rand/rand.hpp"

namespace rules {

namespace {

using OptionalDevice = std::optional<std::reference_wrapper<ttnn::MeshDevice>>;

const Shape kDefaultShape{32, 64};

/// "32x64 dtype=bf16 layout=T to=dram", or "defaults, device"
struct Target {
    explicit Target(Call& call) : dtype(call.dtype()), layout(call.layout()) {
        const auto place = call.value("to");
        if (place && *place != "host") {
            memory_config = memory_of(*place, shape, Layout::TILE);
            device = *call.on_device();
        }
        if (call.take("defaults, device")) {
            device = *call.on_device();
        }
        call.take("defaults, no device");
        if (call.take("height-sharded memory_config")) {
            memory_config = memory_of("hs", shape, Layout::TILE);
            layout = Layout::TILE;
            device = *call.on_device();
        }
        // Those of arange start with a range instead.
        const std::string first = call.row().variant.substr(0, call.row().variant.find(' '));
        if (place && first.find(',') == std::string::npos) {
            call.take(first);
            shape = shape_of(first);
        }
    }

    Shape shape = kDefaultShape;
    std::optional<DataType> dtype;
    std::optional<Layout> layout;
    OptionalDevice device;
    std::optional<MemoryConfig> memory_config;
};

template <typename Function>
Operation filled(Function function) {
    return [function](Call& call) -> Results {
        const Target target(call);
        return function(target.shape, target.dtype, target.layout, target.device,
                        target.memory_config);
    };
}

template <typename Function>
Operation like(Function function) {
    return [function](Call& call) -> Results {
        const Tensor input = call.input(0);
        std::optional<Layout> layout;
        if (call.take("other layout")) {
            layout = input.layout() == Layout::TILE ? Layout::ROW_MAJOR : Layout::TILE;
        }
        return function(input, call.dtype(), layout);
    };
}

Results full(Call& call) {
    const std::string fill = call.value("fill").value_or("1.5");
    const Target target(call);
    if (fill.ends_with("(int)")) {
        return ttnn::full(target.shape, std::stoi(fill), target.dtype, target.layout, target.device,
                          target.memory_config);
    }
    return ttnn::full(target.shape, std::stof(fill), target.dtype, target.layout, target.device,
                      target.memory_config);
}

Results full_like(Call& call) {
    if (call.take("int fill")) {
        return ttnn::full_like(call.input(0), 3);
    }
    return ttnn::full_like(call.input(0), 1.5F, call.dtype());
}

Results empty(Call& call) {
    const Target target(call);
    return ttnn::empty(target.shape, target.dtype.value_or(DataType::BFLOAT16),
                       target.layout.value_or(Layout::ROW_MAJOR), call.on_device(),
                       target.memory_config.value_or(ttnn::DRAM_MEMORY_CONFIG));
}

Results random(Call& call) {
    if (call.take("low>high")) {
        return ttnn::rand(kDefaultShape, *call.on_device(), DataType::BFLOAT16, Layout::TILE,
                          ttnn::DRAM_MEMORY_CONFIG, 1.0F, 0.0F);
    }
    call.take("defaults");
    const Target target(call);
    return ttnn::rand(target.shape, *call.on_device(), target.dtype.value_or(DataType::BFLOAT16),
                      target.layout.value_or(Layout::TILE),
                      target.memory_config.value_or(ttnn::DRAM_MEMORY_CONFIG));
}

Results arange(Call& call) {
    const bool has_device = call.take("device, defaults");
    const bool has_step = !call.take("step 0");
    call.take("empty range");
    const Target target(call);
    const auto range = numbers_of(has_step ? call.rest() : "0,10,0");
    const OptionalDevice device = has_device ? OptionalDevice(*call.on_device()) : target.device;
    const std::int64_t start = range.size() > 1 ? range[0] : 0;
    const std::int64_t stop = range.size() > 1 ? range[1] : range[0];
    return ttnn::arange(start, stop, range.size() > 2 ? range[2] : 1,
                        target.dtype.value_or(DataType::BFLOAT16), device,
                        target.memory_config.value_or(ttnn::DRAM_MEMORY_CONFIG),
                        target.layout.value_or(Layout::ROW_MAJOR));
}

/// "32x64 bf16 T dram"
Results make(Call& call) {
    const auto words = split(call.rest(), ' ');
    return make_tensor({words.at(0), words.at(1), words.at(2), words.at(3)}, call.on_device());
}

}  // namespace

void add_creation(Operations& operations) {
    operations["zeros"] =
        filled([](const auto&... arguments) { return ttnn::zeros(arguments...); });
    operations["ones"] = filled([](const auto&... arguments) { return ttnn::ones(arguments...); });
    operations["zeros_like"] =
        like([](const auto&... arguments) { return ttnn::zeros_like(arguments...); });
    operations["ones_like"] =
        like([](const auto&... arguments) { return ttnn::ones_like(arguments...); });
    operations["empty_like"] =
        like([](const auto&... arguments) { return ttnn::empty_like(arguments...); });
    operations["full"] = full;
    operations["full_like"] = full_like;
    operations["empty"] = empty;
    operations["rand"] = random;
    operations["arange"] = arange;
    operations["make_tensor(allocate_tensor_on_device)"] = make;
    operations["make_tensor(zeros)"] = make;
}

}  // namespace rules
