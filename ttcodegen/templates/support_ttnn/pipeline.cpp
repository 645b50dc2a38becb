#include "support/pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <tt-metalium/distributed_context.hpp>
#include <tt-metalium/experimental/fabric/fabric.hpp>
#include <tt-metalium/experimental/sockets/mesh_socket.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <ttnn/device.hpp>
#include <ttnn/distributed/api.hpp>
#include <ttnn/operations/creation/creation.hpp>
#include <ttnn/operations/experimental/ccl/send_recv_async/recv_async/recv_async.hpp>
#include <ttnn/operations/experimental/ccl/send_recv_async/send_async/send_async.hpp>
#include <utility>

namespace support {

namespace {

using tt::tt_metal::BufferType;
using tt::tt_metal::CoreCoord;
using tt::tt_metal::distributed::MeshCoordinate;
using tt::tt_metal::distributed::MeshCoreCoord;
using tt::tt_metal::distributed::MeshSocket;
using tt::tt_metal::distributed::SocketConfig;
using tt::tt_metal::distributed::SocketConnection;
using tt::tt_metal::distributed::multihost::DistributedContext;
using tt::tt_metal::distributed::multihost::Rank;
using tt::tt_metal::distributed::multihost::Tag;

// Pages of a socket are buffered in DRAM, so that all of L1 is left to the programs of the stages.
constexpr std::uint32_t socket_bytes = 1 << 20;

std::size_t process_count() {
    return static_cast<std::size_t>(*DistributedContext::get_current_world()->size());
}

std::size_t this_process() {
    return static_cast<std::size_t>(*DistributedContext::get_current_world()->rank());
}

/// Opens the devices of the stages of this process, and the fabric that sockets need.
Device open_stages(std::size_t devices) {
    using tt::tt_fabric::FabricConfig;
    // Between the meshes of several processes packets are routed in two dimensions.
    tt::tt_fabric::SetFabricConfig(process_count() > 1 ? FabricConfig::FABRIC_2D
                                                       : FabricConfig::FABRIC_1D);
    const auto mesh = ttnn::distributed::open_mesh_device(
        ttnn::MeshShape(1, static_cast<std::uint32_t>(devices)), l1_small_bytes,
        DEFAULT_TRACE_REGION_SIZE, /*num_command_queues=*/1, tt::tt_metal::DispatchCoreConfig{});
    return {mesh.get(), [mesh](auto*) {
                try {
                    ttnn::distributed::close_mesh_device(mesh);
                    tt::tt_fabric::SetFabricConfig(FabricConfig::DISABLED);
                } catch (const std::exception&) {
                    // A destructor cannot report it, and the results have been read already.
                }
            }};
}

/// A tensor of the description that receives data.
ttnn::Tensor empty_tensor(const TensorDescription& description, ttnn::MeshDevice& device) {
    std::vector<std::uint32_t> sizes(description.shape().begin(), description.shape().end());
    const BufferType memory = description.memory == Memory::l1 ? BufferType::L1 : BufferType::DRAM;
    return ttnn::empty(ttnn::Shape(ttsl::Span<const std::uint32_t>(sizes)), description.data_type,
                       description.layout, &device,
                       ttnn::MemoryConfig(ttnn::TensorMemoryLayout::INTERLEAVED, memory));
}

/// The configuration of a socket between two stages; cores by the other stage, so that the sockets
/// of a stage have different ones.
SocketConfig socket_config(std::size_t sender, std::size_t receiver, std::size_t columns) {
    const auto core = [&](std::size_t other) {
        return MeshCoreCoord(MeshCoordinate(0, 0), CoreCoord(other % columns, other / columns));
    };
    SocketConfig config;
    config.socket_connection_config = {SocketConnection(core(receiver), core(sender))};
    config.socket_mem_config.socket_storage_type = BufferType::DRAM;
    config.socket_mem_config.fifo_size = socket_bytes;
    return config;
}

/// Division of an array into parts along one dimension.
struct Parts {
    std::size_t outer = 1;
    /// Bytes of a part, and of the whole, between two runs.
    std::size_t part = 0;
    std::size_t whole = 0;
};

/// @throws std::runtime_error unless the whole consists of `count` parts along one dimension.
Parts parts_of(std::span<const std::uint64_t> whole, std::span<const std::uint64_t> part,
               std::size_t element, std::size_t count) {
    std::size_t dim = 0;
    Parts found;
    while (dim < whole.size() && dim < part.size() && whole[dim] == part[dim]) {
        found.outer *= whole[dim++];
    }
    std::size_t inner = element;
    for (std::size_t i = dim + 1; i < whole.size(); ++i) {
        inner *= whole[i];
    }
    if (dim == whole.size() || whole.size() != part.size() || whole[dim] != part[dim] * count) {
        throw std::runtime_error("expected " + std::to_string(count) + " parts of the shape " +
                                 shape_text(part) + ", found " + shape_text(whole));
    }
    found.part = part[dim] * inner;
    found.whole = whole[dim] * inner;
    return found;
}

/// A micro-batch of an input; the input itself if the stage takes all of it.
Array part_of(const ArrayView& whole, const TensorDescription& description, std::size_t place,
              std::size_t count) {
    Array found{whole.type, {description.shape().begin(), description.shape().end()}, {}};
    const auto* const bytes = static_cast<const std::byte*>(whole.data);
    const std::size_t element = element_size(whole.type);
    if (std::ranges::equal(whole.shape, description.shape())) {
        found.bytes.assign(bytes, bytes + element_count(whole.shape) * element);
        return found;
    }
    const Parts parts = parts_of(whole.shape, description.shape(), element, count);
    for (std::size_t run = 0; run < parts.outer; ++run) {
        const std::byte* const begin = bytes + run * parts.whole + place * parts.part;
        found.bytes.insert(found.bytes.end(), begin, begin + parts.part);
    }
    return found;
}

/// Concatenates the parts of an output; returns a part if it has the shape of the whole.
Array joined(std::span<const Array> parts, std::span<const std::uint64_t> shape) {
    if (std::ranges::equal(parts.front().shape, shape)) {
        return parts.front();
    }
    const Parts sizes =
        parts_of(shape, parts.front().shape, element_size(parts.front().type), parts.size());
    Array whole{parts.front().type, {shape.begin(), shape.end()}, {}};
    for (std::size_t run = 0; run < sizes.outer; ++run) {
        for (const Array& part : parts) {
            const std::byte* const begin = part.bytes.data() + run * sizes.part;
            whole.bytes.insert(whole.bytes.end(), begin, begin + sizes.part);
        }
    }
    return whole;
}

}  // namespace

/// The ends of sockets in this process, by the stages that they connect.
struct PipelineModel::Sockets {
    std::map<std::pair<std::size_t, std::size_t>, MeshSocket> senders;
    std::map<std::pair<std::size_t, std::size_t>, MeshSocket> receivers;
};

PipelineModel::PipelineModel(const Pipelines& pipelines, const std::string& data)
    : pipelines_(pipelines), stages_(0), sockets_(std::make_unique<Sockets>()) {
    for (const Pipeline& pipeline : pipelines.pipelines) {
        stages_ = std::max(stages_, pipeline.stages.size());
    }
    const std::size_t processes = process_count();
    if (processes != 1 && processes != stages_) {
        throw std::runtime_error("the pipeline has " + std::to_string(stages_) +
                                 " stages: it runs as one process or as " +
                                 std::to_string(stages_) + ", not as " + std::to_string(processes));
    }
    mesh_ = open_stages(processes == 1 ? stages_ : 1);
    models_.resize(stages_);
    for (std::size_t stage = 0; stage < stages_; ++stage) {
        if (is_here(stage)) {
            const auto column = static_cast<std::uint32_t>(processes == 1 ? stage : 0);
            models_[stage] = std::make_unique<Model>(
                pipelines.module, data,
                mesh_->create_submesh(ttnn::MeshShape(1, 1), MeshCoordinate(0, column)));
        }
    }
    const std::size_t columns = mesh_->compute_with_storage_grid_size().x;
    for (const Pipeline& pipeline : pipelines.pipelines) {
        for (std::size_t receiver = 0; receiver < pipeline.stages.size(); ++receiver) {
            for (const StageTensor& input : pipeline.stages[receiver].inputs) {
                const auto sender = static_cast<std::size_t>(std::max(input.stage, 0));
                const std::pair<std::size_t, std::size_t> between(sender, receiver);
                if (input.stage < 0 || sockets_->senders.contains(between) ||
                    sockets_->receivers.contains(between)) {
                    continue;
                }
                SocketConfig config = socket_config(sender, receiver, columns);
                if (processes == 1) {
                    auto [from, to] = MeshSocket::create_socket_pair(
                        models_[sender]->device(), models_[receiver]->device(), config);
                    sockets_->senders.emplace(between, std::move(from));
                    sockets_->receivers.emplace(between, std::move(to));
                } else if (is_here(sender) || is_here(receiver)) {
                    config.sender_rank = Rank(static_cast<int>(sender));
                    config.receiver_rank = Rank(static_cast<int>(receiver));
                    const std::size_t here = is_here(sender) ? sender : receiver;
                    auto& ends = is_here(sender) ? sockets_->senders : sockets_->receivers;
                    ends.emplace(between, MeshSocket(models_[here]->device(), config));
                }
            }
        }
    }
}

PipelineModel::~PipelineModel() {
    sockets_.reset();
    models_.clear();
}

std::size_t PipelineModel::rank_of(std::size_t stage) const {
    return process_count() == 1 ? 0 : stage;
}

bool PipelineModel::is_here(std::size_t stage) const { return rank_of(stage) == this_process(); }

template <typename Action>
void PipelineModel::for_stages_with(std::size_t function, std::size_t weight,
                                    const Action& action) const {
    const auto stages = pipelines_.pipelines[function].stages;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        const auto found = std::ranges::find(stages[stage].weights, weight);
        if (models_[stage] != nullptr && found != stages[stage].weights.end()) {
            action(*models_[stage], stages[stage].function,
                   static_cast<std::size_t>(found - stages[stage].weights.begin()));
        }
    }
}

bool PipelineModel::needs_weight(std::size_t function, std::size_t weight) const {
    bool needs = false;
    for_stages_with(function, weight, [&](auto&&...) { needs = true; });
    return needs;
}

bool PipelineModel::has_weight(std::size_t function, std::size_t weight) const {
    bool has = true;
    for_stages_with(function, weight, [&](Model& model, std::size_t part, std::size_t place) {
        has = has && model.has_weight(part, place);
    });
    return has;
}

void PipelineModel::set_weight(std::size_t function, std::size_t weight, const ArrayView& values) {
    for_stages_with(function, weight, [&](Model& model, std::size_t part, std::size_t place) {
        model.set_weight(part, place, values);
    });
}

void PipelineModel::prepare(std::size_t function) {
    const auto stages = pipelines_.pipelines[function].stages;
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        if (models_[stage] != nullptr) {
            models_[stage]->prepare(stages[stage].function);
        }
    }
}

std::vector<Tensor> PipelineModel::submit(const Pipeline& pipeline, std::size_t stage,
                                          std::span<const ArrayView> inputs,
                                          std::size_t micro_batch) {
    const Stage& described = pipeline.stages[stage];
    Model& model = *models_[stage];
    const Function& function = model.function(described.function);
    std::vector<Tensor> taken;
    for (std::size_t i = 0; i < described.inputs.size(); ++i) {
        const TensorDescription& description = function.inputs[i];
        const StageTensor& input = described.inputs[i];
        if (input.stage < 0) {
            const Array part =
                part_of(inputs[input.index], description, micro_batch, pipeline.micro_batches);
            taken.push_back(to_tensor(part.view(), description, *model.device()));
            continue;
        }
        const Tensor arriving = empty_tensor(description, *model.device());
        const auto sender = static_cast<std::size_t>(input.stage);
        ttnn::experimental::recv_async(arriving, sockets_->receivers.at({sender, stage}));
        taken.push_back(arriving);
    }
    std::vector<Tensor> outputs = model.submit(described.function, taken);
    for (std::size_t later = stage + 1; later < pipeline.stages.size(); ++later) {
        const Stage& receiver = pipeline.stages[later];
        const Function& receiving = pipelines_.module.functions[receiver.function];
        for (std::size_t i = 0; i < receiver.inputs.size(); ++i) {
            if (receiver.inputs[i].stage == static_cast<std::int32_t>(stage)) {
                const Tensor sent = to_layout(outputs[receiver.inputs[i].index],
                                              receiving.inputs[i], *model.device());
                ttnn::experimental::send_async(sent, sockets_->senders.at({stage, later}));
            }
        }
    }
    return outputs;
}

std::optional<Array> PipelineModel::gathered(const Pipeline& pipeline,
                                             const TensorDescription& description,
                                             const StageTensor& output,
                                             std::span<const Tensor> parts) const {
    const DistributedContext& world = *DistributedContext::get_current_world();
    const auto stage = static_cast<std::size_t>(output.stage);
    const std::size_t owner = rank_of(stage);
    if (owner == this_process()) {
        std::vector<Array> arrays;
        for (const Tensor& part : parts) {
            arrays.push_back(to_array(part));
        }
        Array whole = joined(arrays, description.shape());
        if (owner == 0) {
            return whole;
        }
        world.send({whole.bytes.data(), whole.bytes.size()}, Rank(0), Tag(0));
    } else if (this_process() == 0) {
        const TensorDescription& made =
            pipelines_.module.functions[pipeline.stages[stage].function].outputs[output.index];
        Array whole{element_type(made.data_type),
                    {description.shape().begin(), description.shape().end()},
                    {}};
        whole.bytes.resize(element_count(whole.shape) * element_size(whole.type));
        world.recv({whole.bytes.data(), whole.bytes.size()}, Rank(static_cast<int>(owner)), Tag(0));
        return whole;
    }
    return std::nullopt;
}

std::vector<Array> PipelineModel::run(std::size_t function, std::span<const ArrayView> inputs,
                                      RunTimes* times) {
    const Pipeline& pipeline = pipelines_.pipelines[function];
    const auto descriptions = pipelines_.functions[function].outputs;
    prepare(function);
    const double start = seconds();
    // By output, then by part of the batch. Nothing waits for a device before all is enqueued.
    std::vector<std::vector<Tensor>> kept(pipeline.outputs.size());
    for (std::size_t micro_batch = 0; micro_batch < pipeline.micro_batches; ++micro_batch) {
        for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
            if (models_[stage] == nullptr) {
                continue;
            }
            const std::vector<Tensor> outputs = submit(pipeline, stage, inputs, micro_batch);
            for (std::size_t i = 0; i < kept.size(); ++i) {
                if (pipeline.outputs[i].stage == static_cast<std::int32_t>(stage)) {
                    kept[i].push_back(outputs[pipeline.outputs[i].index]);
                }
            }
        }
    }
    const double ran = seconds();
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (auto array = gathered(pipeline, descriptions[i], pipeline.outputs[i], kept[i])) {
            arrays.push_back(std::move(*array));
        }
    }
    if (times != nullptr) {
        *times = {0, ran - start, seconds() - ran};
    }
    return arrays;
}

}  // namespace support
