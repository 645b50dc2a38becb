#include "support/traced_calls.hpp"

#include <optional>
#include <utility>

#include "support/device_writes.hpp"
#include "support/trace.hpp"

namespace support {

namespace {

class TracedCalls : public Calls {
  public:
    TracedCalls(const Function& function, std::shared_ptr<const void> prepared,
                tt::tt_metal::distributed::MeshDevice& device)
        : function_(function), prepared_(std::move(prepared)), device_(device) {}

    void upload(std::size_t input, const ArrayView& values) override {
        const TensorDescription& description = function_.inputs[input];
        if (input == inputs_.size()) {
            inputs_.push_back(to_tensor(values, description, device_));
        } else {
            write(values, description, inputs_[input]);
        }
    }

    std::vector<Tensor> run() override {
        if (!has_run_) {
            auto outputs = run_function();
            has_run_ = true;
            return outputs;
        }
        if (!trace_.has_value()) {
            trace_.emplace(device_, [this] { outputs_ = run_function(); });
        }
        trace_->replay();
        return outputs_;
    }

    void release() override {
        trace_.reset();
        outputs_.clear();
    }

  private:
    std::vector<Tensor> run_function() const {
        return function_.run(inputs_, prepared_.get(), device_);
    }

    const Function& function_;
    std::shared_ptr<const void> prepared_;
    tt::tt_metal::distributed::MeshDevice& device_;
    /// Set once the function has run with inputs, so that its programs are compiled.
    bool has_run_ = false;
    /// The tensors that the trace reads and writes.
    std::vector<Tensor> inputs_;
    std::vector<Tensor> outputs_;
    std::optional<Trace> trace_;
};

}  // namespace

std::unique_ptr<Calls> traced_calls(const Function& function, std::shared_ptr<const void> prepared,
                                    tt::tt_metal::distributed::MeshDevice& device) {
    return std::make_unique<TracedCalls>(function, std::move(prepared), device);
}

}  // namespace support
