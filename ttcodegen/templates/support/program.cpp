#include "support/program.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "support/model.hpp"

namespace support {

namespace {

enum ExitStatus { done = 0, mismatch = 1, usage = 2, failure = 3 };

constexpr const char* help_text =
    "  --list              list the functions with their inputs and outputs, and exit\n"
    "  --function NAME     run only this function (may be repeated)\n"
    "  --input NAME=FILE   values of an input or weight, as .npy (may be repeated)\n"
    "  --inputs DIR        read inputs and weights from DIR/<function>/<name>.npy, if they exist\n"
    "  --data DIR          folder of the weights and constants\n"
    "  --loops N           run N times (1; 3 if calls are replayed)\n"
    "  --outputs DIR       write DIR/<function>/<name>.npy\n"
    "  --device N          index of the device (0)\n"
    "  --help              print this text\n";
constexpr const char* drawing_help =
    "  --seed N            seed of random inputs and weights (0)\n";
constexpr const char* comparison_help =
    "  --golden DIR        compare with DIR/<function>/<name>.npy\n"
    "  --correlation X     minimum Pearson correlation (default: depends on the output)\n"
    "  --max-error X       maximum error, as a fraction of the range of values\n";

struct Options {
    bool help = false;
    bool list = false;
    std::vector<std::string> functions;
    std::vector<std::pair<std::string, std::string>> inputs;
    std::string input_directory;
    std::string data;
    std::string output_directory;
    std::string golden_directory;
    std::optional<std::uint64_t> seed;
    std::optional<std::uint64_t> loops;
    std::uint64_t device = 0;
    std::optional<double> correlation;
    std::optional<double> max_error;
};

void set_option(Options& options, std::string_view name, const std::string& value) {
    if (name == "--function") {
        options.functions.push_back(value);
    } else if (name == "--input") {
        const std::size_t equals = value.find('=');
        if (equals == std::string::npos) {
            throw UsageError("--input needs NAME=FILE, found '" + value + "'");
        }
        options.inputs.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (name == "--inputs") {
        options.input_directory = value;
    } else if (name == "--data") {
        options.data = value;
    } else if (name == "--outputs") {
        options.output_directory = value;
    } else if (name == "--golden") {
        options.golden_directory = value;
    } else if (name == "--seed") {
        options.seed = number<std::uint64_t>(name, value);
    } else if (name == "--loops") {
        options.loops = number<std::uint64_t>(name, value);
        if (*options.loops == 0) {
            throw UsageError("--loops needs a number above 0");
        }
    } else if (name == "--device") {
        options.device = number<std::uint16_t>(name, value);
    } else if (name == "--correlation") {
        options.correlation = number<double>(name, value);
    } else if (name == "--max-error") {
        options.max_error = number<double>(name, value);
    } else {
        throw UsageError("unknown option '" + std::string(name) + "'");
    }
}

/// Parses the arguments; values follow their option or a '='.
Options read_options(std::span<char*> arguments) {
    Options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::size_t equals = argument.find('=');
        if (argument == "--help" || argument == "-h") {
            options.help = true;
        } else if (argument == "--list") {
            options.list = true;
        } else if (!argument.starts_with("--")) {
            throw UsageError("unexpected argument '" + std::string(argument) + "'");
        } else if (equals != std::string_view::npos) {
            set_option(options, argument.substr(0, equals),
                       std::string(argument.substr(equals + 1)));
        } else if (i + 1 < arguments.size()) {
            set_option(options, argument, arguments[++i]);
        } else {
            throw UsageError("'" + std::string(argument) + "' is no option, or lacks its value");
        }
    }
    return options;
}

std::string file_of(const std::string& directory, const Function& function,
                    const TensorDescription& tensor) {
    return directory + "/" + function.cpp_name + "/" + tensor.field + ".npy";
}

bool is_called(const Function& function, const std::string& name) {
    return name == function.name || name == function.cpp_name;
}

/// Checks an input folder: a mistyped name must not read as an empty folder.
void require_directory(std::string_view option, const std::string& path) {
    struct stat status{};
    if (!path.empty() && (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
        throw UsageError(std::string(option) + ": there is no folder '" + path + "'");
    }
}

void make_directory(const std::string& path) {
    if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
        throw std::runtime_error("cannot create " + path + ": " + std::strerror(errno));
    }
}

const char* kind_name(Kind kind) {
    constexpr const char* names[] = {"input", "parameter", "constant", "output"};
    return names[static_cast<std::size_t>(kind)];
}

/// Replaces control characters and bidirectional marks, which terminals interpret, with '?'.
std::string printable(std::string text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = [&](std::size_t k) {
            return i + k < text.size() ? text[i + k] & 0xffU : 0;
        };
        const unsigned two = byte(0) << 8 | byte(1);
        const bool is_mark = (two == 0xe280 && (byte(2) - 0x8e < 2 || byte(2) - 0xa8 < 7)) ||
                             (two == 0xe281 && byte(2) - 0xa6 < 4) || two == 0xd89c ||
                             (two >= 0xc280 && two < 0xc2a0);
        if (is_mark || byte(0) == 0x7f || (byte(0) < 0x20 && byte(0) != '\n')) {
            text[i] = '?';
        }
    }
    return text;
}

int report(const std::string& message, int status) {
    std::fflush(stdout);
    if (before_report != nullptr) {
        before_report();
    }
    std::fprintf(stderr, "error: %s\n", printable(message).c_str());
    std::fflush(stderr);
    return status;
}

void print_tensor(const TensorDescription& tensor, const std::string& remark) {
    std::printf("  %-9s  %-24s %-20s %-9s %s\n", kind_name(tensor.kind),
                printable(tensor.name).c_str(), shape_text(tensor.shape()).c_str(),
                data_type_name(tensor.data_type), printable(remark).c_str());
}

/// The functions that the options name.
std::span<const Function> callable(const Module& module, const ProgramParts& parts) {
    return parts.functions.empty() ? module.functions : parts.functions;
}

std::unique_ptr<Runnable> open(const Module& module, const ProgramParts& parts,
                               const std::string& data, std::uint64_t device) {
    if (parts.open != nullptr) {
        return parts.open(data, device);
    }
    return std::make_unique<Model>(module, data,
                                   open_device(static_cast<int>(device), module.mesh,
                                               module.trace_region_bytes, module.fabric));
}

void list_functions(std::span<const Function> functions) {
    for (const Function& function : functions) {
        std::printf("%s\n", printable(function.name).c_str());
        for (const auto tensors : {function.inputs, function.weights, function.outputs}) {
            for (const TensorDescription& tensor : tensors) {
                print_tensor(tensor, "");
            }
        }
    }
}

/// Runs functions of a module as the options request.
class Program {
  public:
    Program(const Module& module, const ProgramParts& parts, const Options& options)
        : parts_(parts),
          options_(options),
          model_(open(module, parts, options.data, options.device)),
          input_used_(options.inputs.size(), false) {}

    int run() {
        const auto functions = model_->functions();
        require_some_input();
        for (std::size_t i = 0; i < functions.size(); ++i) {
            if (is_selected(i)) {
                run_function(i);
            }
        }
        for (std::size_t i = 0; i < input_used_.size(); ++i) {
            if (!input_used_[i]) {
                throw UsageError("no input or weight is called '" + options_.inputs[i].first + "'");
            }
        }
        return passed_ ? done : mismatch;
    }

  private:
    bool is_selected(std::size_t index) const {
        const auto& names = options_.functions;
        if (names.empty()) {
            return parts_.unnamed_functions == 0 || index < parts_.unnamed_functions;
        }
        const Function& function = model_->functions()[index];
        return std::ranges::any_of(
            names, [&](const std::string& name) { return is_called(function, name); });
    }

    /// Checks that a given folder contains at least one expected file.
    void require_some_input() const {
        if (options_.input_directory.empty()) {
            return;
        }
        for (std::size_t i = 0; i < model_->functions().size(); ++i) {
            const Function& function = model_->functions()[i];
            for (const auto tensors : {function.inputs, function.weights}) {
                for (const TensorDescription& tensor : tensors) {
                    if (is_selected(i) &&
                        file_exists(file_of(options_.input_directory, function, tensor))) {
                        return;
                    }
                }
            }
        }
        throw UsageError("--inputs: '" + options_.input_directory +
                         "' has no <function>/<name>.npy of an input or weight");
    }

    /// The file of a tensor in the folder that the options name, if there is one.
    std::optional<std::string> given_file(const Function& function,
                                          const TensorDescription& tensor) {
        std::optional<std::string> file;
        for (std::size_t i = 0; i < options_.inputs.size(); ++i) {
            const auto& [name, path] = options_.inputs[i];
            if (name == tensor.name || name == tensor.field) {
                input_used_[i] = true;
                file = path;
            }
        }
        if (!file.has_value() && !options_.input_directory.empty()) {
            file = file_of(options_.input_directory, function, tensor);
            if (!file_exists(*file)) {
                file.reset();
            }
        }
        return file;
    }

    std::string drawn() const { return "drawn, seed " + std::to_string(options_.seed.value_or(0)); }

    /// Random values for an input or weight without a file.
    Array draw(const Function& function, const TensorDescription& tensor) const {
        if (parts_.draw == nullptr) {
            const std::string name = tensor.field;
            throw UsageError(std::string(tensor.is_weight() ? "weight '" : "input '") +
                             tensor.name + "' has no values: give --input " + name +
                             "=FILE, or --inputs DIR with DIR/" + function.cpp_name + "/" + name +
                             ".npy");
        }
        return parts_.draw(tensor, options_.seed.value_or(0));
    }

    void set_weights(std::size_t index) {
        const Function& function = model_->functions()[index];
        for (std::size_t i = 0; i < function.weights.size(); ++i) {
            const TensorDescription& weight = function.weights[i];
            if (!model_->needs_weight(index, i)) {
                continue;
            }
            std::string remark = "from the data folder";
            if (const auto file = given_file(function, weight)) {
                model_->set_weight(index, i, read_npy(*file).view());
                remark = *file;
            } else if (!model_->has_weight(index, i)) {
                model_->set_weight(index, i, draw(function, weight).view());
                remark = drawn();
            }
            print_tensor(weight, remark);
        }
    }

    std::vector<Array> make_inputs(const Function& function) {
        std::vector<Array> inputs;
        for (const TensorDescription& input : function.inputs) {
            const auto file = given_file(function, input);
            inputs.push_back(file.has_value() ? read_npy(*file) : draw(function, input));
            print_tensor(input, file.value_or(drawn()));
        }
        return inputs;
    }

    void run_function(std::size_t index) {
        const Function& function = model_->functions()[index];
        std::printf("%s\n", printable(function.name).c_str());
        const std::vector<Array> inputs = make_inputs(function);
        set_weights(index);
        std::vector<ArrayView> views;
        for (const Array& input : inputs) {
            views.push_back(input.view());
        }
        model_->prepare(index);
        std::vector<Array> outputs;
        RunTimes total;
        double fastest = std::numeric_limits<double>::infinity();
        // The first call compiles, the second captures: only the third one is purely a replay.
        const bool is_replayed = model_->is_replayed();
        const std::uint64_t loops = options_.loops.value_or(is_replayed ? 3 : 1);
        for (std::uint64_t loop = 0; loop < loops; ++loop) {
            RunTimes times;
            outputs = model_->run(index, views, &times);
            fastest = std::min(fastest, times.run + times.download);
            total.upload += times.upload;
            total.run += times.run + times.download;
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            finish_output(function, function.outputs[i], outputs[i]);
        }
        const double scale = 1e3 / static_cast<double>(loops);
        std::printf("  %llu runs: inputs to the device %.3f ms, run %.3f ms, fastest run %.3f ms\n",
                    static_cast<unsigned long long>(loops), total.upload * scale, total.run * scale,
                    fastest * 1e3);
    }

    void finish_output(const Function& function, const TensorDescription& output,
                       const Array& values) {
        std::string remark;
        if (!parts_.writes_outputs) {
            return;
        }
        if (!options_.output_directory.empty()) {
            make_directory(options_.output_directory);
            make_directory(options_.output_directory + "/" + function.cpp_name);
            remark = file_of(options_.output_directory, function, output);
            write_npy(remark, values.view());
        }
        print_tensor(output, remark);
        if (!options_.golden_directory.empty()) {
            compare_with_golden(function, output, values);
        }
    }

    void compare_with_golden(const Function& function, const TensorDescription& output,
                             const Array& values) {
        const Array golden = read_npy(file_of(options_.golden_directory, function, output));
        Tolerance tolerance = output.tolerance;
        tolerance.correlation = options_.correlation.value_or(tolerance.correlation);
        tolerance.error = options_.max_error.value_or(tolerance.error);
        if (!parts_.compare(values.view(), golden.view(), tolerance)) {
            std::fprintf(stderr, "error: output '%s' of '%s' differs from the golden one\n",
                         printable(output.name).c_str(), printable(function.name).c_str());
            passed_ = false;
        }
    }

    const ProgramParts& parts_;
    const Options& options_;
    std::unique_ptr<Runnable> model_;
    std::vector<bool> input_used_;
    bool passed_ = true;
};

void check_functions(std::span<const Function> functions, const Options& options) {
    for (const std::string& name : options.functions) {
        const bool known = std::ranges::any_of(
            functions, [&](const Function& function) { return is_called(function, name); });
        if (!known) {
            throw UsageError("the module has no function '" + name + "'; --list lists them");
        }
    }
}

/// Rejects options whose part is not linked into the executable.
void check_parts(const ProgramParts& parts, const Options& options) {
    const bool compares = !options.golden_directory.empty() || options.correlation.has_value() ||
                          options.max_error.has_value();
    if ((options.seed.has_value() && parts.draw == nullptr) ||
        (compares && parts.compare == nullptr)) {
        throw UsageError(
            "this executable neither draws values nor compares outputs with golden ones; one of "
            "ttcodegen --kind exe does");
    }
}

void print_help(const Module& module, const ProgramParts& parts) {
    std::printf("usage: %s_main [options]\n\nRuns the functions of the module on inputs from files",
                module.name);
    std::printf("%s.\n\n%s", parts.draw == nullptr ? "" : ", or on random ones", help_text);
    std::printf("%s%s", parts.draw == nullptr ? "" : drawing_help,
                parts.compare == nullptr ? "" : comparison_help);
    std::printf("%s", parts.further_help);
    std::printf("\nExit status: 0 success, %s2 usage error, 3 failure.\n",
                parts.compare == nullptr ? "" : "1 an output differs from the golden one, ");
}

int run_options(const Module& module, const ProgramParts& parts, const Options& options) {
    if (options.help) {
        print_help(module, parts);
        return done;
    }
    if (options.list) {
        list_functions(callable(module, parts));
        return done;
    }
    check_functions(callable(module, parts), options);
    check_parts(parts, options);
    require_directory("--inputs", options.input_directory);
    require_directory("--data", options.data);
    require_directory("--golden", options.golden_directory);
    std::optional<Program> program;
    try {
        program.emplace(module, parts, options);
        return program->run();
    } catch (const UsageError&) {
        throw;
    } catch (const std::exception& error) {
        leave(error.what(), failure);
    } catch (...) {
        leave("an error of unknown type", failure);
    }
}

}  // namespace

void leave(const std::string& message, int status) {
    report(message, status);
    if (end_others != nullptr) {
        end_others(status);
    }
    std::_Exit(status);
}

int run_program(const Module& module, const ProgramParts& parts, int argc, char** argv) {
    try {
        const int status =
            run_options(module, parts,
                        read_options(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)));
        return std::fflush(stdout) == 0 ? status : failure;
    } catch (const UsageError& error) {
        return report(error.what() + std::string("\nnote: --help lists the options"), usage);
    } catch (const std::exception& error) {
        return report(error.what(), failure);
    } catch (...) {
        return report("an error of unknown type", failure);
    }
}

}  // namespace support
