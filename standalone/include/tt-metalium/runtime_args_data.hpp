#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tt::tt_metal {

/// Runtime arguments of a kernel, in place: writes apply to the next run.
struct RuntimeArgsData {
    std::uint32_t* rt_args_data;
    std::size_t rt_args_count;

    bool in_bounds(std::size_t index) const noexcept { return index < rt_args_count; }

    std::uint32_t& operator[](std::size_t index) noexcept { return rt_args_data[index]; }
    const std::uint32_t& operator[](std::size_t index) const noexcept {
        return rt_args_data[index];
    }
    std::uint32_t& at(std::size_t index) {
        check(index);
        return rt_args_data[index];
    }
    const std::uint32_t& at(std::size_t index) const {
        check(index);
        return rt_args_data[index];
    }
    std::uint32_t* data() noexcept { return rt_args_data; }
    const std::uint32_t* data() const noexcept { return rt_args_data; }
    std::size_t size() const noexcept { return rt_args_count; }

  private:
    void check(std::size_t index) const {
        if (!in_bounds(index)) {
            throw std::out_of_range("Index " + std::to_string(index) +
                                    " is larger than runtime args size " +
                                    std::to_string(rt_args_count));
        }
    }
};

}  // namespace tt::tt_metal
