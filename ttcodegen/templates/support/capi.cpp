#include "support/capi.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "support/model.hpp"

/// What the opaque type of the C API is.
struct ttcodegen_model {
    support::Model model;
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

/// Runs `action`; what it throws becomes a status and a message.
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

const Function& function_of(const ttcodegen_model* model, std::size_t function) {
    require(model != nullptr, "the model is NULL");
    const std::size_t count = model->model.module().functions.size();
    require(function < count, "there is no function " + std::to_string(function) +
                                  ", the module has " + std::to_string(count));
    return model->model.function(function);
}

/// The array as a view, if it fits the description: shape, type and size of the buffer.
ArrayView checked(const ttcodegen_array& array, const TensorDescription& description) {
    const std::string subject = std::string("'") + description.name + "': ";
    require(is_element_type(array.dtype),
            subject + "there is no element type " + std::to_string(array.dtype));
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

}  // namespace

int open(const Module& module, std::uint32_t api_version, const char* data, int device,
         ttcodegen_model** model) noexcept {
    return guarded([&] {
        require(model != nullptr, "the place for the model is NULL");
        *model = nullptr;
        require(api_version == TTCODEGEN_API_VERSION, "the caller uses version " +
                                                          std::to_string(api_version) +
                                                          " of the API, the library has version " +
                                                          std::to_string(TTCODEGEN_API_VERSION));
        *model = new ttcodegen_model{Model(module, data == nullptr ? "" : data, device)};
    });
}

void close(ttcodegen_model* model) noexcept { delete model; }

const char* last_error() noexcept { return error_message; }

const char* function_name(const Module& module, std::size_t function) noexcept {
    return function < module.functions.size() ? module.functions[function].name : nullptr;
}

std::span<const TensorDescription> inputs(const Module& module, std::size_t function) noexcept {
    if (function >= module.functions.size()) {
        return {};
    }
    return module.functions[function].inputs;
}

std::span<const TensorDescription> weights(const Module& module, std::size_t function) noexcept {
    if (function >= module.functions.size()) {
        return {};
    }
    return module.functions[function].weights;
}

std::span<const TensorDescription> outputs(const Module& module, std::size_t function) noexcept {
    if (function >= module.functions.size()) {
        return {};
    }
    return module.functions[function].outputs;
}

int describe(std::span<const TensorDescription> tensors, std::size_t index,
             ttcodegen_tensor* result) noexcept {
    return guarded([&] {
        require(result != nullptr, "the place for the description is NULL");
        require(index < tensors.size(), "there is no tensor " + std::to_string(index) +
                                            ", the function has " + std::to_string(tensors.size()) +
                                            " of that kind");
        const TensorDescription& tensor = tensors[index];
        *result = {tensor.name, static_cast<std::int32_t>(tensor.kind),
                   static_cast<std::int32_t>(element_type(tensor.data_type)), tensor.rank,
                   tensor.sizes.data()};
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
        model->model.draw_missing_weights(function, seed);
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
            require(std::ranges::equal(results[i].shape, output_views[i].shape),
                    std::string("'") + called.outputs[i].name + "': the run gave the shape " +
                        shape_text(results[i].shape));
            const auto bytes = converted(results[i].view(), output_views[i].type);
            std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(outputs[i].data));
        }
    });
}

}  // namespace support::capi
