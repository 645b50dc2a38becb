// Threads that use the C API of a module at random, compiled with -DMODULE=<name> and the module's
// header included first: models of their own, tensors of each other on the device, and calls that
// are wrong. Results must be those of one thread alone, byte by byte. Ends with 1 and a line for
// what is another than it should be; data races are ThreadSanitizer's to report.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#define JOINED(a, b) a##b
#define NAMED(module, name) JOINED(module, name)
#define API(name) NAMED(MODULE, _##name)

namespace {

constexpr int thread_count = 8;
constexpr unsigned seeds = 3;
std::atomic<int> failures = 0;

bool expect(bool condition, int line) {
    if (!condition) {
        std::printf("line %d: %s\n", line, API(last_error)());
        ++failures;
    }
    return condition;
}
#define EXPECT(condition) \
    if (!expect(condition, __LINE__)) return

std::size_t size_of(std::int32_t dtype) {
    switch (dtype) {
        case TTCODEGEN_BOOL:
        case TTCODEGEN_INT8:
        case TTCODEGEN_UINT8:
            return 1;
        case TTCODEGEN_INT16:
        case TTCODEGEN_UINT16:
        case TTCODEGEN_FLOAT16:
        case TTCODEGEN_BFLOAT16:
            return 2;
        case TTCODEGEN_INT64:
        case TTCODEGEN_UINT64:
        case TTCODEGEN_FLOAT64:
            return 8;
        default:
            return 4;
    }
}

/// An array of the caller, with its elements.
struct Array {
    std::vector<std::uint64_t> shape;
    std::vector<char> bytes;
    std::int32_t dtype;

    explicit Array(const ttcodegen_tensor& of)
        : shape(of.shape, of.shape + of.rank), dtype(of.dtype) {
        std::size_t size = size_of(dtype);
        for (std::uint64_t each : shape) size *= each;
        bytes.resize(size);
    }

    void draw(unsigned seed) {
        std::mt19937 random(seed);
        for (std::size_t at = 0; at + size_of(dtype) <= bytes.size(); at += size_of(dtype)) {
            const int number = static_cast<int>(random() % 5);
            if (dtype == TTCODEGEN_FLOAT32) {
                const float value = static_cast<float>(number - 2);
                std::memcpy(&bytes[at], &value, 4);
            } else if (dtype == TTCODEGEN_BFLOAT16) {
                const float value = static_cast<float>(number - 2);
                std::memcpy(&bytes[at], reinterpret_cast<const char*>(&value) + 2, 2);
            } else {
                bytes[at] = static_cast<char>(dtype == TTCODEGEN_BOOL ? number & 1 : number);
            }
        }
    }

    ttcodegen_array view() {
        return {dtype, static_cast<std::uint32_t>(shape.size()), shape.data(), bytes.data(),
                bytes.size()};
    }
};

std::vector<Array> inputs_of(std::size_t function, unsigned seed) {
    std::vector<Array> found;
    for (std::size_t i = 0; i < API(input_count)(function); ++i) {
        ttcodegen_tensor tensor;
        API(describe_input)(function, i, &tensor);
        found.emplace_back(tensor).draw(seed + 10 * static_cast<unsigned>(i));
    }
    return found;
}

std::vector<Array> outputs_of(std::size_t function) {
    std::vector<Array> found;
    for (std::size_t i = 0; i < API(output_count)(function); ++i) {
        ttcodegen_tensor tensor;
        API(describe_output)(function, i, &tensor);
        found.emplace_back(tensor);
    }
    return found;
}

std::vector<ttcodegen_array> views(std::vector<Array>& arrays) {
    std::vector<ttcodegen_array> found;
    for (Array& each : arrays) found.push_back(each.view());
    return found;
}

/// Results of one thread, by function, seed of the weights and seed of the inputs.
std::vector<std::vector<Array>> expected;

const std::vector<Array>& expected_of(std::size_t function, unsigned weights, unsigned seed) {
    return expected[(function * seeds + weights) * seeds + seed];
}

/// Inputs that all threads submit: by function and seed, made by the first model.
std::vector<std::vector<ttcodegen_device_tensor*>> shared;
ttcodegen_model* first_model = nullptr;

struct User {
    std::mt19937 random;
    ttcodegen_model* model = nullptr;
    ttcodegen_model* beside = nullptr;
    unsigned weights = 0;
    bool shares = false;

    unsigned drawn(std::size_t end) { return static_cast<unsigned>(random() % end); }
    std::size_t function() { return drawn(API(function_count)()); }

    bool draw_weights(ttcodegen_model* of) {
        for (std::size_t each = 0; each < API(function_count)(); ++each)
            if (API(draw_weights)(of, each, weights) != 0) return false;
        return true;
    }

    void reopen() {
        API(close)(beside);
        API(close)(model);
        model = beside = nullptr;
        weights = drawn(seeds);
        shares = first_model != nullptr && drawn(2) == 0;
        if (shares) {
            EXPECT(API(open_beside)(TTCODEGEN_API_VERSION, nullptr, first_model, &model) == 0);
        } else {
            EXPECT(API(open)(TTCODEGEN_API_VERSION, nullptr, 0, &model) == 0);
        }
        EXPECT(draw_weights(model));
    }

    void compare(std::size_t function, unsigned seed, const std::vector<Array>& found) {
        const std::vector<Array>& wanted = expected_of(function, weights, seed);
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT(found[i].bytes == wanted[i].bytes);
    }

    void run(ttcodegen_model* of) {
        const std::size_t called = function();
        const unsigned seed = drawn(seeds);
        std::vector<Array> inputs = inputs_of(called, seed), outputs = outputs_of(called);
        const auto in = views(inputs), out = views(outputs);
        EXPECT(API(run)(of, called, in.data(), in.size(), out.data(), out.size()) == 0);
        compare(called, seed, outputs);
    }

    void submit() {
        const std::size_t called = function();
        const unsigned seed = drawn(seeds);
        std::vector<Array> inputs = inputs_of(called, seed), outputs = outputs_of(called);
        std::vector<ttcodegen_device_tensor*> given(inputs.size()), results(outputs.size());
        const bool own = !shares || drawn(2) == 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const ttcodegen_array view = inputs[i].view();
            given[i] = shared[called * seeds + seed][i];
            if (own) EXPECT(API(to_device)(model, called, i, &view, &given[i]) == 0);
        }
        EXPECT(API(submit)(model, called, given.data(), given.size(), results.data(),
                           results.size()) == 0);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const ttcodegen_array view = outputs[i].view();
            ttcodegen_tensor description;
            EXPECT(API(describe_tensor)(results[i], &description) == 0);
            EXPECT(API(to_host)(results[i], &view) == 0);
            API(release)(results[i]);
        }
        for (ttcodegen_device_tensor* each : given)
            if (own) API(release)(each);
        compare(called, seed, outputs);
    }

    void mistake() {
        const std::size_t called = function();
        std::vector<Array> inputs = inputs_of(called, 0), outputs = outputs_of(called);
        auto in = views(inputs), out = views(outputs);
        ttcodegen_model* none = nullptr;
        ttcodegen_array& changed = drawn(2) == 0 ? in[drawn(in.size())] : out[drawn(out.size())];
        switch (drawn(8)) {
            case 0:
                changed.rank += changed.rank == 0 ? 1 : -1;
                break;
            case 1:
                changed.bytes -= 1;
                break;
            case 2:
                changed.dtype = 99;
                break;
            case 3:
                changed.data = nullptr;
                break;
            case 4:
                changed.bytes = UINT64_MAX;
                break;
            case 5:
                EXPECT(API(run)(model, SIZE_MAX, in.data(), in.size(), out.data(), out.size()) ==
                       1);
                return;
            case 6:
                EXPECT(API(run)(model, called, in.data(), in.size() - 1, out.data(), out.size()) ==
                       1);
                return;
            default:
                EXPECT(API(open)(1, nullptr, 0, &none) == 1);
                return;
        }
        EXPECT(API(run)(model, called, in.data(), in.size(), out.data(), out.size()) == 1);
        EXPECT(std::strlen(API(last_error)()) > 0);
    }

    void use(int turns) {
        reopen();
        for (int turn = 0; turn < turns && failures == 0; ++turn) {
            switch (drawn(12)) {
                case 0:
                    reopen();
                    break;
                case 1:
                    API(close)(beside);
                    beside = nullptr;
                    EXPECT(API(open_beside)(TTCODEGEN_API_VERSION, nullptr, model, &beside) == 0);
                    EXPECT(draw_weights(beside));
                    run(beside);
                    break;
                case 2:
                case 3:
                    mistake();
                    break;
                case 4:
                case 5:
                case 6:
                case 7:
                    submit();
                    break;
                default:
                    run(model);
            }
        }
        API(close)(beside);
        API(close)(model);
    }
};

void compute_expected() {
    for (std::size_t called = 0; called < API(function_count)(); ++called) {
        for (unsigned weights = 0; weights < seeds; ++weights) {
            ttcodegen_model* model = nullptr;
            EXPECT(API(open)(TTCODEGEN_API_VERSION, nullptr, 0, &model) == 0);
            EXPECT(API(draw_weights)(model, called, weights) == 0);
            for (unsigned seed = 0; seed < seeds; ++seed) {
                std::vector<Array> inputs = inputs_of(called, seed), outputs = outputs_of(called);
                const auto in = views(inputs), out = views(outputs);
                EXPECT(API(run)(model, called, in.data(), in.size(), out.data(), out.size()) == 0);
                expected.push_back(outputs);
            }
            API(close)(model);
        }
    }
    EXPECT(API(open)(TTCODEGEN_API_VERSION, nullptr, 0, &first_model) == 0);
    for (std::size_t called = 0; called < API(function_count)(); ++called) {
        for (unsigned seed = 0; seed < seeds; ++seed) {
            std::vector<Array> inputs = inputs_of(called, seed);
            auto& tensors = shared.emplace_back(inputs.size());
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const ttcodegen_array view = inputs[i].view();
                EXPECT(API(to_device)(first_model, called, i, &view, &tensors[i]) == 0);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int turns = argc > 1 ? std::atoi(argv[1]) : 200;
    const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
    compute_expected();
    std::barrier ready(thread_count);
    std::vector<std::thread> running;
    for (unsigned number = 0; number < thread_count; ++number) {
        running.emplace_back([&ready, turns, seed, number] {
            User user;
            user.random.seed(1000 * seed + number);
            ready.arrive_and_wait();
            user.use(turns);
        });
    }
    for (std::thread& each : running) each.join();
    for (auto& tensors : shared)
        for (ttcodegen_device_tensor* each : tensors) API(release)(each);
    API(close)(first_model);
    std::printf("%d threads, %d turns each, %d failures\n", thread_count, turns, failures.load());
    return failures != 0;
}
