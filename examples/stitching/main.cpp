// Runs the encoder, then the decoder on what the encoder left on the device: nothing in between
// passes through the host. Reads images.npy and writes scores.npy.
#include <array>
#include <cstdio>
#include <exception>
#include <ttnn/tensor/tensor.hpp>
#include <vector>

#include "decoder/src/entry_points.hpp"
#include "encoder/src/entry_points.hpp"
#include "support/drawing.hpp"
#include "support/model.hpp"

namespace {

constexpr std::size_t encode = 0;
constexpr std::size_t decode = 0;

int run() {
    const support::Device device = support::open_device();
    support::Model encoder(encoder_project::description, "", device);
    support::Model decoder(decoder_project::description, "", device);
    // Weights come from the data folders of the two projects; those that are not there are drawn.
    support::draw_missing_weights(encoder, encode, 0);
    support::draw_missing_weights(decoder, decode, 0);

    // Values of the caller, laid out as the encoder takes them.
    const support::TensorDescription& images = encoder.function(encode).inputs[0];
    const support::Array values = support::read_npy("images.npy");
    const std::array inputs{support::to_tensor(values.view(), images, *device)};

    std::vector<ttnn::Tensor> hidden = encoder.submit(encode, inputs);
    // The encoder leaves tiles, the decoder takes rows: converted on the device. A tensor that is
    // stored as the decoder takes it stays what it is.
    hidden[0] = support::to_layout(hidden[0], decoder.function(decode).inputs[0], *device);
    const std::vector<ttnn::Tensor> scores = decoder.submit(decode, hidden);

    support::write_npy("scores.npy", support::to_array(scores[0]).view());
    std::printf("scores.npy written\n");
    return 0;
}

}  // namespace

int main() {
    try {
        return run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
