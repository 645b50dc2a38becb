#pragma once

// Meshes of several devices (chips). A tensor of a mesh has a part on each chip, all of the same
// specification; an operation computes each chip's part, in any order. Operations begin with
// TTCODEGEN_ON_EACH_CHIP; one that does not is refused where it would access the elements.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/arguments.hpp"
#include "core/calls.hpp"
#include "core/tensor_data.hpp"
#include "mesh/ranks.hpp"

namespace ttcodegen::cpu {

/// The chip that the calling thread computes on; none if it works on the whole mesh.
std::optional<std::size_t> current_chip();

/// Binds the calling thread to a chip while the object lives.
class OnChip {
  public:
    explicit OnChip(std::optional<std::size_t> chip);
    ~OnChip();
    OnChip(const OnChip&) = delete;
    OnChip& operator=(const OnChip&) = delete;
    OnChip(OnChip&&) = delete;
    OnChip& operator=(OnChip&&) = delete;

  private:
    std::optional<std::size_t> previous_;
};

/// The chip of a mesh that the calling thread computes on; the device itself if it is no mesh.
MeshDevice* chip_device(MeshDevice* device);

/// The parts of a tensor of a mesh; none of any other tensor.
const std::vector<Tensor>& parts_of(const Tensor& tensor);

/// Joins the parts of the chips of `mesh`, or parts on the host if it is null, to one tensor. Those
/// of chips of other processes may be missing, and their elements are not kept.
Tensor joined(const std::vector<Tensor>& parts, MeshDevice* mesh);

/// The mesh of an operation, derived from its arguments.
class Participants : public ArgumentVisitor<Participants> {
  public:
    std::size_t count = 0;
    MeshDevice* mesh = nullptr;

    using ArgumentVisitor::see;
    void see(const Tensor& tensor);
    void see(MeshDevice* device);
    void see(const MeshDevice& device) { see(const_cast<MeshDevice*>(&device)); }
};

template <typename... Arguments>
[[gnu::noinline]] Participants participants(const Arguments&... arguments) {
    Participants found;
    if (!current_chip()) {
        (found.see(arguments), ...);
    }
    return found;
}

Tensor join(std::vector<Tensor> results, MeshDevice* mesh);
template <typename... T>
std::tuple<T...> join(std::vector<std::tuple<T...>> results, MeshDevice* mesh);
template <typename... T>
std::variant<T...> join(std::vector<std::variant<T...>> results, MeshDevice* mesh);

/// Scalars that an operation also returns are the same on all chips.
template <typename T>
T join(std::vector<T> results, MeshDevice* /*mesh*/) {
    return std::move(results.front());
}

template <typename T>
std::optional<T> join(std::vector<std::optional<T>> results, MeshDevice* mesh) {
    if (!results.front()) {
        return std::nullopt;
    }
    std::vector<T> held;
    for (auto& result : results) {
        held.push_back(std::move(*result));
    }
    return join(std::move(held), mesh);
}

template <typename T>
std::vector<T> join(std::vector<std::vector<T>> results, MeshDevice* mesh) {
    std::vector<T> all;
    for (std::size_t i = 0; i < results.front().size(); ++i) {
        std::vector<T> each;
        for (auto& result : results) {
            each.push_back(std::move(result[i]));
        }
        all.push_back(join(std::move(each), mesh));
    }
    return all;
}

template <typename... T>
std::tuple<T...> join(std::vector<std::tuple<T...>> results, MeshDevice* mesh) {
    const auto element = [&]<std::size_t index>(std::integral_constant<std::size_t, index>) {
        std::vector<std::tuple_element_t<index, std::tuple<T...>>> each;
        for (auto& result : results) {
            each.push_back(std::move(std::get<index>(result)));
        }
        return join(std::move(each), mesh);
    };
    return [&]<std::size_t... index>(std::index_sequence<index...>) {
        return std::tuple<T...>(element(std::integral_constant<std::size_t, index>())...);
    }(std::index_sequence_for<T...>());
}

template <typename... T>
std::variant<T...> join(std::vector<std::variant<T...>> results, MeshDevice* mesh) {
    return std::visit(
        [&]<typename Held>(const Held&) -> std::variant<T...> {
            std::vector<Held> held;
            for (auto& result : results) {
                held.push_back(std::get<Held>(std::move(result)));
            }
            return join(std::move(held), mesh);
        },
        results.front());
}

/// Execution order of the chips of an operation.
enum class ChipOrder : std::uint8_t { Any, InTurn };

/// Calls `compute` for each of `count` chips that this process has, on a thread that is bound to
/// that chip; in turn for those of other processes too, whose results are dropped.
///
/// If every thread gets a chip, chips run in parallel with one thread each; fewer chips, and those
/// of an operation that needs an order, run in sequence with all threads. The results are the same.
/// If several chips fail, the failure of the first of them is thrown.
void for_each_chip(std::size_t count, ChipOrder order,
                   const std::function<void(std::size_t)>& compute);

/// Runs an operation on each chip and joins the results.
template <typename Operation>
[[gnu::cold, gnu::noinline]] std::invoke_result_t<Operation> on_each_chip(
    const Participants& mesh, const Operation& operation, ChipOrder order = ChipOrder::Any) {
    std::vector<std::invoke_result_t<Operation>> results(mesh.count);
    for_each_chip(mesh.count, order, [&](std::size_t chip) { results[chip] = operation(); });
    const LocalChips local = local_chips(mesh.count);
    for (std::size_t chip = 0; chip < mesh.count; ++chip) {
        if (!local.contains(chip)) {
            results[chip] = results[local.begin];
        }
    }
    return join(std::move(results), mesh.mesh);
}

}  // namespace ttcodegen::cpu

/// Prologue of an operation: records or reports the call on request, and for arguments on a mesh of
/// several chips returns the joined results of the function on each. The arguments are all
/// parameters of the function.
#define TTCODEGEN_ON_EACH_CHIP(function, ...) \
    TTCODEGEN_CALL(function, __VA_ARGS__);    \
    TTCODEGEN_ON_CHIPS(Any, function, __VA_ARGS__)

/// The same for a function that draws from a sequence shared by all chips, such as seeds.
#define TTCODEGEN_ON_EACH_CHIP_IN_TURN(function, ...) \
    TTCODEGEN_CALL(function, __VA_ARGS__);            \
    TTCODEGEN_ON_CHIPS(InTurn, function, __VA_ARGS__)

/// The same for a function that is no operation itself, or is reported under another name.
#define TTCODEGEN_ON_CHIPS(order, function, ...)                                            \
    if (const auto mesh = ttcodegen::cpu::participants(__VA_ARGS__); mesh.count > 0) {      \
        return ttcodegen::cpu::on_each_chip(                                                \
            mesh, [&] { return function(__VA_ARGS__); }, ttcodegen::cpu::ChipOrder::order); \
    }
