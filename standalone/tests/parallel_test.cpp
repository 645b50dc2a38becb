#include "core/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "compute_testing.hpp"

using namespace compute_testing;
using ttcodegen::cpu::parallel_for;

namespace {

void every_index_is_visited_once() {
    for (const std::size_t count : {0, 1, 7, 1000, 100003}) {
        std::vector<std::atomic<int>> visits(count);
        parallel_for(count, 10, [&](std::size_t begin, std::size_t end) {
            expect(begin < end && end <= count, "a range is within the count");
            for (std::size_t i = begin; i < end; ++i) {
                ++visits[i];
            }
        });
        for (const auto& visit : visits) {
            expect(visit == 1, "visited once");
        }
    }
}

void nested_calls_run_where_they_are() {
    std::atomic<int> total = 0;
    parallel_for(100, 1, [&](std::size_t begin, std::size_t end) {
        parallel_for(end - begin, 1, [&](std::size_t from, std::size_t to) {
            total += static_cast<int>(to - from);
        });
    });
    expect(total == 100, "nested ranges");
}

void failures_reach_the_caller() {
    expect_refused(
        [] {
            parallel_for(1000, 1, [](std::size_t begin, std::size_t end) {
                if (begin <= 500 && 500 < end) {
                    throw std::runtime_error("element 500");
                }
            });
        },
        "element 500");
    every_index_is_visited_once();
}

void several_callers_take_turns() {
    std::atomic<int> total = 0;
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
        callers.emplace_back([&] {
            for (int round = 0; round < 50; ++round) {
                parallel_for(100, 5, [&](std::size_t begin, std::size_t end) {
                    total += static_cast<int>(end - begin);
                });
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    expect(total == 4 * 50 * 100, "nothing lost");
}

}  // namespace

int main() {
    // Set before the first use: the tests need threads on any machine.
    setenv("TTCODEGEN_THREADS", "4", 1);
    every_index_is_visited_once();
    nested_calls_run_where_they_are();
    failures_reach_the_caller();
    several_callers_take_turns();
}
