#include <algorithm>
#include <map>
#include <ranges>
#include <vector>

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

/// What a chip has of a tensor, and the pages that it was given.
struct GivenPart {
    Tensor part;
    tt::tt_metal::Buffer* memory;
    std::size_t chip;
    std::vector<std::byte> pages;
};

std::vector<Tensor> parts_of(const Tensor& tensor) {
    const auto& parts = cpu::parts_of(tensor);
    return parts.empty() ? std::vector<Tensor>{tensor} : parts;
}

/// Brings tensors, each once, to the memories of all chips.
///
/// Memory that nobody wrote stays such, so that a program that reads it is found out.
std::vector<GivenPart> written(const std::vector<Tensor>& tensors) {
    std::vector<GivenPart> given;
    for (const Tensor& tensor : tensors) {
        tt::tt_metal::Buffer* const memory = tensor.buffer();
        if (std::ranges::any_of(given, [&](const auto& each) { return each.memory == memory; })) {
            continue;
        }
        for (std::size_t chip = 0; const Tensor& part : parts_of(tensor)) {
            GivenPart one{part, memory, chip++, {}};
            if (!cpu::buffer_of(part).is_empty()) {
                one.pages = cpu::pages_of(part);
                device::write_pages(*memory, one.chip, one.pages.data(), 0, one.pages.size());
            }
            given.push_back(std::move(one));
        }
    }
    return given;
}

/// Takes back what programs have written.
void read_back(const std::vector<GivenPart>& given) {
    for (const GivenPart& each : given) {
        std::vector<std::byte> pages(each.memory->size());
        const bool is_written = device::read_written_pages(*each.memory, each.chip, pages.data());
        if (is_written && pages != each.pages) {
            cpu::store_pages(each.part, pages);
        }
    }
}

/// Refuses circular buffers that reach into tensors in L1.
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
    // Tensors take the same of each chip.
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

void run(const MeshProgramDescriptor& descriptor, MeshDevice& mesh) {
    const MeshCoordinateRange all(mesh.shape());
    std::vector<Program> programs;
    programs.reserve(descriptor.mesh_programs.size());
    std::vector<device::ChipProgram> runs;
    for (const auto& [range, program] : descriptor.mesh_programs) {
        TT_FATAL(all.contains(range.start_coord()) && all.contains(range.end_coord()),
                 "The mesh has no device in the range of the program");
        require_room(program, &mesh);
        programs.emplace_back(program);
        const auto more = chip_programs(range, programs.back(), mesh);
        for (const auto& each : more) {
            TT_FATAL(std::ranges::none_of(
                         runs, [&](const auto& other) { return other.chip == each.chip; }),
                     "Two programs are for one device of the mesh");
        }
        runs.insert(runs.end(), more.begin(), more.end());
    }
    std::ranges::sort(runs, {}, &device::ChipProgram::chip);
    device::run_programs(mesh.impl().emulated(), runs);
}

}  // namespace

Tensor generic_op(const std::vector<Tensor>& io_tensors,
                  const MeshProgramDescriptor& mesh_program_descriptor) {
    TT_FATAL(cpu::current_capture() == nullptr,
             "The CPU backend has no generic_op in traces: run it outside of the capture");
    TTCODEGEN_CALL(generic_op, io_tensors, mesh_program_descriptor);
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
    const auto& programs = mesh_program_descriptor.mesh_programs;
    for (std::size_t i = 0; i < programs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            TT_FATAL(programs[i].first != programs[j].first,
                     "Duplicate MeshCoordinateRange found in MeshProgramDescriptor");
        }
    }
    const auto given = written(io_tensors);
    run(mesh_program_descriptor, *io_tensors.front().device());
    read_back(given);
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
