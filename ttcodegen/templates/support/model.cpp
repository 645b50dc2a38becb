#include "support/model.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace support {

namespace {

/// Returns the result of `action`; names the argument in the messages of its errors.
template <typename Action>
auto for_argument(const TensorDescription& description, Action action) {
    try {
        return action();
    } catch (const std::exception& error) {
        throw std::runtime_error(std::string(description.is_weight() ? "weight '" : "input '") +
                                 description.name + "': " + error.what());
    }
}

/// Calls whose ops are enqueued one by one.
class EnqueuedCalls : public Calls {
  public:
    EnqueuedCalls(const Function& function, const void* prepared,
                  tt::tt_metal::distributed::MeshDevice& device)
        : function_(function), prepared_(prepared), device_(device) {}

    void upload(std::size_t input, const ArrayView& values) override {
        inputs_.push_back(to_tensor(values, function_.inputs[input], device_));
    }
    std::vector<Tensor> run() override { return function_.run(inputs_, prepared_, device_); }
    void release() override {}

  private:
    const Function& function_;
    const void* prepared_;
    tt::tt_metal::distributed::MeshDevice& device_;
    std::vector<Tensor> inputs_;
};

/// Returns whether two weights have one file, and the device holds it in the same way for both.
bool is_same_tensor(const TensorDescription& first, const TensorDescription& second) {
    return std::strcmp(first.file, second.file) == 0 && first.data_type == second.data_type &&
           first.layout == second.layout && first.memory == second.memory &&
           first.division == second.division && std::ranges::equal(first.shape(), second.shape()) &&
           first.shards.layout == second.shards.layout &&
           first.shards.shape == second.shards.shape && first.shards.cores == second.shards.cores &&
           first.shards.orientation == second.shards.orientation;
}

std::string chosen_data(const Module& module, std::string data) {
    if (data.empty()) {
        data = data_directory();
    }
    return data.empty() ? module.build_data_directory : data;
}

}  // namespace

double seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

/// State of a function that is kept between runs.
struct Model::State {
    std::vector<std::optional<Tensor>> weights;
    /// By weight, true if it has the values of its file, which functions may share.
    std::vector<bool> is_of_file;
    bool is_prepared = false;
    std::shared_ptr<const void> prepared;
    /// Created by the first call that is to be replayed.
    std::unique_ptr<Calls> traced;
};

Model::Model(const Module& module, std::string data, Device device)
    : module_(module), data_(chosen_data(module, std::move(data))), device_(std::move(device)) {
    for (const Function& function : module.functions) {
        State& state = states_.emplace_back();
        state.weights.resize(function.weights.size());
        state.is_of_file.resize(function.weights.size());
    }
}

Model::Model(const Module& module, std::string data)
    : Model(module, std::move(data),
            open_device(0, module.mesh, module.trace_region_bytes, module.fabric)) {}

Model::~Model() {
    // Tensors are destroyed before the device that holds them.
    states_.clear();
}

std::string Model::weight_path(const TensorDescription& weight) const {
    return data_ + "/" + weight.file + ".npy";
}

bool Model::has_weight(std::size_t function, std::size_t weight) const {
    return states_[function].weights[weight].has_value() ||
           file_exists(weight_path(module_.functions[function].weights[weight]));
}

void Model::set_weight(std::size_t function, std::size_t weight, const ArrayView& values) {
    release_traces();
    State& state = states_[function];
    const TensorDescription& description = module_.functions[function].weights[weight];
    state.weights[weight] =
        for_argument(description, [&] { return to_tensor(values, description, *device_); });
    state.is_of_file[weight] = false;
    state.is_prepared = false;
}

void Model::load_weight(std::size_t function, std::size_t weight) {
    const TensorDescription& description = module_.functions[function].weights[weight];
    std::optional<Tensor> found;
    for (std::size_t other = 0; other < states_.size() && !found.has_value(); ++other) {
        const auto weights = module_.functions[other].weights;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            if (states_[other].is_of_file[i] && is_same_tensor(weights[i], description)) {
                found = states_[other].weights[i];
            }
        }
    }
    if (found.has_value()) {
        states_[function].weights[weight] = found;
    } else {
        release_traces();
        states_[function].weights[weight] = for_argument(description, [&] {
            return loaded_tensor(read_npy(weight_path(description)), description, *device_);
        });
        states_[function].is_prepared = false;
    }
    states_[function].is_of_file[weight] = true;
}

void Model::prepare(std::size_t function) {
    State& state = states_[function];
    if (state.is_prepared) {
        return;
    }
    const auto weights = module_.functions[function].weights;
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!has_weight(function, i)) {
            throw std::runtime_error(std::string("weight '") + weights[i].name +
                                     "' has no values: set them, or put them into " +
                                     weight_path(weights[i]));
        }
        if (!state.weights[i].has_value()) {
            load_weight(function, i);
        }
        tensors.push_back(*state.weights[i]);
    }
    const DataDirectory data(data_);
    release_traces();
    state.traced.reset();
    state.prepared = module_.functions[function].prepare(tensors, *device_);
    state.is_prepared = true;
}

void Model::require_input_count(std::size_t function, std::size_t count) const {
    const Function& called = module_.functions[function];
    if (count != called.inputs.size()) {
        throw std::runtime_error(std::string("'") + called.name + "' takes " +
                                 std::to_string(called.inputs.size()) + " inputs, found " +
                                 std::to_string(count));
    }
}

std::vector<Tensor> Model::submit(std::size_t function, std::span<const Tensor> inputs) {
    const Function& called = module_.functions[function];
    require_input_count(function, inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        require_layout(inputs[i], called.inputs[i]);
    }
    prepare(function);
    release_traces();
    return called.run(inputs, states_[function].prepared.get(), *device_);
}

void Model::release_traces() {
    for (const State& state : states_) {
        if (state.traced != nullptr) {
            state.traced->release();
        }
    }
}

Calls* Model::traced_calls(std::size_t function) {
    if (module_.traced_calls == nullptr) {
        return nullptr;
    }
    if (device_.use_count() > 1) {
        release_traces();
        return nullptr;
    }
    State& state = states_[function];
    if (state.traced == nullptr) {
        // The first traced call allocates memory for inputs and kernels.
        release_traces();
        state.traced = module_.traced_calls(module_.functions[function], state.prepared, *device_);
    }
    return state.traced.get();
}

std::vector<Array> Model::run(std::size_t function, std::span<const ArrayView> inputs,
                              RunTimes* times) {
    const Function& called = module_.functions[function];
    require_input_count(function, inputs.size());
    prepare(function);
    EnqueuedCalls enqueued(called, states_[function].prepared.get(), *device_);
    Calls* const traced = traced_calls(function);
    Calls& calls = traced == nullptr ? enqueued : *traced;
    const double start = seconds();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for_argument(called.inputs[i], [&] { calls.upload(i, inputs[i]); });
    }
    const double uploaded = seconds();
    const auto results = calls.run();
    const double ran = seconds();
    std::vector<Array> outputs;
    for (const Tensor& result : results) {
        outputs.push_back(to_array(result));
    }
    if (times != nullptr) {
        *times = {uploaded - start, ran - uploaded, seconds() - ran};
    }
    return outputs;
}

}  // namespace support
