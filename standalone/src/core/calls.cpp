#include "core/calls.hpp"

#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "core/chips.hpp"

namespace ttcodegen::cpu {

namespace {

/// The key of a call's compiled programs, as far as the operands determine it.
std::uint64_t signature_of(const char* name, const Tensors& operands) {
    std::uint64_t signature = std::hash<std::string_view>()(name);
    const auto add = [&signature](std::uint64_t value) {
        // Boost's hash_combine, in 64 bits.
        signature ^= value + 0x9e3779b97f4a7c15 + (signature << 6) + (signature >> 2);
    };
    for (const Tensor& operand : operands.found) {
        const TensorSpec& spec = attributes(operand).spec;
        for (const std::uint32_t size : spec.logical_shape().view()) {
            add(size);
        }
        add(static_cast<std::uint64_t>(spec.data_type()));
        add(static_cast<std::uint64_t>(spec.layout()));
        add(static_cast<std::uint64_t>(spec.memory_config().buffer_type()));
        add(static_cast<std::uint64_t>(spec.memory_config().memory_layout()));
    }
    return signature;
}

struct Called {
    std::mutex mutex;
    std::unordered_set<std::uint64_t> signatures;
};

Called& called() {
    static Called all;
    return all;
}

bool was_called(const char* name, const Tensors& operands) {
    Called& all = called();
    const std::uint64_t signature = signature_of(name, operands);
    const std::lock_guard lock(all.mutex);
    return all.signatures.contains(signature);
}

/// The tensors of the devices of a mesh, or of a single device.
std::vector<Tensor> single_tensors(const Tensors& tensors) {
    std::vector<Tensor> singles;
    for (const Tensor& tensor : tensors.found) {
        const auto& parts = parts_of(tensor);
        singles.insert(singles.end(), parts.begin(), parts.end());
        if (parts.empty()) {
            singles.push_back(tensor);
        }
    }
    return singles;
}

}  // namespace

void note_call(const char* name, const Tensors& operands) {
    Called& all = called();
    const std::uint64_t signature = signature_of(name, operands);
    const std::lock_guard lock(all.mutex);
    all.signatures.insert(signature);
}

void require_called(const char* name, const Tensors& operands) {
    if (!was_called(name, operands)) {
        TT_THROW("Writes are not supported during trace capture. trace id: {}",
                 current_capture()->id().get());
    }
}

Tensor unowned(const Tensor& tensor) {
    if (tensor.tensor_attributes == nullptr) {
        return tensor;
    }
    if (const auto& parts = parts_of(tensor); !parts.empty()) {
        std::vector<Tensor> copies;
        for (const Tensor& part : parts) {
            copies.push_back(unowned(part));
        }
        return joined(copies, tensor.tensor_attributes->device);
    }
    const auto& source = *tensor.tensor_attributes;
    auto allocation = std::make_shared<Allocation>(*source.allocation);
    allocation->l1.reset();
    allocation->share.reset();
    allocation->memory.reset();
    Tensor copy;
    copy.tensor_attributes = std::make_shared<tt::tt_metal::TensorAttributes>(
        source.spec, source.device, allocation, allocation);
    return copy;
}

RecordedCall::RecordedCall(const char* name, const Tensors& operands, const Tensors& results)
    : name_(name) {
    const Capture& capture = *current_capture();
    for (const Tensor& tensor : single_tensors(operands)) {
        is_on_device_ = is_on_device_ || on_device(tensor);
        const auto& root = attributes(tensor).root;
        if (root->buffer != nullptr && !capture.made(*root->buffer)) {
            operands_.push_back({root});
        }
    }
    bool makes_memory = false;
    for (const Tensor& tensor : single_tensors(results)) {
        const auto& buffer = attributes(tensor).allocation->buffer;
        is_on_device_ = is_on_device_ || on_device(tensor);
        makes_memory = makes_memory || capture.made(*buffer);
        results_.push_back(buffer);
    }
    if (!is_on_device_) {
        return;
    }
    if (makes_memory) {
        require_called(name, operands);
    }
    for (const auto& buffer : results_) {
        if (capture.made(*buffer)) {
            current_capture()->add_result(buffer);
        }
    }
}

void RecordedCall::require_operands() const {
    for (const Operand& operand : operands_) {
        const auto allocation = operand.allocation.lock();
        TT_FATAL(allocation != nullptr && allocation->allocated,
                 "The trace reads a tensor in a call of {} that has been deallocated since the "
                 "capture: on a card its memory may belong to another one",
                 name_);
    }
}

void RecordedCall::store(const Tensors& results) const {
    const std::vector<Tensor> now = single_tensors(results);
    TT_FATAL(now.size() == results_.size(), "A replay of {} returns another number of tensors",
             name_);
    for (std::size_t i = 0; i < now.size(); ++i) {
        Buffer& buffer = buffer_of(now[i]);
        if (&buffer != results_[i].get()) {
            results_[i]->swap_elements(buffer);
        }
    }
}

void record_call(const char* name, const Tensors& operands, const Tensors& results,
                 std::function<void(Tensors&)> call_again) {
    RecordedCall record(name, operands, results);
    if (!record.is_on_device()) {
        return;
    }
    current_capture()->add_programs(
        1, [name, read_bytes = bytes_of(operands), record = std::move(record),
            call_again = std::move(call_again)] {
            record.require_operands();
            Tensors now;
            if (reports_calls()) {
                const ReportedCall measured(name, read_bytes);
                call_again(now);
                measured.returned(now);
            } else {
                call_again(now);
            }
            record.store(now);
        });
}

}  // namespace ttcodegen::cpu
