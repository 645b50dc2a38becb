#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "support/cpu/tensor.hpp"

namespace support::cpu {

/// Calls a function while a condition of one element holds.
///
/// The function takes the carried and the captured tensors. It returns the condition of the next
/// iteration, and the carried tensors for it.
template <std::size_t Count, typename Iteration, typename... Captured>
std::array<Tensor, Count> repeated(const Iteration& iteration, Tensor going,
                                   std::array<Tensor, Count> carried, const Captured&... captured) {
    while (going.elements.at(0) != 0) {
        auto next = std::apply([&](const auto&... each) { return iteration(each..., captured...); },
                               carried);
        going = std::move(next[0]);
        std::move(next.begin() + 1, next.end(), carried.begin());
    }
    return carried;
}

}  // namespace support::cpu
