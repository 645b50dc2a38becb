#include "support/generation_program.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "support/program.hpp"

namespace support {

const char* const generation_help =
    "\nOr generates tokens after prompts:\n\n"
    "  --tokens FILE       a prompt as .npy, or a row for each (may be repeated)\n"
    "  --mask FILE         0 for tokens in it that are padding, on either side\n"
    "  --generate N        number of new tokens\n"
    "  --stop ID[,ID]      tokens that end a sequence (default: those of the model)\n"
    "  --output FILE       write the new tokens as .npy\n"
    "  --temperature X     draw tokens; 0 takes those of the highest score (0)\n"
    "  --top-k N           draw among the N most likely ones; 0 for all (0)\n"
    "  --top-p X           draw among the fewest whose probabilities sum to X (1)\n"
    "  --seed N            seed of the drawn tokens (0)\n"
    "\nwith --data and --device as above; exit status 1 if that fails.\n";

namespace {

std::vector<std::int32_t> numbers_of(std::string_view option, std::string_view text) {
    std::vector<std::int32_t> numbers;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        numbers.push_back(number<std::int32_t>(option, text.substr(start, end - start)));
        start = end + 1;
    }
    return numbers;
}

void set_option(GenerationOptions& options, std::string_view name, const std::string& value) {
    if (name == "--tokens") {
        options.tokens.push_back(value);
    } else if (name == "--mask") {
        options.mask = value;
    } else if (name == "--generate") {
        options.count = number<std::uint32_t>(name, value);
    } else if (name == "--stop") {
        options.stop_tokens = numbers_of(name, value);
    } else if (name == "--output") {
        options.output = value;
    } else if (name == "--temperature") {
        options.temperature = number<double>(name, value);
    } else if (name == "--top-k") {
        options.top_k = number<std::uint32_t>(name, value);
    } else if (name == "--top-p") {
        options.top_p = number<double>(name, value);
    } else if (name == "--seed") {
        options.seed = number<std::uint64_t>(name, value);
    } else if (name == "--data") {
        options.data = value;
    } else if (name == "--device") {
        options.device = number<std::uint16_t>(name, value);
    } else {
        throw UsageError("'" + std::string(name) + "' is no option of the generation of tokens");
    }
}

GenerationOptions read_generation_options(std::span<char* const> arguments) {
    GenerationOptions options;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string_view argument = arguments[i];
        const std::size_t equals = argument.find('=');
        if (argument.starts_with("--") && equals != std::string_view::npos) {
            set_option(options, argument.substr(0, equals),
                       std::string(argument.substr(equals + 1)));
        } else if (i + 1 < arguments.size()) {
            set_option(options, argument, arguments[++i]);
        } else {
            throw UsageError("'" + std::string(argument) + "' is no option, or lacks its value");
        }
    }
    if (options.tokens.empty()) {
        throw UsageError("--generate needs prompts: give --tokens FILE");
    }
    return options;
}

}  // namespace

bool is_generation(std::span<char* const> arguments) {
    return std::ranges::any_of(arguments, [](const char* argument) {
        const std::string_view name = argument;
        const std::string_view option = name.substr(0, name.find('='));
        return option == "--tokens" || option == "--generate";
    });
}

int run_generation(const Module& module,
                   void (*generate)(const Module& module, const GenerationOptions& options),
                   std::span<char* const> arguments) {
    try {
        generate(module, read_generation_options(arguments));
        return std::fflush(stdout) == 0 ? 0 : 1;
    } catch (const UsageError& error) {
        leave(error.what() + std::string("\nnote: --help lists the options"), 2);
    } catch (const std::exception& error) {
        leave(error.what(), 1);
    } catch (...) {
        leave("an error of unknown type", 1);
    }
}

}  // namespace support
