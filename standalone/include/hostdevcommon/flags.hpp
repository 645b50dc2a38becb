#pragma once

#include <type_traits>

/// A set of flags of an enumeration, each value of which is one bit.
template <typename E>
class Flags {
  public:
    static_assert(std::is_enum_v<E>, "Flags are named by an enumeration");

    using Underlying = std::underlying_type_t<E>;

    constexpr Flags() noexcept = default;
    constexpr Flags(E flag) noexcept : bits_(static_cast<Underlying>(flag)) {}
    constexpr explicit Flags(Underlying bits) noexcept : bits_(bits) {}

    constexpr Flags operator|(E other) const noexcept { return *this | Flags(other); }
    constexpr Flags operator|(Flags other) const noexcept {
        return Flags(static_cast<Underlying>(bits_ | other.bits_));
    }
    constexpr Flags operator&(E other) const noexcept {
        return Flags(static_cast<Underlying>(bits_ & Flags(other).bits_));
    }
    constexpr bool test(E flag) const noexcept { return (*this & flag).bits_ == Flags(flag).bits_; }
    void set(E flag, bool value = true) noexcept {
        const Underlying bit = Flags(flag).bits_;
        bits_ = static_cast<Underlying>(value ? bits_ | bit : bits_ & ~bit);
    }
    constexpr Underlying raw() const noexcept { return bits_; }

  private:
    Underlying bits_ = 0;
};
