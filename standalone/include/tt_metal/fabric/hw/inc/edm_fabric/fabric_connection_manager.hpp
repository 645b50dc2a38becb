/// A kernel's connections to both neighbours of its device on a line.
#pragma once

#include "tt_metal/fabric/hw/inc/edm_fabric/edm_fabric_worker_adapters.hpp"

class FabricConnectionManager final {
  public:
    enum BuildFromArgsMode : std::uint8_t {
        BUILD_ONLY,
        BUILD_AND_OPEN_CONNECTION,
        BUILD_AND_OPEN_CONNECTION_START_ONLY
    };

    /// Reads for each direction, forward first, a flag for the neighbour, and its connection.
    template <BuildFromArgsMode build_mode = BuildFromArgsMode::BUILD_ONLY>
    static FabricConnectionManager build_from_args(std::size_t& arg_idx) {
        FabricConnectionManager manager;
        manager.has_forward_ = take(manager.forward_, arg_idx);
        manager.has_backward_ = take(manager.backward_, arg_idx);
        if constexpr (build_mode == BuildFromArgsMode::BUILD_AND_OPEN_CONNECTION) {
            manager.open();
        }
        return manager;
    }

    bool is_logically_connected() const { return has_forward_ || has_backward_; }
    bool has_forward_connection() const { return has_forward_; }
    bool has_backward_connection() const { return has_backward_; }
    tt::tt_fabric::WorkerToFabricEdmSender& get_forward_connection() { return forward_; }
    tt::tt_fabric::WorkerToFabricEdmSender& get_backward_connection() { return backward_; }

    template <bool SEND_CREDIT_ADDR = false>
    void open() {
        open_finish();
    }
    void open_finish() {
        if (has_forward_) {
            forward_.open();
        }
        if (has_backward_) {
            backward_.open();
        }
    }
    void close() {
        forward_.close();
        backward_.close();
    }
    void close_start() {}
    void close_finish() { close(); }

  private:
    static bool take(tt::tt_fabric::WorkerToFabricEdmSender& sender, std::size_t& arg_idx) {
        if (get_arg_val<std::uint32_t>(static_cast<int>(arg_idx++)) == 0) {
            return false;
        }
        sender =
            tt::tt_fabric::WorkerToFabricEdmSender::build_from_args<ProgrammableCoreType::TENSIX>(
                arg_idx);
        return true;
    }

    tt::tt_fabric::WorkerToFabricEdmSender forward_;
    tt::tt_fabric::WorkerToFabricEdmSender backward_;
    bool has_forward_ = false;
    bool has_backward_ = false;
};
