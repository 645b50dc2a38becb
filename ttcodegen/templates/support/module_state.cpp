#include "support/module_state.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace support {

namespace {

/// The index of the state tensor of an input or output; the number of state tensors if it has none.
std::size_t place_of(std::span<const StateTensor> tensors, const char* StateTensor::* name,
                     const TensorDescription& description) {
    const auto found = std::ranges::find_if(tensors, [&](const StateTensor& tensor) {
        return std::strcmp(tensor.*name, description.name) == 0;
    });
    return static_cast<std::size_t>(found - tensors.begin());
}

Tensor device_tensor(const ModuleState::Input& input, const TensorDescription& description,
                     tt::tt_metal::distributed::MeshDevice& device) {
    const auto* array = std::get_if<ArrayView>(&input);
    return array != nullptr ? to_tensor(*array, description, device)
                            : to_layout(std::get<Tensor>(input), description, device);
}

}  // namespace

ModuleState::ModuleState(Model& model, std::span<const StateTensor> tensors)
    : model_(model), tensors_(tensors), values_(tensors.size()) {}

Tensor& ModuleState::tensor(std::size_t place, const TensorDescription& description) {
    std::optional<Tensor>& value = values_[place];
    if (value.has_value()) {
        value = to_layout(*value, description, *model_.device());
    } else {
        const ElementType type = element_type(description.data_type);
        const std::vector<std::byte> zeros(element_count(description.shape()) * element_size(type));
        value = to_tensor({type, description.shape(), zeros.data()}, description, *model_.device());
    }
    return *value;
}

std::vector<Tensor> ModuleState::run(std::size_t function, std::initializer_list<Input> inputs) {
    const Function& called = model_.function(function);
    std::vector<Tensor> taken;
    const auto* given = inputs.begin();
    for (const TensorDescription& description : called.inputs) {
        const std::size_t place = place_of(tensors_, &StateTensor::input, description);
        if (place < tensors_.size()) {
            taken.push_back(tensor(place, description));
        } else if (given != inputs.end()) {
            taken.push_back(device_tensor(*given++, description, *model_.device()));
        } else {
            throw std::runtime_error(std::string("'") + called.name + "' needs the input '" +
                                     description.name + "'");
        }
    }
    std::vector<Tensor> outputs = model_.submit(function, taken);
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t place = place_of(tensors_, &StateTensor::output, called.outputs[i]);
        if (place < tensors_.size()) {
            values_[place] = std::move(outputs[i]);
        } else {
            results.push_back(std::move(outputs[i]));
        }
    }
    return results;
}

}  // namespace support
