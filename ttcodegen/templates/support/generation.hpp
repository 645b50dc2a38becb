#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/array.hpp"

namespace support {

/// Options of the generation of tokens.
struct GenerationOptions {
    /// Files of prompts.
    std::vector<std::string> tokens;
    /// A file of the shape of the prompts: 0 for tokens that are padding. All count if it is empty.
    std::string mask;
    /// The number of new tokens.
    std::uint64_t count = 0;
    /// Tokens that end a sequence, instead of the model's.
    std::optional<std::vector<std::int32_t>> stop_tokens;
    /// The file of the new tokens; none if it is empty.
    std::string output;
    /// 0 takes the token of the highest score; others draw.
    double temperature = 0;
    /// Samples from this number of the most likely tokens; 0 for all.
    std::uint32_t top_k = 0;
    /// Samples from the fewest tokens whose probabilities sum to this (top-p).
    double top_p = 1;
    std::uint64_t seed = 0;
    /// The folder of the weights; the usual one if it is empty.
    std::string data;
    /// The index of the device.
    int device = 0;
};

/// A length that prompts are padded to, and the function that reads prompts of that length.
struct Bucket {
    std::uint64_t length;
    /// Its place in the description of the module.
    std::size_t function;
};

/// A decoder as its functions were compiled.
struct Decoder {
    /// From the shortest.
    std::span<const Bucket> buckets;
    /// Sequences at a time.
    std::uint64_t batch;
    /// Positions of the cache, for prompt and new tokens.
    std::uint64_t length;
    /// Size of the vocabulary: tokens are below it.
    std::uint64_t vocabulary;
    /// Tokens that end a sequence.
    std::span<const std::int32_t> stop_tokens;
    /// The token that follows the end of a sequence.
    std::int32_t padding_token;
};

using Tokens = std::vector<std::int32_t>;

/// Reads the prompts that the options name: a file has one, or a row for each.
/// @throws std::runtime_error if a file has none, or tokens that the decoder does not know.
std::vector<Tokens> read_prompts(const GenerationOptions& options, const Decoder& decoder);

/// The shortest bucket that all prompts fit.
/// @throws std::runtime_error if there is none, prompts or options are wrong, or the new tokens do
/// not fit the cache.
const Bucket& bucket_for(std::span<const Tokens> prompts, const GenerationOptions& options,
                         const Decoder& decoder);

/// Prompts as functions take them: padded on the left, so that all sequences go on at one position.
class PaddedPrompts {
  public:
    /// Sequences of the batch that have no prompt are copies of the first.
    PaddedPrompts(std::span<const Tokens> prompts, const Bucket& bucket, const Decoder& decoder);

    /// The tokens of all sequences: (batch, length of the bucket).
    ArrayView tokens() const { return {ElementType::int32, shape_, tokens_.data()}; }
    /// The number of tokens that are padding, of each sequence.
    ArrayView padding() const {
        return {ElementType::int32, std::span(shape_).first(1), padding_.data()};
    }

  private:
    std::vector<std::uint64_t> shape_;
    Tokens tokens_;
    Tokens padding_;
};

/// The new tokens of each prompt, the same number for all.
struct Generated {
    std::vector<Tokens> tokens;
    /// Seconds until the first token, and until the last one.
    double first = 0;
    double last = 0;
};

/// The new tokens while they are generated.
class Continuations {
  public:
    Continuations(std::size_t prompts, const GenerationOptions& options, const Decoder& decoder);

    /// Appends a token to each sequence, padding where it has ended.
    void append(const Array& chosen);

    /// Returns whether there are as many tokens as requested, or all sequences have ended.
    bool is_complete() const;

    const Generated& generated() const { return generated_; }

  private:
    std::uint64_t count_;
    Tokens stop_tokens_;
    std::int32_t padding_token_;
    std::vector<bool> ended_;
    std::chrono::steady_clock::time_point start_;
    Generated generated_;
};

/// Prints tokens, a line for each prompt, writes them to the file that the options name, and
/// reports the time that they took.
void write_generated(const Generated& generated, const GenerationOptions& options);

}  // namespace support
