#include "core/chips.hpp"

#include <exception>

#include "core/device.hpp"
#include "core/parallel.hpp"

namespace ttcodegen::cpu {

namespace {

thread_local std::optional<std::size_t> chip_of_thread;

}  // namespace

std::optional<std::size_t> current_chip() { return chip_of_thread; }

OnChip::OnChip(std::optional<std::size_t> chip) : previous_(chip_of_thread) {
    chip_of_thread = chip;
}
OnChip::~OnChip() { chip_of_thread = previous_; }

MeshDevice* chip_device(MeshDevice* device) {
    if (device == nullptr || device->impl().chips.empty() || !chip_of_thread) {
        return device;
    }
    return device->impl().chips.at(*chip_of_thread).get();
}

const std::vector<Tensor>& parts_of(const Tensor& tensor) {
    static const std::vector<Tensor> none;
    return tensor.tensor_attributes == nullptr ? none : tensor.tensor_attributes->parts;
}

Tensor joined(const std::vector<Tensor>& parts, MeshDevice* mesh) {
    const LocalChips local = local_chips(parts.size());
    const auto& first = attributes(parts[local.begin]);
    for (std::size_t chip = local.begin; chip < local.end; ++chip) {
        TT_FATAL(parts[chip].tensor_spec() == first.spec,
                 "The chips of a mesh have tensors of one specification, found the shapes {} and "
                 "{}",
                 first.spec.logical_shape(), parts[chip].logical_shape());
    }
    Tensor tensor;
    tensor.tensor_attributes = std::make_shared<tt::tt_metal::TensorAttributes>(
        first.spec, mesh, first.allocation, first.root);
    tensor.tensor_attributes->parts = parts;
    for (std::size_t chip = 0; chip < parts.size(); ++chip) {
        if (!local.contains(chip)) {
            tensor.tensor_attributes->parts[chip] = remote_part(
                first.spec, mesh == nullptr ? nullptr : mesh->impl().chips.at(chip).get());
        }
    }
    return tensor;
}

Tensor join(std::vector<Tensor> results, MeshDevice* mesh) {
    // An operation that returns an operand returns it with all of its parts.
    for (std::size_t chip = 0; chip < results.size(); ++chip) {
        if (const auto& parts = parts_of(results[chip]); !parts.empty()) {
            results[chip] = Tensor(parts.at(chip));
        }
    }
    if (results.front().tensor_attributes == nullptr) {
        return results.front();
    }
    return joined(results, device_of(results.front()) == nullptr ? nullptr : mesh);
}

void for_each_chip(std::size_t count, ChipOrder order,
                   const std::function<void(std::size_t)>& compute) {
    const LocalChips local = local_chips(count);
    const std::size_t own = local.end - local.begin;
    if (order == ChipOrder::InTurn || own < thread_count()) {
        const bool all = order == ChipOrder::InTurn;
        for (std::size_t chip = all ? 0 : local.begin; chip < (all ? count : local.end); ++chip) {
            const OnChip scope(chip);
            compute(chip);
        }
        return;
    }
    std::vector<std::exception_ptr> failures(count);
    parallel_for(own, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t chip = local.begin + begin; chip < local.begin + end; ++chip) {
            const OnChip scope(chip);
            try {
                compute(chip);
            } catch (...) {
                failures[chip] = std::current_exception();
            }
        }
    });
    for (const std::exception_ptr& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
}

void Participants::see(const Tensor& tensor) {
    if (tensor.tensor_attributes == nullptr) {
        return;
    }
    const auto& parts = parts_of(tensor);
    if (!parts.empty()) {
        TT_FATAL(count == 0 || count == parts.size(),
                 "Tensors of {} and of {} chips do not work together", count, parts.size());
        count = parts.size();
    }
    MeshDevice* device = tensor.tensor_attributes->device;
    // Parts on the host are matched with the known mesh.
    see(device == nullptr ? mesh : device);
}

void Participants::see(MeshDevice* device) {
    if (device == nullptr) {
        return;
    }
    const std::size_t chips = device->impl().chips.size();
    TT_FATAL(mesh == nullptr || mesh == device || (chips == 0 && mesh->impl().chips.empty()),
             "Tensors are on different meshes");
    TT_FATAL(count == 0 || count == chips, "A tensor of {} parts is not for a mesh of {} devices",
             count, device->num_devices());
    mesh = device;
    count = chips;
}

}  // namespace ttcodegen::cpu
