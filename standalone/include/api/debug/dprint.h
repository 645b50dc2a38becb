#pragma once

// As the build of kernels defines it on hardware with TT_METAL_DPRINT_CORES set; here output is
// available in any build.
#ifndef DEBUG_PRINT_ENABLED
#define DEBUG_PRINT_ENABLED
#endif

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "ttcodegen/device/processor.hpp"

struct ENDL {};
struct HEX {};
struct DEC {};
struct OCT {};
struct FIXED {};
struct DEFAULTFLOAT {};
struct SETW {
    int width;
    constexpr SETW(int w) : width(w) {}
};
struct SETPRECISION {
    int precision;
    constexpr SETPRECISION(int p) : precision(p) {}
};
struct BF16 {
    std::uint16_t val;
    constexpr BF16(std::uint16_t bits) : val(bits) {}
};
struct F32 {
    float val;
    constexpr F32(float value) : val(value) {}
};
struct bf16_t {
    std::uint16_t val;
    constexpr bf16_t(std::uint16_t bits) : val(bits) {}
};
struct U32 {
    std::uint32_t val;
    constexpr U32(std::uint32_t value) : val(value) {}
};

/// Collects one line of output and prints it, with the core and the processor, at ENDL or on
/// destruction. Only with TT_METAL_DPRINT_CORES set, as on hardware.
class DebugPrinter {
  public:
    DebugPrinter() = default;
    template <typename T>
    explicit DebugPrinter(const T& first) {
        *this << first;
    }
    DebugPrinter(const DebugPrinter&) = delete;
    ~DebugPrinter() {
        if (length_ != 0) {
            flush();
        }
    }

    DebugPrinter& operator<<(const char* text) {
        put(text, std::strlen(text));
        if (length_ != 0 && line_[length_ - 1] == '\n') {
            flush();
        }
        return *this;
    }
    DebugPrinter& operator<<(char c) {
        put(&c, 1);
        return *this;
    }
    DebugPrinter& operator<<(bool value) { return *this << (value ? "1" : "0"); }
    template <std::integral T>
    DebugPrinter& operator<<(T value) {
        char digits[32];
        const bool negative = std::signed_integral<T> && base_ == 'u' && value < T{};
        const char format[] = {'%', '*', 'l', 'l', negative ? 'd' : base_, '\0'};
        return *this << print(digits, format, static_cast<long long>(value));
    }
    DebugPrinter& operator<<(float value) { return *this << F32(value); }
    DebugPrinter& operator<<(F32 value) {
        char digits[64];
        const char format[] = {'%', '*', '.', '*', fixed_ ? 'f' : 'g', '\0'};
        std::snprintf(digits, sizeof digits, format, width_, precision_,
                      static_cast<double>(value.val));
        width_ = 0;
        return *this << static_cast<const char*>(digits);
    }
    DebugPrinter& operator<<(BF16 value) {
        return *this << F32(__builtin_bit_cast(float, static_cast<std::uint32_t>(value.val) << 16));
    }
    DebugPrinter& operator<<(bf16_t value) { return *this << BF16(value.val); }
    DebugPrinter& operator<<(U32 value) { return *this << value.val; }
    DebugPrinter& operator<<(ENDL) {
        flush();
        return *this;
    }
    DebugPrinter& operator<<(HEX) { return set_base('x'); }
    DebugPrinter& operator<<(OCT) { return set_base('o'); }
    DebugPrinter& operator<<(DEC) { return set_base('u'); }
    DebugPrinter& operator<<(FIXED) {
        fixed_ = true;
        return *this;
    }
    DebugPrinter& operator<<(DEFAULTFLOAT) {
        fixed_ = false;
        return *this;
    }
    DebugPrinter& operator<<(SETW setting) {
        width_ = setting.width;
        return *this;
    }
    DebugPrinter& operator<<(SETPRECISION setting) {
        precision_ = setting.precision;
        return *this;
    }

    /// Prints a text with an argument in the place of each `{}`, and keeps what follows the last
    /// end of a line for the next time.
    template <typename... Arguments>
    void format(const char* text, const Arguments&... arguments) {
        std::memcpy(line_, pending.text, pending.length);
        length_ = pending.length;
        const char* rest = text;
        ((rest = put_until_place(rest), *this << arguments << DEC()), ...);
        put_until_place(rest);
        std::memcpy(pending.text, line_, length_);
        pending.length = length_;
        length_ = 0;
    }

  private:
    static constexpr std::size_t kLength = 480;
    struct Pending {
        char text[kLength];
        std::size_t length;
    };
    static inline Pending pending{};

    /// Puts text up to the next `{}`; returns what is after that. Braces in the text are doubled.
    const char* put_until_place(const char* text) {
        for (; *text != '\0'; ++text) {
            if (*text == '{' && text[1] != '{') {
                for (; *text != '\0' && *text != '}'; ++text) {
                    if (*text == 'x' || *text == 'X') {
                        set_base(*text);
                    }
                }
                return *text == '\0' ? text : text + 1;
            }
            text += (*text == '{' || *text == '}') && text[1] == *text;
            if (*text == '\n') {
                flush();
            } else {
                put(text, 1);
            }
        }
        return text;
    }
    DebugPrinter& set_base(char base) {
        base_ = base;
        return *this;
    }
    const char* print(char (&digits)[32], const char* format, long long value) {
        std::snprintf(digits, sizeof digits, format, width_, value);
        width_ = 0;
        return digits;
    }
    void put(const char* text, std::size_t length) {
        const std::size_t room = sizeof line_ - length_;
        const std::size_t taken = length < room ? length : room;
        std::memcpy(line_ + length_, text, taken);
        length_ += taken;
    }
    void flush() {
        auto& processor = ttcodegen::device::current();
        processor.functions->print(processor, line_, length_);
        length_ = 0;
    }

    char line_[kLength];
    std::size_t length_ = 0;
    char base_ = 'u';
    bool fixed_ = false;
    int width_ = 0;
    int precision_ = 6;
};

/// `DPRINT << value` begins a line, as releases up to 0.70.1 have it.
struct DebugOutput {
    template <typename T>
    DebugPrinter operator<<(const T& first) const {
        return DebugPrinter(first);
    }
};
inline constexpr DebugOutput DPRINT;
/// `DPRINT("{}\n", value)`, the form of later releases.
#define DPRINT(...) DebugPrinter().format(__VA_ARGS__)

#ifdef COMPILE_FOR_TRISC
#define DPRINT_UNPACK(x) x
#define DPRINT_MATH(x) x
#define DPRINT_PACK(x) x
#define DPRINT_DATA0(x)
#define DPRINT_DATA1(x)
#else
#define DPRINT_UNPACK(x)
#define DPRINT_MATH(x)
#define DPRINT_PACK(x)
#define DPRINT_DATA0(x)   \
    if (noc_index == 0) { \
        x;                \
    }
#define DPRINT_DATA1(x)   \
    if (noc_index == 1) { \
        x;                \
    }
#endif
