#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "tt_stl/optional_reference.hpp"

namespace ttcodegen::cpu {

/// Visits the tensors and devices among an operation's arguments and results: `Visitor` derives
/// from this class, and adds an overload of `see` for its types.
template <typename Visitor>
class ArgumentVisitor {
  public:
    template <typename T>
    void see(const std::optional<T>& value) {
        if (value) {
            self().see(*value);
        }
    }
    template <typename T>
    void see(const ttsl::optional_reference<T>& value) {
        if (value) {
            self().see(*value);
        }
    }
    template <typename T>
    void see(const std::reference_wrapper<T>& value) {
        self().see(value.get());
    }
    template <typename T>
    void see(const std::vector<T>& values) {
        for (const T& value : values) {
            self().see(value);
        }
    }
    template <typename T, std::size_t size>
    void see(const std::array<T, size>& values) {
        for (const T& value : values) {
            self().see(value);
        }
    }
    template <typename... T>
    void see(const std::variant<T...>& value) {
        std::visit([this](const auto& held) { self().see(held); }, value);
    }
    template <typename... T>
    void see(const std::tuple<T...>& values) {
        std::apply([this](const auto&... each) { (self().see(each), ...); }, values);
    }
    /// Scalars, configs and the like are ignored.
    template <typename T>
    void see(const T& /*value*/) {}

  private:
    Visitor& self() { return static_cast<Visitor&>(*this); }
};

}  // namespace ttcodegen::cpu
