#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>

namespace ttsl {

/// A reference that may be absent; never owns its target.
template <typename T>
class optional_reference {
  public:
    optional_reference() = default;
    optional_reference(std::nullopt_t) {}
    optional_reference(T& value) noexcept : value_(std::addressof(value)) {}
    optional_reference(std::optional<T>& value)
        : value_(value ? std::addressof(*value) : nullptr) {}
    template <typename U>
        requires std::is_const_v<T> && std::same_as<std::remove_const_t<T>, U>
    optional_reference(const U& value) noexcept : value_(std::addressof(value)) {}
    template <typename U>
        requires std::is_const_v<T> && std::same_as<std::remove_const_t<T>, U>
    optional_reference(const std::optional<U>& value)
        : value_(value ? std::addressof(*value) : nullptr) {}

    bool has_value() const { return value_ != nullptr; }
    operator bool() const { return has_value(); }
    void reset() { value_ = nullptr; }
    T* operator->() const { return value_; }
    T& operator*() const { return *value_; }
    T& value() const { return *value_; }

  private:
    T* value_ = nullptr;
};

}  // namespace ttsl
