#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/model.hpp"

namespace support {

/// A dimension whose size is known when a function is called.
struct DynamicDimension {
    const char* name;
    /// The smallest size that the model takes.
    std::uint64_t least;
};

/// The size of a dimension of a tensor: `offset`, and `scale` times a dynamic dimension.
struct Extent {
    std::int64_t offset;
    /// The index of the dynamic dimension; -1 for a size that is fixed.
    std::int32_t dimension = -1;
    std::int64_t scale = 0;
};

struct BucketTensor {
    std::span<const Extent> extents;
    /// The value of elements that are padded.
    double padding = 0;
};

/// A function for certain sizes of the dynamic dimensions.
struct SizedFunction {
    /// Its index in the module.
    std::size_t function;
    std::span<const std::uint64_t> sizes;
};

/// A function for several sizes of its dynamic dimensions.
struct Buckets {
    const Module& module;
    /// The function without sizes, with the tensors of the largest bucket, and those of all
    /// buckets.
    std::span<const Function> functions;
    std::span<const DynamicDimension> dimensions;
    std::span<const BucketTensor> inputs;
    std::span<const BucketTensor> outputs;
    /// In ascending order of sizes, the last dimension first.
    std::span<const SizedFunction> buckets;
};

/// A model with dynamic dimensions on a device. Its first function takes inputs of any size: they
/// are padded to the smallest bucket that fits, and the outputs are cut.
class BucketModel : public Runnable {
  public:
    BucketModel(const Buckets& buckets, const std::string& data, Device device);

    std::span<const Function> functions() const override { return buckets_.functions; }
    bool is_replayed() const override { return model_.is_replayed(); }
    bool has_weight(std::size_t function, std::size_t weight) const override;
    void set_weight(std::size_t function, std::size_t weight, const ArrayView& values) override;
    void prepare(std::size_t function) override;

    /// @throws std::runtime_error as Model does, or if no bucket fits the inputs.
    std::vector<Array> run(std::size_t function, std::span<const ArrayView> inputs,
                           RunTimes* times = nullptr) override;

  private:
    /// The sizes of the dynamic dimensions in a call.
    std::vector<std::uint64_t> sizes_of(std::span<const ArrayView> inputs) const;
    const SizedFunction& bucket_for(std::span<const std::uint64_t> sizes) const;

    const Buckets& buckets_;
    Model model_;
};

}  // namespace support
