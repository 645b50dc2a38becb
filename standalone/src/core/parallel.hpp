#pragma once

#include <cstddef>

namespace ttcodegen::cpu {

/// A reference to a callable `void(begin, end)`; valid only for the call it is passed to.
class RangeFunction {
  public:
    template <typename Function>
    RangeFunction(const Function& function)
        : object_(&function), call_([](const void* object, std::size_t begin, std::size_t end) {
              (*static_cast<const Function*>(object))(begin, end);
          }) {}
    void operator()(std::size_t begin, std::size_t end) const { call_(object_, begin, end); }

  private:
    const void* object_;
    void (*call_)(const void*, std::size_t, std::size_t);
};

/// The number of threads of `parallel_for`: TTCODEGEN_THREADS, else the number of hardware threads.
std::size_t thread_count();

/// Calls `function` on disjoint ranges that cover [0, count), from several threads.
///
/// Only the last range may be smaller than `grain`; a count up to `grain`, or a call inside another
/// `parallel_for`, runs on the calling thread. The first exception is rethrown.
void parallel_for(std::size_t count, std::size_t grain, RangeFunction function);

}  // namespace ttcodegen::cpu
