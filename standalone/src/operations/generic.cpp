#include <algorithm>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "core/calls.hpp"
#include "core/chips.hpp"
#include "core/describe.hpp"
#include "core/device.hpp"
#include "core/l1.hpp"
#include "core/tensor_pages.hpp"
#include "device/buffer_pages.hpp"
#include "device/program.hpp"
#include "device/program_runner.hpp"
#include "ttnn/operations/generic/generic_op.hpp"

namespace ttnn {

namespace {

namespace cpu = ttcodegen::cpu;
namespace device = ttcodegen::device;
using tt::tt_metal::Program;
using tt::tt_metal::ProgramDescriptor;
using tt::tt_metal::distributed::MeshCoordinate;
using tt::tt_metal::distributed::MeshCoordinateRange;
using tt::tt_metal::distributed::MeshDevice;
using tt::tt_metal::experimental::MeshProgramDescriptor;

/// The part of a tensor on a chip, and the pages that were written for it.
struct WrittenPart {
    Tensor part;
    tt::tt_metal::Buffer* memory;
    std::size_t chip;
    std::vector<std::byte> pages;
};

std::vector<Tensor> parts_of(const Tensor& tensor) {
    const auto& parts = cpu::parts_of(tensor);
    return parts.empty() ? std::vector<Tensor>{tensor} : parts;
}

/// A tensor and its device memory.
struct PlacedTensor {
    Tensor tensor;
    tt::tt_metal::Buffer* memory;
};

/// Tensors without duplicate memory.
std::vector<PlacedTensor> placed(const std::vector<Tensor>& tensors) {
    std::vector<PlacedTensor> found;
    for (const Tensor& tensor : tensors) {
        tt::tt_metal::Buffer* const memory = tensor.buffer();
        if (std::ranges::none_of(found, [&](const auto& each) { return each.memory == memory; })) {
            found.push_back({tensor, memory});
        }
    }
    return found;
}

/// Writes tensors to the memories of all chips.
///
/// Uninitialised memory stays marked, so that a program that reads it is detected.
std::vector<WrittenPart> written(const std::vector<PlacedTensor>& tensors) {
    std::vector<WrittenPart> given;
    for (const auto& [tensor, memory] : tensors) {
        for (std::size_t chip = 0; const Tensor& part : parts_of(tensor)) {
            WrittenPart one{part, memory, chip++, {}};
            if (!cpu::buffer_of(part).is_empty()) {
                one.pages = cpu::pages_of(part);
                device::write_pages(*memory, one.chip, one.pages.data(), 0, one.pages.size());
            }
            given.push_back(std::move(one));
        }
    }
    return given;
}

/// Reads back the pages that programs have written.
void read_back(const std::vector<WrittenPart>& given) {
    for (const WrittenPart& each : given) {
        std::vector<std::byte> pages(each.memory->size());
        const bool is_written = device::read_written_pages(*each.memory, each.chip, pages.data());
        if (is_written && pages != each.pages) {
            cpu::store_pages(each.part, pages);
        }
    }
}

/// Refuses circular buffers that overlap tensors in L1.
void require_room(const ProgramDescriptor& program, MeshDevice* mesh) {
    std::map<tt::tt_metal::CoreCoord, std::size_t> bytes;
    std::size_t most = 0;
    for (const auto& buffer : program.cbs) {
        if (buffer.buffer != nullptr) {
            continue;
        }
        for (const auto& core : device::cores_of(buffer.core_ranges)) {
            most = std::max(most, bytes[core] += buffer.total_size);
        }
    }
    // Tensors are allocated alike on each chip.
    const cpu::OnChip first(0);
    cpu::require_circular_buffers(mesh, most);
}

std::vector<device::ChipProgram> chip_programs(const MeshCoordinateRange& range, Program& program,
                                               const MeshDevice& mesh) {
    std::vector<device::ChipProgram> found;
    for (std::uint32_t row = 0; row < mesh.num_rows(); ++row) {
        for (std::uint32_t column = 0; column < mesh.num_cols(); ++column) {
            if (range.contains(MeshCoordinate(row, column))) {
                found.push_back({row * mesh.num_cols() + column, &program.impl()});
            }
        }
    }
    return found;
}

/// The programs of one call.
class MeshPrograms {
  public:
    MeshPrograms(const MeshProgramDescriptor& descriptor, MeshDevice& mesh) : mesh_(mesh) {
        const MeshCoordinateRange all(mesh.shape());
        programs_.reserve(descriptor.mesh_programs.size());
        for (const auto& [range, program] : descriptor.mesh_programs) {
            TT_FATAL(all.contains(range.start_coord()) && all.contains(range.end_coord()),
                     "The mesh has no device in the range of the program");
            require_room(program, &mesh);
            programs_.emplace_back(program);
            const auto more = chip_programs(range, programs_.back(), mesh);
            for (const auto& each : more) {
                TT_FATAL(std::ranges::none_of(
                             runs_, [&](const auto& other) { return other.chip == each.chip; }),
                         "Two programs are for one device of the mesh");
            }
            runs_.insert(runs_.end(), more.begin(), more.end());
        }
        std::ranges::sort(runs_, {}, &device::ChipProgram::chip);
    }

    std::size_t count() const { return programs_.size(); }

    /// Runs them on tensors.
    void run(const std::vector<PlacedTensor>& tensors) const {
        const auto given = written(tensors);
        device::run_programs(mesh_.impl().emulated(), runs_);
        read_back(given);
    }

  private:
    MeshDevice& mesh_;
    std::vector<Program> programs_;
    std::vector<device::ChipProgram> runs_;
};

/// The kernel sources, which with the tensors identify what is cached on the device.
std::string sources_of(const MeshProgramDescriptor& descriptor) {
    std::string sources = "generic_op";
    for (const auto& [range, program] : descriptor.mesh_programs) {
        for (const auto& kernel : program.kernels) {
            sources += '\n' + kernel.kernel_source;
            for (const std::uint32_t argument : kernel.compile_time_args) {
                sources += ' ' + std::to_string(argument);
            }
            for (const auto& [name, argument] : kernel.named_compile_time_args) {
                sources += ' ' + name + '=' + std::to_string(argument);
            }
        }
    }
    return sources;
}

cpu::Tensors operands_of(const std::vector<Tensor>& io_tensors) {
    cpu::Tensors operands;
    operands.see(io_tensors);
    return operands;
}

/// Records a call: the programs run with each replay, at the current addresses of the tensors.
void record(const std::vector<Tensor>& io_tensors, const MeshProgramDescriptor& descriptor) {
    const auto operands = operands_of(io_tensors);
    cpu::require_called(sources_of(descriptor).c_str(), operands);
    const cpu::RecordedCall call("generic_op", operands, operands);
    const auto programs =
        std::make_shared<const MeshPrograms>(descriptor, *io_tensors.front().device());
    std::vector<std::shared_ptr<tt::tt_metal::Buffer>> memories;
    std::vector<PlacedTensor> tensors;
    for (const auto& [tensor, memory] : placed(io_tensors)) {
        memories.push_back(cpu::lasting_memory_of(tensor));
        tensors.push_back({cpu::unowned(tensor), memories.back().get()});
    }
    const auto run = [call, programs, memories, tensors] {
        call.require_operands();
        programs->run(tensors);
        return tensors.back().tensor;
    };
    cpu::current_capture()->add_programs(
        programs->count(), [run, kept = cpu::kept_argument(io_tensors)] {
            cpu::reports_calls() ? cpu::reported("generic_op", run, kept) : run();
        });
}

void require_valid(const std::vector<Tensor>& io_tensors, const MeshProgramDescriptor& descriptor) {
    TT_FATAL(io_tensors.size() >= 2,
             "io_tensors must contain at least one input tensor and one output tensor, got {} "
             "tensors.",
             io_tensors.size());
    for (const Tensor& tensor : io_tensors) {
        for (const Tensor& part : parts_of(tensor)) {
            cpu::require_on_device(part, "A tensor of generic_op");
        }
        TT_FATAL(tensor.device() == io_tensors.front().device(),
                 "The tensors of generic_op are on different devices");
    }
    const auto& programs = descriptor.mesh_programs;
    for (std::size_t i = 0; i < programs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            TT_FATAL(programs[i].first != programs[j].first,
                     "Duplicate MeshCoordinateRange found in MeshProgramDescriptor");
        }
    }
}

}  // namespace

Tensor generic_op(const std::vector<Tensor>& io_tensors,
                  const MeshProgramDescriptor& mesh_program_descriptor) {
    if (cpu::records_calls()) {
        require_valid(io_tensors, mesh_program_descriptor);
        record(io_tensors, mesh_program_descriptor);
        return io_tensors.back();
    }
    TTCODEGEN_REPORTED(generic_op, io_tensors, mesh_program_descriptor);
    require_valid(io_tensors, mesh_program_descriptor);
    const MeshPrograms programs(mesh_program_descriptor, *io_tensors.front().device());
    programs.run(placed(io_tensors));
    const auto operands = operands_of(io_tensors);
    cpu::note_call("generic_op", operands);
    cpu::note_call(sources_of(mesh_program_descriptor).c_str(), operands);
    return io_tensors.back();
}

Tensor generic_op(const std::vector<Tensor>& io_tensors,
                  const ProgramDescriptor& program_descriptor) {
    TT_FATAL(!io_tensors.empty(), "io_tensors must not be empty");
    TT_FATAL(cpu::on_device(io_tensors.front()), "Tensor must be on a device");
    MeshProgramDescriptor mesh_program_descriptor;
    mesh_program_descriptor.mesh_programs.emplace_back(
        MeshCoordinateRange(io_tensors.front().device()->shape()), program_descriptor);
    return generic_op(io_tensors, mesh_program_descriptor);
}

}  // namespace ttnn
