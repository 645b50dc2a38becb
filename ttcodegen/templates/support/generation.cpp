#include "support/generation.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/files.hpp"

namespace support {

namespace {

/// Returns the rows of an array of integers of rank 1 or 2.
std::vector<std::vector<double>> rows_of(const std::string& path, const Array& array) {
    if (is_floating(array.type) || array.type == ElementType::boolean) {
        throw std::runtime_error(path + ": tokens are integers, found " + element_name(array.type));
    }
    if (array.shape.empty() || array.shape.size() > 2) {
        throw std::runtime_error(path + ": expected a prompt, or a row for each, found the shape " +
                                 shape_text(array.shape));
    }
    const std::uint64_t count = array.shape.size() == 1 ? 1 : array.shape[0];
    const std::uint64_t length = array.shape.back();
    const ArrayView view = array.view();
    std::vector<std::vector<double>> rows(count);
    for (std::uint64_t i = 0; i < count * length; ++i) {
        rows[i / length].push_back(element_at(view.type, view.data, i));
    }
    return rows;
}

/// Removes the tokens of prompts that are padding.
void remove_padding(std::vector<std::vector<double>>& prompts, const Array& tokens,
                    const std::string& path) {
    const Array mask = read_npy(path);
    if (mask.shape != tokens.shape) {
        throw std::runtime_error(path + ": expected the shape " + shape_text(tokens.shape) +
                                 " of the tokens, found " + shape_text(mask.shape));
    }
    const ArrayView view = mask.view();
    std::uint64_t place = 0;
    for (std::vector<double>& prompt : prompts) {
        std::erase_if(prompt,
                      [&](double) { return element_at(view.type, view.data, place++) == 0; });
    }
}

/// @param origin begins the messages.
template <typename Token>
void check_prompt(const std::string& origin, const std::vector<Token>& prompt,
                  const Decoder& decoder) {
    if (prompt.empty()) {
        throw std::runtime_error(origin + "a prompt has one token at least");
    }
    for (const Token token : prompt) {
        if (token < 0 || static_cast<double>(token) >= static_cast<double>(decoder.vocabulary)) {
            throw std::runtime_error(origin + "tokens are from 0 to " +
                                     std::to_string(decoder.vocabulary - 1));
        }
    }
}

void check_prompts(std::span<const Tokens> prompts, const Decoder& decoder) {
    if (prompts.empty() || prompts.size() > decoder.batch) {
        throw std::runtime_error("the project generates " + std::to_string(decoder.batch) +
                                 " sequences at a time, found " + std::to_string(prompts.size()) +
                                 " prompts");
    }
    for (const Tokens& prompt : prompts) {
        check_prompt("", prompt, decoder);
    }
}

void check_options(const GenerationOptions& options) {
    if (options.count == 0) {
        throw std::runtime_error("expected 1 new token at least, found 0");
    }
    if (!(options.temperature >= 0) || !(options.top_p > 0 && options.top_p <= 1)) {
        throw std::runtime_error(
            "expected a temperature of 0 at least, and --top-p above 0 and up to 1");
    }
}

std::string known_buckets(const Decoder& decoder) {
    std::string text;
    for (const Bucket& bucket : decoder.buckets) {
        text += (text.empty() ? "" : ", ") + std::to_string(bucket.length);
    }
    return text;
}

}  // namespace

std::vector<Tokens> read_prompts(const GenerationOptions& options, const Decoder& decoder) {
    std::vector<Tokens> prompts;
    if (!options.mask.empty() && options.tokens.size() > 1) {
        throw std::runtime_error("--mask is of one file of prompts, found " +
                                 std::to_string(options.tokens.size()));
    }
    for (const std::string& path : options.tokens) {
        const Array array = read_npy(path);
        std::vector<std::vector<double>> rows = rows_of(path, array);
        if (!options.mask.empty()) {
            remove_padding(rows, array, options.mask);
        }
        for (const std::vector<double>& row : rows) {
            check_prompt(path + ": ", row, decoder);
            prompts.emplace_back(row.begin(), row.end());
        }
    }
    return prompts;
}

const Bucket& bucket_for(std::span<const Tokens> prompts, const GenerationOptions& options,
                         const Decoder& decoder) {
    check_options(options);
    check_prompts(prompts, decoder);
    const std::size_t longest = std::ranges::max(prompts, {}, &Tokens::size).size();
    const auto found = std::ranges::find_if(
        decoder.buckets, [&](const Bucket& bucket) { return longest <= bucket.length; });
    if (found == decoder.buckets.end()) {
        throw std::runtime_error("a prompt of " + std::to_string(longest) +
                                 " tokens is too long: the project has buckets of " +
                                 known_buckets(decoder));
    }
    if (options.count > decoder.length - found->length + 1) {
        throw std::runtime_error("a prompt in a bucket of " + std::to_string(found->length) +
                                 " and " + std::to_string(options.count) +
                                 " new tokens do not fit the cache of " +
                                 std::to_string(decoder.length) + " positions");
    }
    return *found;
}

PaddedPrompts::PaddedPrompts(std::span<const Tokens> prompts, const Bucket& bucket,
                             const Decoder& decoder)
    : shape_{decoder.batch, bucket.length} {
    for (std::uint64_t i = 0; i < decoder.batch; ++i) {
        const Tokens& prompt = prompts[i < prompts.size() ? i : 0];
        const std::size_t padding = bucket.length - prompt.size();
        tokens_.insert(tokens_.end(), padding, 0);
        tokens_.insert(tokens_.end(), prompt.begin(), prompt.end());
        padding_.push_back(static_cast<std::int32_t>(padding));
    }
}

Continuations::Continuations(std::size_t prompts, const GenerationOptions& options,
                             const Decoder& decoder)
    : count_(options.count),
      stop_tokens_(options.stop_tokens.value_or(
          Tokens(decoder.stop_tokens.begin(), decoder.stop_tokens.end()))),
      padding_token_(decoder.padding_token),
      ended_(prompts, false),
      start_(std::chrono::steady_clock::now()) {
    generated_.tokens.resize(prompts);
}

void Continuations::append(const Array& chosen) {
    const ArrayView view = chosen.view();
    for (std::size_t i = 0; i < ended_.size(); ++i) {
        const auto token = static_cast<std::int32_t>(element_at(view.type, view.data, i));
        generated_.tokens[i].push_back(ended_[i] ? padding_token_ : token);
        ended_[i] = ended_[i] || std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    generated_.last = passed.count();
    if (generated_.tokens.front().size() == 1) {
        generated_.first = generated_.last;
    }
}

bool Continuations::is_complete() const {
    return generated_.tokens.front().size() == count_ ||
           std::ranges::all_of(ended_, [](bool ended) { return ended; });
}

void write_generated(const Generated& generated, const GenerationOptions& options) {
    const std::size_t count = generated.tokens.front().size();
    Tokens all;
    for (const Tokens& tokens : generated.tokens) {
        for (std::size_t i = 0; i < count; ++i) {
            std::printf("%s%d", i == 0 ? "" : " ", tokens[i]);
        }
        std::printf("\n");
        all.insert(all.end(), tokens.begin(), tokens.end());
    }
    if (!options.output.empty()) {
        const std::uint64_t shape[] = {generated.tokens.size(), count};
        write_npy(options.output, {ElementType::int32, shape, all.data()});
    }
    std::fprintf(stderr, "first token %.3f ms", generated.first * 1e3);
    if (count > 1) {
        const double steps = generated.last - generated.first;
        std::fprintf(stderr, ", %.3f ms for each of %zu steps after it",
                     steps * 1e3 / static_cast<double>(count - 1), count - 1);
    }
    std::fprintf(stderr, "\n");
}

}  // namespace support
