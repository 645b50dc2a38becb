#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/chips.hpp"

namespace ttcodegen::cpu {

namespace {

thread_local bool inside_parallel_region = false;

std::size_t configured_thread_count() {
    if (const char* text = std::getenv("TTCODEGEN_THREADS")) {
        const long count = std::strtol(text, nullptr, 10);
        if (count > 0) {
            return std::min<std::size_t>(static_cast<std::size_t>(count), 1024);
        }
    }
    return std::max(1U, std::thread::hardware_concurrency());
}

/// The ranges of one `parallel_for`, which threads take in turn.
struct Job {
    Job(std::size_t count_, std::size_t chunk_, RangeFunction function_)
        : count(count_), chunk(chunk_), function(function_) {}

    void work() {
        const OnChip scope(chip);
        for (;;) {
            const std::size_t begin = next.fetch_add(chunk);
            if (begin >= count) {
                return;
            }
            try {
                function(begin, std::min(begin + chunk, count));
            } catch (...) {
                const std::lock_guard lock(failure_mutex);
                if (!failure) {
                    failure = std::current_exception();
                }
            }
        }
    }

    const std::size_t count;
    const std::size_t chunk;
    const RangeFunction function;
    const std::optional<std::size_t> chip = current_chip();
    std::atomic<std::size_t> next = 0;
    std::mutex failure_mutex;
    std::exception_ptr failure;
};

/// Worker threads that sleep between jobs.
class ThreadPool {
  public:
    explicit ThreadPool(std::size_t workers) {
        for (std::size_t i = 0; i < workers; ++i) {
            threads_.emplace_back([this] { serve(); });
        }
    }

    ~ThreadPool() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }

    void run(Job& job) {
        const std::lock_guard one_job_at_a_time(run_mutex_);
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            ++generation_;
        }
        wake_.notify_all();
        inside_parallel_region = true;
        job.work();
        inside_parallel_region = false;
        std::unique_lock lock(mutex_);
        job_ = nullptr;
        idle_.wait(lock, [this] { return busy_ == 0; });
    }

  private:
    void serve() {
        inside_parallel_region = true;
        std::size_t seen = 0;
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return stopping_ || (job_ != nullptr && generation_ != seen); });
            if (stopping_) {
                return;
            }
            seen = generation_;
            Job* job = job_;
            ++busy_;
            lock.unlock();
            job->work();
            lock.lock();
            if (--busy_ == 0) {
                idle_.notify_all();
            }
        }
    }

    std::mutex run_mutex_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable idle_;
    std::vector<std::thread> threads_;
    Job* job_ = nullptr;
    std::size_t generation_ = 0;
    std::size_t busy_ = 0;
    bool stopping_ = false;
};

ThreadPool& thread_pool() {
    static ThreadPool pool(thread_count() - 1);
    return pool;
}

}  // namespace

std::size_t thread_count() {
    static const std::size_t count = configured_thread_count();
    return count;
}

void parallel_for(std::size_t count, std::size_t grain, RangeFunction function) {
    if (count == 0) {
        return;
    }
    const std::size_t threads = thread_count();
    grain = std::max<std::size_t>(grain, 1);
    if (inside_parallel_region || threads == 1 || count <= grain) {
        function(0, count);
        return;
    }
    // Four chunks per thread balance uneven work without much contention.
    const std::size_t chunk = std::max(grain, (count + 4 * threads - 1) / (4 * threads));
    Job job(count, chunk, function);
    thread_pool().run(job);
    if (job.failure) {
        std::rethrow_exception(job.failure);
    }
}

}  // namespace ttcodegen::cpu
