#pragma once

#include <cstddef>

namespace ttcodegen::cpu {

/// A callable `void(begin, end)` by reference; lives only for the call it is passed to.
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

/// How many threads `parallel_for` uses: TTCODEGEN_THREADS, else the number of hardware threads.
std::size_t thread_count();

/// Calls `function` on disjoint ranges that cover [0, count), from several threads.
///
/// No range is smaller than `grain` but the last; a count up to `grain`, or a call from inside
/// another `parallel_for`, runs on the calling thread. The first exception is rethrown.
void parallel_for(std::size_t count, std::size_t grain, RangeFunction function);

}  // namespace ttcodegen::cpu
