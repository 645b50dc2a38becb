#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/model.hpp"

namespace support {

/// A tensor of a pipeline.
struct StageTensor {
    /// The stage that it is an output of; -1 for an input of the whole function.
    std::int32_t stage;
    std::uint32_t index;
};

/// A part of a function that runs on a device of its own.
struct Stage {
    /// The index of its function in the module.
    std::size_t function;
    std::span<const StageTensor> inputs;
    /// Its weights, as indices into the weights of the whole function.
    std::span<const std::uint32_t> weights;
};

/// A function in stages.
struct Pipeline {
    std::span<const Stage> stages;
    std::span<const StageTensor> outputs;
    /// Number of micro-batches, which pass through the stages one after the other.
    std::uint32_t micro_batches = 1;
};

struct Pipelines {
    const Module& module;
    /// The whole functions, and each in stages.
    std::span<const Function> functions;
    std::span<const Pipeline> pipelines;
};

/// Functions in stages: as many processes as stages run one each, or one process runs all of them,
/// on as many devices. Tensors go from stage to stage over sockets.
class PipelineModel : public Runnable {
  public:
    /// Opens the devices of this process.
    /// @throws std::runtime_error if there are too few, or processes do not fit the stages.
    PipelineModel(const Pipelines& pipelines, const std::string& data);
    ~PipelineModel() override;

    std::span<const Function> functions() const override { return pipelines_.functions; }
    bool needs_weight(std::size_t function, std::size_t weight) const override;
    bool has_weight(std::size_t function, std::size_t weight) const override;
    void set_weight(std::size_t function, std::size_t weight, const ArrayView& values) override;
    void prepare(std::size_t function) override;

    /// The outputs are in the first process, none in others.
    std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                           RunTimes* times) override;

  private:
    struct Place;
    struct Sockets;

    bool is_here(std::size_t stage) const;
    std::size_t rank_of(std::size_t stage) const;
    /// Enqueues a stage on a part of the batch.
    std::vector<Tensor> submit(const Pipeline& pipeline, std::size_t stage,
                               std::span<const ArrayView> inputs, std::size_t micro_batch);
    /// An output of the function in the first process, concatenated from the micro-batches.
    std::optional<Array> gathered(const Pipeline& pipeline, const TensorDescription& description,
                                  const StageTensor& output, std::span<const Tensor> parts) const;

    const Pipelines& pipelines_;
    std::size_t stages_;
    /// Calls an action for each stage of this process that takes a weight, with the weight's index.
    template <typename Action>
    void for_stages_with(std::size_t function, std::size_t weight, const Action& action) const;
    Device mesh_;
    std::unique_ptr<Sockets> sockets_;
    /// By stage; empty for stages of other processes.
    std::vector<std::unique_ptr<Model>> models_;
};

}  // namespace support
