#include "support/capi.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tt-metalium/mesh_device.hpp>
#include <vector>

#include "support/drawing.hpp"
#include "support/model.hpp"

namespace support::capi {

/// The binary layout of a library's models and tensors; libraries with another layout are
/// rejected.
struct Build {
    const char* compiler = __VERSION__;
    std::uint32_t api_version = TTCODEGEN_API_VERSION;
    std::size_t tensor_size = sizeof(Tensor);
    std::size_t device_size = sizeof(tt::tt_metal::distributed::MeshDevice);
    std::size_t model_size = sizeof(Model);

    bool operator==(const Build& other) const {
        return std::strcmp(compiler, other.compiler) == 0 && api_version == other.api_version &&
               tensor_size == other.tensor_size && device_size == other.device_size &&
               model_size == other.model_size;
    }
};

}  // namespace support::capi

/// The opaque types of the C API. They may come from another library, so the build is the first
/// member and is checked before any other is read.
struct ttcodegen_model {
    support::capi::Build build;
    support::Model model;
};

struct ttcodegen_device_tensor {
    support::capi::Build build;
    /// Declared first, so that the tensor is destroyed before the device.
    support::Device device;
    support::Tensor tensor;
    std::vector<std::uint64_t> sizes;
};

namespace support::capi {

namespace {

// Of fixed size: storing a message must not fail.
thread_local char error_message[2048] = "";

struct WrongArgument : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void remember(const char* message) noexcept {
    std::snprintf(error_message, sizeof error_message, "%s", message);
}

/// Runs `action` and converts exceptions to a status and a message.
template <typename Action>
int guarded(Action action) noexcept {
    try {
        action();
        return TTCODEGEN_OK;
    } catch (const WrongArgument& error) {
        remember(error.what());
        return TTCODEGEN_WRONG_ARGUMENT;
    } catch (const std::exception& error) {
        remember(error.what());
    } catch (...) {
        remember("an error of unknown type");
    }
    return TTCODEGEN_FAILED;
}

void require(bool condition, const std::string& message) {
    if (!condition) {
        throw WrongArgument(message);
    }
}

void require_same_build(const Build& build, const std::string& what) {
    require(build == Build{}, what +
                                  " comes from a library that was built differently: build both "
                                  "projects with the same ttcodegen, compiler and backend");
}

const Function& function_of(const ttcodegen_model* model, std::size_t function) {
    require(model != nullptr, "the model is NULL");
    const std::size_t count = model->model.module().functions.size();
    require(function < count, "there is no function " + std::to_string(function) +
                                  ", the module has " + std::to_string(count));
    return model->model.function(function);
}

/// A view of the array, checked against the description: shape, type and size of the buffer.
ArrayView checked(const ttcodegen_array& array, const TensorDescription& description) {
    const std::string subject = std::string("'") + description.name + "': ";
    require(is_element_type(array.dtype),
            subject + "there is no element type " + std::to_string(array.dtype));
    // Checked before the sizes: with a wrong rank their number is unknown.
    require(array.rank == description.rank, subject + "expected " +
                                                std::to_string(description.rank) +
                                                " dimensions, found " + std::to_string(array.rank));
    require(array.rank == 0 || array.shape != nullptr, subject + "the shape is NULL");
    const auto type = static_cast<ElementType>(array.dtype);
    const ArrayView view{type, {array.shape, array.rank}, array.data};
    require(std::ranges::equal(view.shape, description.shape()),
            subject + "expected the shape " + shape_text(description.shape()) + ", found " +
                shape_text(view.shape));
    const ElementType own = element_type(description.data_type);
    const ElementType source = description.kind == Kind::output ? own : type;
    const ElementType target = description.kind == Kind::output ? type : own;
    require(!is_floating(source) || is_floating(target),
            subject + element_name(source) + " elements cannot become " + element_name(target));
    const std::uint64_t bytes = element_count(view.shape) * element_size(type);
    require(array.bytes == bytes, subject + "the buffer has " + std::to_string(array.bytes) +
                                      " bytes, the elements need " + std::to_string(bytes));
    require(array.data != nullptr || bytes == 0, subject + "the buffer is NULL");
    return view;
}

std::vector<ArrayView> checked(std::span<const ttcodegen_array> arrays,
                               std::span<const TensorDescription> descriptions,
                               const std::string& what) {
    require(arrays.size() == descriptions.size(),
            "expected " + std::to_string(descriptions.size()) + " " + what + ", found " +
                std::to_string(arrays.size()));
    require(arrays.empty() || arrays.data() != nullptr, "the " + what + " are NULL");
    std::vector<ArrayView> views;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        views.push_back(checked(arrays[i], descriptions[i]));
    }
    return views;
}

const TensorDescription& input_of(const ttcodegen_model* model, std::size_t function,
                                  std::size_t input) {
    const auto inputs = function_of(model, function).inputs;
    require(input < inputs.size(), "there is no input " + std::to_string(input) +
                                       ", the function has " + std::to_string(inputs.size()));
    return inputs[input];
}

const ttcodegen_device_tensor& checked(const ttcodegen_device_tensor* tensor) {
    require(tensor != nullptr, "the tensor is NULL");
    require_same_build(tensor->build, "the tensor");
    return *tensor;
}

/// Checks that a tensor is on the device of the model, or on the host.
const Tensor& usable(const ttcodegen_device_tensor* tensor, const Model& model) {
    const ttcodegen_device_tensor& found = checked(tensor);
    require(memory_of(found.tensor) == Memory::host || found.device == model.device(),
            "the tensor is on another device: open the second module beside the first");
    return found.tensor;
}

ttcodegen_device_tensor* handle(Tensor tensor, const Device& device) {
    auto made = std::make_unique<ttcodegen_device_tensor>();
    made->device = device;
    made->sizes = shape_of(tensor);
    made->tensor = std::move(tensor);
    return made.release();
}

std::int32_t layout_number(tt::tt_metal::Layout layout) {
    return layout == tt::tt_metal::Layout::TILE ? TTCODEGEN_TILE : TTCODEGEN_ROW_MAJOR;
}

void require_version(std::uint32_t api_version) {
    require(api_version == TTCODEGEN_API_VERSION,
            "the caller uses version " + std::to_string(api_version) +
                " of the API, the library has version " + std::to_string(TTCODEGEN_API_VERSION));
}

std::span<const TensorDescription> tensors_of(const Module& module, std::size_t function,
                                              Group group) noexcept {
    if (function >= module.functions.size()) {
        return {};
    }
    const Function& found = module.functions[function];
    switch (group) {
        case Group::inputs:
            return found.inputs;
        case Group::weights:
            return found.weights;
        case Group::outputs:
            return found.outputs;
    }
    return {};
}

ttcodegen_model* opened(const Module& module, const char* data, Device device) {
    return new ttcodegen_model{{}, Model(module, data == nullptr ? "" : data, std::move(device))};
}

void write(const Array& values, const TensorDescription& description, const ArrayView& view,
           void* target) {
    require(std::ranges::equal(values.shape, view.shape), std::string("'") + description.name +
                                                              "': the run gave the shape " +
                                                              shape_text(values.shape));
    const auto bytes = converted(values.view(), view.type);
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(target));
}

}  // namespace

int open(const Module& module, std::uint32_t api_version, const char* data, int device,
         ttcodegen_model** model) noexcept {
    return guarded([&] {
        require(model != nullptr, "the place for the model is NULL");
        *model = nullptr;
        require_version(api_version);
        *model = opened(module, data,
                        open_device(device, module.mesh, module.trace_region_bytes, module.fabric));
    });
}

int open_beside(const Module& module, std::uint32_t api_version, const char* data,
                ttcodegen_model* other, ttcodegen_model** model) noexcept {
    return guarded([&] {
        require(model != nullptr, "the place for the model is NULL");
        *model = nullptr;
        require_version(api_version);
        require(other != nullptr, "the other model is NULL");
        require_same_build(other->build, "the other model");
        *model = opened(module, data, other->model.device());
    });
}

void close(ttcodegen_model* model) noexcept { delete model; }

const char* last_error() noexcept { return error_message; }

const char* function_name(const Module& module, std::size_t function) noexcept {
    return function < module.functions.size() ? module.functions[function].name : nullptr;
}

std::size_t function_count(const Module& module) noexcept { return module.functions.size(); }

std::size_t count(const Module& module, std::size_t function, Group group) noexcept {
    return tensors_of(module, function, group).size();
}

int describe(const Module& module, std::size_t function, Group group, std::size_t index,
             ttcodegen_tensor* result) noexcept {
    return guarded([&] {
        const auto tensors = tensors_of(module, function, group);
        require(result != nullptr, "the place for the description is NULL");
        require(index < tensors.size(), "there is no tensor " + std::to_string(index) +
                                            ", the function has " + std::to_string(tensors.size()) +
                                            " of that kind");
        const TensorDescription& tensor = tensors[index];
        *result = {tensor.name,
                   static_cast<std::int32_t>(tensor.kind),
                   static_cast<std::int32_t>(element_type(tensor.data_type)),
                   tensor.rank,
                   tensor.sizes.data(),
                   tensor.field,
                   data_type_name(tensor.data_type),
                   layout_number(tensor.layout),
                   static_cast<std::int32_t>(tensor.memory)};
    });
}

int set_weight(ttcodegen_model* model, std::size_t function, std::size_t weight,
               const ttcodegen_array* values) noexcept {
    return guarded([&] {
        const auto descriptions = function_of(model, function).weights;
        require(weight < descriptions.size(), "there is no weight " + std::to_string(weight) +
                                                  ", the function has " +
                                                  std::to_string(descriptions.size()));
        require(values != nullptr, "the values are NULL");
        model->model.set_weight(function, weight, checked(*values, descriptions[weight]));
    });
}

int draw_weights(ttcodegen_model* model, std::size_t function, std::uint64_t seed) noexcept {
    return guarded([&] {
        function_of(model, function);
        draw_missing_weights(model->model, function, seed);
    });
}

int run(ttcodegen_model* model, std::size_t function, std::span<const ttcodegen_array> inputs,
        std::span<const ttcodegen_array> outputs) noexcept {
    return guarded([&] {
        const Function& called = function_of(model, function);
        const auto input_views = checked(inputs, called.inputs, "inputs");
        const auto output_views = checked(outputs, called.outputs, "outputs");
        const std::vector<Array> results = model->model.run(function, input_views);
        for (std::size_t i = 0; i < results.size(); ++i) {
            write(results[i], called.outputs[i], output_views[i], outputs[i].data);
        }
    });
}

int to_device(ttcodegen_model* model, std::size_t function, std::size_t input,
              const ttcodegen_array* values, ttcodegen_device_tensor** tensor) noexcept {
    return guarded([&] {
        require(tensor != nullptr, "the place for the tensor is NULL");
        *tensor = nullptr;
        const TensorDescription& description = input_of(model, function, input);
        require(values != nullptr, "the values are NULL");
        const Device& device = model->model.device();
        *tensor = handle(to_tensor(checked(*values, description), description, *device), device);
    });
}

int to_layout(ttcodegen_model* model, std::size_t function, std::size_t input,
              const ttcodegen_device_tensor* tensor, ttcodegen_device_tensor** result) noexcept {
    return guarded([&] {
        require(result != nullptr, "the place for the tensor is NULL");
        *result = nullptr;
        const TensorDescription& description = input_of(model, function, input);
        const Device& device = model->model.device();
        const Tensor& found = usable(tensor, model->model);
        *result = handle(support::to_layout(found, description, *device), device);
    });
}

int submit(ttcodegen_model* model, std::size_t function,
           std::span<const ttcodegen_device_tensor* const> inputs,
           std::span<ttcodegen_device_tensor*> outputs) noexcept {
    return guarded([&] {
        const Function& called = function_of(model, function);
        require(inputs.empty() || inputs.data() != nullptr, "the inputs are NULL");
        require(outputs.empty() || outputs.data() != nullptr, "the outputs are NULL");
        require(outputs.size() == called.outputs.size(),
                "expected " + std::to_string(called.outputs.size()) + " outputs, found " +
                    std::to_string(outputs.size()));
        std::ranges::fill(outputs, nullptr);
        std::vector<Tensor> tensors;
        for (const ttcodegen_device_tensor* input : inputs) {
            tensors.push_back(usable(input, model->model));
        }
        const auto results = model->model.submit(function, tensors);
        for (std::size_t i = 0; i < results.size(); ++i) {
            outputs[i] = handle(results[i], model->model.device());
        }
    });
}

int describe(const ttcodegen_device_tensor* tensor, ttcodegen_tensor* result) noexcept {
    return guarded([&] {
        require(result != nullptr, "the place for the description is NULL");
        const ttcodegen_device_tensor& found = checked(tensor);
        *result = {"",
                   TTCODEGEN_OUTPUT,
                   static_cast<std::int32_t>(element_type(data_type_of(found.tensor))),
                   static_cast<std::uint32_t>(found.sizes.size()),
                   found.sizes.data(),
                   "",
                   data_type_name(data_type_of(found.tensor)),
                   layout_number(layout_of(found.tensor)),
                   static_cast<std::int32_t>(memory_of(found.tensor))};
    });
}

int to_host(const ttcodegen_device_tensor* tensor, const ttcodegen_array* values) noexcept {
    return guarded([&] {
        const ttcodegen_device_tensor& found = checked(tensor);
        require(values != nullptr, "the values are NULL");
        require(found.sizes.size() <= 8, "the tensor has too many dimensions");
        TensorDescription description{};
        description.name = "tensor";
        description.kind = Kind::output;
        description.rank = static_cast<std::uint32_t>(found.sizes.size());
        std::ranges::copy(found.sizes, description.sizes.begin());
        description.data_type = data_type_of(found.tensor);
        const ArrayView view = checked(*values, description);
        write(to_array(found.tensor), description, view, values->data);
    });
}

void release(ttcodegen_device_tensor* tensor) noexcept { delete tensor; }

}  // namespace support::capi
