#pragma once

// Reductions of row-major elements over any set of dimensions.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "core/parallel.hpp"
#include "core/tensor_data.hpp"

namespace ttcodegen::cpu {

/// The mapping of a tensor's elements to the elements of its reduction.
///
/// Adjacent dimensions of the same kind are merged. The last merged one, the run, is contiguous;
/// the others are offsets of runs.
class ReductionPlan {
  public:
    /// `is_reduced` has a flag for each dimension of `shape`.
    ReductionPlan(const Shape& shape, const std::vector<bool>& is_reduced);

    /// Offsets of the kept and of the reduced positions, without the run.
    const std::vector<std::size_t>& kept() const { return kept_; }
    const std::vector<std::size_t>& reduced() const { return reduced_; }
    std::size_t run() const { return run_; }
    bool run_is_reduced() const { return run_is_reduced_; }
    std::size_t outputs() const { return kept_.size() * (run_is_reduced_ ? 1 : run_); }
    /// The number of elements that are reduced to one.
    std::size_t inputs_of_each() const { return reduced_.size() * (run_is_reduced_ ? run_ : 1); }

  private:
    std::vector<std::size_t> kept_;
    std::vector<std::size_t> reduced_;
    std::size_t run_ = 1;
    bool run_is_reduced_ = false;
};

/// Reduces `input` to `output` by a plan.
///
/// `Operation` has a value `identity()`, `accumulate(sum, element, center)` and `merge(sum, sum)`;
/// `centers` (may be null) holds one center for each output.
template <typename Value, typename Operation>
void reduce(const ReductionPlan& plan, const Value* input, const Value* centers, Value* output,
            const Operation& operation) {
    constexpr std::size_t lanes = 16;
    constexpr std::size_t chunk = 256;
    constexpr std::size_t grain = std::size_t{1} << 15;  // elements that are worth waking a thread
    const std::size_t run = plan.run();
    const auto reduce_runs = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            // Independent partial results: they vectorise, and long sums lose less precision.
            std::array<Value, lanes> sums;
            sums.fill(operation.identity());
            const Value center = centers != nullptr ? centers[i] : Value{};
            for (const std::size_t offset : plan.reduced()) {
                const Value* elements = input + plan.kept()[i] + offset;
                std::size_t j = 0;
                for (; j + lanes <= run; j += lanes) {
                    for (std::size_t lane = 0; lane < lanes; ++lane) {
                        sums[lane] = operation.accumulate(sums[lane], elements[j + lane], center);
                    }
                }
                for (; j < run; ++j) {
                    sums[j % lanes] = operation.accumulate(sums[j % lanes], elements[j], center);
                }
            }
            for (std::size_t width = lanes / 2; width > 0; width /= 2) {
                for (std::size_t lane = 0; lane < width; ++lane) {
                    sums[lane] = operation.merge(sums[lane], sums[lane + width]);
                }
            }
            output[i] = sums[0];
        }
    };
    const std::size_t chunks = (run + chunk - 1) / chunk;
    const auto reduce_columns = [&](std::size_t begin, std::size_t end) {
        for (std::size_t task = begin; task < end; ++task) {
            const std::size_t first = task % chunks * chunk;
            const std::size_t count = std::min(chunk, run - first);
            Value* sums = output + task / chunks * run + first;
            const Value* own_centers =
                centers != nullptr ? centers + task / chunks * run + first : nullptr;
            std::fill_n(sums, count, operation.identity());
            for (const std::size_t offset : plan.reduced()) {
                const Value* elements = input + plan.kept()[task / chunks] + offset + first;
                for (std::size_t j = 0; j < count; ++j) {
                    sums[j] = operation.accumulate(
                        sums[j], elements[j], own_centers != nullptr ? own_centers[j] : Value{});
                }
            }
        }
    };
    const std::size_t work = std::max<std::size_t>(1, plan.inputs_of_each());
    if (plan.run_is_reduced()) {
        parallel_for(plan.kept().size(), std::max<std::size_t>(1, grain / work), reduce_runs);
    } else {
        const std::size_t width = std::max<std::size_t>(1, std::min(run, chunk));
        parallel_for(plan.kept().size() * chunks, std::max<std::size_t>(1, grain / work / width),
                     reduce_columns);
    }
}

/// As `reduce`, without centers: elements are accumulated in groups of a tile's 32, and `round` is
/// applied to the partial result after each.
template <typename Value, typename Operation, typename Round>
void reduce_by_tiles(const ReductionPlan& plan, const Value* input, Value* output,
                     const Operation& operation, const Round& round) {
    constexpr std::size_t tile = 32;
    const std::size_t step = plan.run_is_reduced() ? plan.run() : 1;
    const auto reduce_one = [&](const Value* elements) {
        Value total = operation.identity();
        Value part = operation.identity();
        std::size_t count = 0;
        for (const std::size_t offset : plan.reduced()) {
            for (std::size_t j = 0; j < step; ++j) {
                part = operation.accumulate(part, elements[offset + j], Value{});
                if (++count % tile == 0) {
                    total = round(operation.merge(total, part));
                    part = operation.identity();
                }
            }
        }
        return round(operation.merge(total, part));
    };
    const std::size_t columns = plan.run_is_reduced() ? 1 : plan.run();
    const std::size_t grain = std::max<std::size_t>(
        1, (std::size_t{1} << 15) / std::max<std::size_t>(1, plan.inputs_of_each()));
    parallel_for(plan.outputs(), grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            output[i] = reduce_one(input + plan.kept()[i / columns] + i % columns);
        }
    });
}

struct SumOperation {
    template <typename Value>
    static Value accumulate(Value sum, Value element, Value center) {
        return sum + (element - center);
    }
    template <typename Value>
    static Value merge(Value a, Value b) {
        return a + b;
    }
    static constexpr int identity() { return 0; }
};

struct SquareSumOperation : SumOperation {
    template <typename Value>
    static Value accumulate(Value sum, Value element, Value center) {
        return sum + (element - center) * (element - center);
    }
};

struct ProductOperation {
    template <typename Value>
    static Value accumulate(Value product, Value element, Value /*center*/) {
        return product * element;
    }
    template <typename Value>
    static Value merge(Value a, Value b) {
        return a * b;
    }
    static constexpr int identity() { return 1; }
};

/// The maximum or minimum in the order `Before`; NaN propagates.
template <typename Value, bool IsMaximum>
struct ExtremeOperation {
    static Value merge(Value a, Value b) {
        const bool better = IsMaximum ? b > a : b < a;
        return better || b != b ? b : a;
    }
    static Value accumulate(Value a, Value b, Value /*center*/) { return merge(a, b); }
    static constexpr Value identity() {
        using Limits = std::numeric_limits<Value>;
        if constexpr (Limits::has_infinity) {
            return IsMaximum ? -Limits::infinity() : Limits::infinity();
        } else {
            return IsMaximum ? Limits::lowest() : Limits::max();
        }
    }
};

}  // namespace ttcodegen::cpu
