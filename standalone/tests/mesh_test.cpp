// Meshes of several devices: shards, collectives, refusals and traffic of links.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "compute_testing.hpp"
#include "core/chips.hpp"
#include "core/device.hpp"
#include "tt-metalium/experimental/fabric/fabric.hpp"
#include "ttnn/distributed/api.hpp"
#include "ttnn/distributed/distributed_tensor.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/ccl/all_reduce/all_reduce.hpp"
#include "ttnn/operations/ccl/all_to_all_combine/all_to_all_combine.hpp"
#include "ttnn/operations/ccl/all_to_all_dispatch/all_to_all_dispatch.hpp"
#include "ttnn/operations/ccl/broadcast/broadcast.hpp"
#include "ttnn/operations/ccl/mesh_partition/mesh_partition.hpp"
#include "ttnn/operations/ccl/reduce_scatter/reduce_scatter.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/experimental/ccl/all_to_all_async_generic/all_to_all_async_generic.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"
#include "ttnn/operations/point_to_point/point_to_point.hpp"
#include "ttnn/operations/rand/rand.hpp"

using namespace compute_testing;
using namespace ttnn::distributed;
using tt::tt_fabric::FabricConfig;
using tt::tt_fabric::Topology;

namespace {

std::shared_ptr<MeshDevice> open_mesh(std::uint32_t rows, std::uint32_t columns) {
    return ttnn::distributed::open_mesh_device(MeshShape(rows, columns), 32768, 0, 1,
                                               tt::tt_metal::DispatchCoreConfig{});
}

Tensor host(const Shape& shape) {
    std::vector<float> values(shape.volume());
    std::iota(values.begin(), values.end(), 0.0F);
    return Tensor::from_vector(
        std::move(values),
        tt::tt_metal::TensorSpec(
            shape, tt::tt_metal::TensorLayout(DataType::FLOAT32,
                                              tt::tt_metal::PageConfig(Layout::TILE), {})));
}

Tensor sharded(MeshDevice& mesh, const Shape& shape, int dim, int axis) {
    return distribute_tensor(host(shape), *shard_tensor_to_mesh_mapper(mesh, dim, axis), mesh);
}

std::vector<float> on_chip(const Tensor& tensor, std::size_t chip) {
    return values_of(get_device_tensors(tensor).at(chip));
}

void test_parts_and_the_whole(MeshDevice& mesh) {
    MeshMapperConfig config;
    config.placements = {MeshMapperConfig::Shard{0}, MeshMapperConfig::Shard{1}};
    const Tensor whole = host(Shape({4, 6}));
    const Tensor parts = distribute_tensor(whole, *create_mesh_mapper(mesh, config), mesh);
    expect(parts.logical_shape() == Shape({2, 2}), "a part of 4x6 on a mesh of 2x3");
    expect_close(on_chip(parts, 4), {14, 15, 20, 21}, 0);
    const Tensor doubled = ttnn::add(parts, parts);
    MeshComposerConfig composer;
    composer.dims = {0, 1};
    const Tensor again = aggregate_tensor(doubled, *create_mesh_composer(mesh, composer));
    expect(again.logical_shape() == Shape({4, 6}), "the whole has the shape of the whole");
    expect_close(again.to_vector<float>(),
                 values_of(ttnn::add(whole.to_device(device()), whole.to_device(device()))), 0);
    expect_refused([&] { (void)parts.to_vector<float>(); }, "compose");
    const Tensor on_host = distribute_tensor(whole, *create_mesh_mapper(mesh, config));
    expect_refused([&] { (void)on_host.to_device(device()); },
                   "A tensor of 6 parts is not for a mesh of 1 devices");
    expect_refused([&] { sharded(mesh, Shape({4, 7}), 1, 1); }, "does not divide");
    expect_refused([&] { sharded(mesh, Shape({4, 6}), 1, 2); }, "out of range");
    config.placements = {MeshMapperConfig::Shard{0}, MeshMapperConfig::Shard{0}};
    expect_refused([&] { (*create_mesh_mapper(mesh, config))(host(Shape({6, 6}))); },
                   "dims must be unique");
}

void test_creation_and_replication(MeshDevice& mesh) {
    const Tensor ones =
        ttnn::full(Shape({2, 2}), 1.0F, DataType::FLOAT32, Layout::TILE, std::ref(mesh));
    expect(get_device_tensors(ones).size() == 6, "a tensor on each chip");
    const Tensor replicated = host(Shape({2, 2})).to_device(&mesh);
    expect_close(on_chip(ttnn::add(ones, replicated), 5), {1, 2, 3, 4}, 0);
    Tensor gone = ttnn::relu(ones);
    ttnn::deallocate(gone, true);
    expect(!gone.is_allocated(), "all parts are deallocated");
}

void test_collectives(MeshDevice& mesh) {
    const Tensor rows = sharded(mesh, Shape({2, 6}), 1, 1);
    expect_close(on_chip(ttnn::all_gather(rows, 1, 1), 3), host(Shape({2, 6})).to_vector<float>(),
                 0);
    // Columns 0 to 1, 2 to 3 and 4 to 5 of both rows.
    expect_close(on_chip(ttnn::all_reduce(rows, 1), 0), {6, 9, 24, 27}, 0);
    const Tensor wide = sharded(mesh, Shape({2, 18}), 1, 1);
    expect_close(on_chip(ttnn::reduce_scatter(wide, 1, 1), 1), {24, 27, 78, 81}, 0);
    const Tensor tall = host(Shape({64, 2})).to_device(&mesh);
    expect_close(
        on_chip(ttnn::mesh_partition(tall, 0, 0), 4),
        [&] {
            const auto all = host(Shape({64, 2})).to_vector<float>();
            return std::vector<float>(all.begin() + 64, all.end());
        }(),
        0);
    expect_refused([&] { ttnn::mesh_partition(tall, 1, 0); }, "should not create padding");
    expect_refused([&] { ttnn::all_gather(rows, 1, 2); }, "Cluster axis 2");
    expect_refused([&] { ttnn::all_reduce(host(Shape({2, 2})).to_device(device())); },
                   "num_devices > 1");
    const auto other = open_mesh(2, 3);
    expect_refused([&] { ttnn::add(rows, sharded(*other, Shape({2, 6}), 1, 1)); },
                   "different meshes");
    const Tensor single = draw_tensor(Shape({2, 2}));
    expect_refused([&] { ttnn::add(rows, single); }, "different meshes");
    expect_refused([&] { ttnn::add(single, rows); }, "different meshes");
    other->close();
}

/// Sends the shard of one chip to another and checks the tensors of all.
void test_point_to_point(MeshDevice& mesh) {
    using ttnn::MeshCoordinate;
    const Tensor rows = sharded(mesh, Shape({2, 6}), 1, 1);
    const Tensor kept = host(Shape({2, 2})).to_device(&mesh);
    const auto send = [&](const MeshCoordinate& to, const MeshCoordinate& from,
                          const std::optional<Tensor>& output) {
        return ttnn::point_to_point(rows, to, from, Topology::Linear, output);
    };
    const Tensor alone = send(MeshCoordinate(1, 0), MeshCoordinate(1, 2), std::nullopt);
    expect_close(on_chip(alone, 3), {4, 5, 10, 11}, 0);
    const Tensor received = send(MeshCoordinate(0, 1), MeshCoordinate(1, 1), kept);
    expect_close(on_chip(received, 1), {2, 3, 8, 9}, 0);
    expect_close(on_chip(received, 4), {0, 1, 2, 3}, 0);
    // The call writes into the given tensor.
    expect_close(on_chip(kept, 1), {2, 3, 8, 9}, 0);
    const MeshCoordinate first(0, 0);
    expect_refused([&] { send(first, first, kept); }, "same device");
    expect_refused([&] { send(MeshCoordinate(1, 1), first, kept); }, "invalid for 1D fabric");
    expect_refused([&] { send(MeshCoordinate(0, 3), first, kept); }, "receiver coordinate");
    expect_refused([&] { send(first, MeshCoordinate(2, 0), kept); }, "sender coordinate");
    const Tensor other = host(Shape({2, 3})).to_device(&mesh);
    expect_refused([&] { send(MeshCoordinate(0, 1), first, other); }, "does not match");
}

void test_exchange(MeshDevice& mesh) {
    using ttnn::experimental::all_to_all_async_generic;
    const auto exchange = [&](const Tensor& tensor, int joined, int divided, int axis) {
        return all_to_all_async_generic(tensor, joined, divided, std::nullopt, std::nullopt,
                                        std::nullopt, std::nullopt, std::nullopt,
                                        static_cast<std::uint32_t>(axis));
    };
    // Chip (1, 2) gets the last third of the columns of the chips of the second row.
    const Tensor tall = sharded(mesh, Shape({96, 96}), 0, 1);
    const Tensor wide = exchange(tall, 0, 1, 1);
    expect(wide.logical_shape() == Shape({96, 32}), "three parts of 32 rows, and 32 columns");
    std::vector<float> expected;
    for (int row = 0; row < 96; ++row) {
        for (int column = 64; column < 96; ++column) {
            expected.push_back(static_cast<float>((row * 96) + column));
        }
    }
    expect_close(on_chip(wide, 5), expected, 0);
    expect_refused([&] { exchange(tall, 0, 0, 1); }, "are both 0");
    expect_refused([&] { exchange(tall, -1, 0, 1); }, "in_dim out of range");
    expect_refused([&] { exchange(host(Shape({32, 80})).to_device(&mesh), 0, 1, 0); },
                   "must be divisible by 32");
    expect_refused([&] { exchange(host(Shape({8, 96})).to_device(&mesh), 0, 1, 1); },
                   "must be divisible by 16");
    expect_refused([&] { exchange(host(Shape({32, 64})).to_device(&mesh), 0, 1, 1); },
                   "must be divisible by num_devices 3");
}

/// Broadcasts one device's tensor along a line; rows without a sender would wait forever.
void test_broadcast(MeshDevice& mesh) {
    using ttnn::MeshCoordinate;
    const auto line = open_mesh(1, 3);
    const Tensor parts = sharded(*line, Shape({2, 6}), 1, 1);
    expect_close(on_chip(ttnn::broadcast(parts, MeshCoordinate(0, 1)), 2), {2, 3, 8, 9}, 0);
    expect_refused([&] { ttnn::broadcast(parts, MeshCoordinate(0, 3)); }, "sender coordinate");
    const Tensor rows = sharded(mesh, Shape({2, 6}), 1, 1);
    expect_refused([&] { ttnn::broadcast(rows, MeshCoordinate(0, 0)); }, "linear tensor topology");
    expect_refused(
        [&] {
            ttnn::broadcast(rows, MeshCoordinate(0, 0), std::nullopt, std::nullopt,
                            Topology::Linear, 1);
        },
        "2 lines would wait");
    line->close();
}

Tensor rows_of_host(const Shape& shape, DataType dtype, const std::vector<float>& values) {
    const tt::tt_metal::TensorSpec spec(
        shape, tt::tt_metal::TensorLayout(dtype, tt::tt_metal::PageConfig(Layout::ROW_MAJOR), {}));
    if (dtype == DataType::UINT16) {
        return Tensor::from_vector(std::vector<std::uint16_t>(values.begin(), values.end()), spec);
    }
    return Tensor::from_vector(std::vector<bfloat16>(values.begin(), values.end()), spec);
}

/// Tokens of the three devices of a row are dispatched to six experts, one on each device of the
/// mesh, and combined again.
void test_experts(MeshDevice& mesh) {
    constexpr std::uint32_t kExperts = 6;
    std::vector<float> homes;
    for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
        for (std::uint32_t device = 0; device < kExperts; ++device) {
            homes.push_back(expert == device ? 1.0F : 0.0F);
        }
    }
    const Tensor mapping =
        rows_of_host(Shape({1, 1, kExperts, kExperts}), DataType::UINT16, homes).to_device(&mesh);
    const auto divided = [&](const Tensor& whole) {
        return distribute_tensor(whole, *shard_tensor_to_mesh_mapper(mesh, 0, 1), mesh);
    };
    const Tensor tokens =
        divided(rows_of_host(Shape({3, 1, 1, 2}), DataType::BFLOAT16, {1, 2, 3, 4, 5, 6}));
    // The last of the experts of the third token is on the other row.
    const Tensor named =
        divided(rows_of_host(Shape({3, 1, 1, 2}), DataType::UINT16, {0, 2, 1, 0, 2, 4}));
    const auto [everywhere, experts] = ttnn::all_to_all_dispatch(tokens, named, mapping, 1);
    expect(everywhere.logical_shape() == Shape({1, 3, 1, 2}), "the tokens of a row");
    expect_close(on_chip(experts, 4), {0, 2, 1, 0, 2, 4}, 0);
    // Each device adds ten times its number.
    std::vector<float> numbers = {0, 10, 20, 30, 40, 50};
    MeshMapperConfig config;
    config.placements = {MeshMapperConfig::Shard{0}, MeshMapperConfig::Shard{1}};
    const Tensor number =
        distribute_tensor(rows_of_host(Shape({2, 3, 1, 1}), DataType::BFLOAT16, numbers),
                          *create_mesh_mapper(mesh, config), mesh);
    const Tensor made = ttnn::to_layout(
        ttnn::add(ttnn::to_layout(everywhere, Layout::TILE), ttnn::to_layout(number, Layout::TILE)),
        Layout::ROW_MAJOR);
    const auto combined = [&](const Tensor& results, std::uint32_t dim) {
        return ttnn::all_to_all_combine(results, mapping, experts, false, std::nullopt,
                                        std::nullopt, std::nullopt, 1, dim);
    };
    const Tensor results = combined(made, 1);
    expect(results.logical_shape() == Shape({2, 1, 1, 2}), "two experts of one token");
    expect_close(on_chip(results, 0), {1, 2, 21, 22}, 0);
    expect_close(on_chip(results, 1), {13, 14, 3, 4}, 0);
    // The devices of the first row have no expert 4, those of the second one no expert 2.
    expect_close(on_chip(results, 2), {25, 26, 0, 0}, 0);
    expect_close(on_chip(results, 5), {0, 0, 45, 46}, 0);
    expect_refused([&] { ttnn::all_to_all_dispatch(tokens, named, mapping); }, "Axis must be");
    expect_refused([&] { ttnn::all_to_all_dispatch(tokens, tokens, mapping, 1); },
                   "must be DataType::UINT16");
    expect_refused(
        [&] {
            ttnn::all_to_all_dispatch(ttnn::to_layout(tokens, Layout::TILE), named, mapping, 1);
        },
        "row major");
    expect_refused([&] { ttnn::all_to_all_dispatch(tokens, named, named, 1); }, "names 2 devices");
    expect_refused([&] { combined(made, 2); }, "Sequence length 1 must be divisible");
    expect_refused([&] { combined(made, 3); }, "must be 1 or 2");
}

/// A rendezvous of threads; a thread that waits for ten minutes is alone.
class Meeting {
  public:
    explicit Meeting(std::size_t threads) : threads_(threads) {}

    void join() {
        std::unique_lock lock(mutex_);
        present_.insert(std::this_thread::get_id());
        arrived_.notify_all();
        const auto complete = [this] { return present_.size() >= threads_; };
        if (!arrived_.wait_for(lock, std::chrono::minutes(10), complete)) {
            throw std::runtime_error("nobody else came");
        }
    }

  private:
    std::size_t threads_;
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::set<std::thread::id> present_;
};

void test_threads_of_chips() {
    using ttcodegen::cpu::ChipOrder;
    using ttcodegen::cpu::for_each_chip;
    Meeting meeting(2);
    std::vector<std::size_t> chips(6);
    for_each_chip(6, ChipOrder::Any, [&](std::size_t chip) {
        meeting.join();
        chips[chip] = *ttcodegen::cpu::current_chip();
    });
    expect(chips == std::vector<std::size_t>{0, 1, 2, 3, 4, 5}, "each thread is on its chip");
    expect(!ttcodegen::cpu::current_chip(), "the whole mesh is before the thread again");
    // Chips that are fewer than the threads leave the threads to the operation.
    for (const auto& [count, order] : {std::pair{6, ChipOrder::InTurn}, {2, ChipOrder::Any}}) {
        std::vector<std::size_t> turns;
        for_each_chip(static_cast<std::size_t>(count), order,
                      [&](std::size_t chip) { turns.push_back(chip); });
        expect(std::ranges::is_sorted(turns) && turns.size() == static_cast<std::size_t>(count),
               "one chip after the other");
    }
    // The second chip fails, but after the fifth one.
    Meeting failures(2);
    expect_refused(
        [&] {
            for_each_chip(6, ChipOrder::Any, [&](std::size_t chip) {
                if (chip == 1 || chip == 4) {
                    failures.join();
                    std::this_thread::sleep_for(std::chrono::milliseconds(chip == 1 ? 20 : 0));
                    throw std::runtime_error("chip " + std::to_string(chip));
                }
            });
        },
        "chip 1");
}

/// Chips in parallel compute the same as a single device with all threads.
void test_chips_compute_as_one_device(MeshDevice& mesh) {
    const Tensor a = draw_tensor(Shape({6 * 96, 64}), DataType::BFLOAT16, Layout::TILE, 1, true);
    const Tensor weight = draw_tensor(Shape({64, 160}), DataType::BFLOAT16, Layout::TILE, 2, true);
    const auto compute = [](const Tensor& x, const Tensor& w) {
        return ttnn::softmax(ttnn::matmul(x, w), -1);
    };
    MeshMapperConfig config;
    config.placements = {MeshMapperConfig::Shard{0}};
    config.mesh_shape_override = MeshShape(6);
    const Tensor on_mesh = compute(distribute_tensor(a, *create_mesh_mapper(mesh, config), mesh),
                                   weight.to_device(&mesh));
    const auto parts = get_device_tensors(distribute_tensor(a, *create_mesh_mapper(mesh, config)));
    for (std::size_t chip = 0; chip < parts.size(); ++chip) {
        const Tensor alone = compute(parts[chip].to_device(device()), weight.to_device(device()));
        expect_close(on_chip(on_mesh, chip), values_of(alone), 0);
    }
}

/// Chips draw from one sequence of seeds, in their order.
void test_drawn_numbers(MeshDevice& mesh) {
    const auto drawn = [](MeshDevice& where, std::uint32_t seed) {
        return ttnn::rand(Shape({4, 4}), where, DataType::FLOAT32, Layout::TILE,
                          ttnn::DRAM_MEMORY_CONFIG, 0.0F, 1.0F, seed);
    };
    const Tensor on_mesh = drawn(mesh, 0);
    for (std::uint32_t chip = 0; chip < 6; ++chip) {
        expect_close(on_chip(on_mesh, chip), values_of(drawn(*device(), chip + 1)), 0);
    }
}

/// The traffic of a mesh's links during `run`, in tiles: "from>to:tiles ...".
template <typename Run>
std::string links_of(FabricConfig fabric, std::uint32_t rows, std::uint32_t columns,
                     const Run& run) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("ttcodegen-links-" + std::to_string(::getpid()) + ".json");
    setenv("TTCODEGEN_FABRIC_REPORT", path.c_str(), 1);
    tt::tt_fabric::SetFabricConfig(fabric);
    const auto mesh = open_mesh(rows, columns);
    run(*mesh);
    mesh->close();
    unsetenv("TTCODEGEN_FABRIC_REPORT");
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    std::filesystem::remove(path);
    std::string links;
    std::istringstream words(text.str());
    std::size_t from = 0;
    std::size_t to = 0;
    for (std::string word; words >> word;) {
        if (word.find("from") != std::string::npos) {
            words >> from;
        } else if (word.find("to") != std::string::npos) {
            words >> to;
        } else if (word.find("bytes") != std::string::npos) {
            std::size_t bytes = 0;
            words >> bytes;
            expect(bytes % 4096 == 0, "whole tiles of f32");
            links += std::to_string(from) + ">" + std::to_string(to) + ":" +
                     std::to_string(bytes / 4096) + " ";
        }
        words.clear();
        if (words.peek() == ',') {
            words.ignore();
        }
    }
    return links;
}

void expect_links(const std::string& found, const std::string& expected,
                  std::source_location where = std::source_location::current()) {
    expect(found == expected, "links " + found + "instead of " + expected, where);
}

void test_bytes_of_links() {
    const Shape tile({32, 32});
    const auto gather = [&](int axis, std::optional<Topology> topology = std::nullopt) {
        return [&, axis, topology](MeshDevice& mesh) {
            const Tensor part = host(tile).to_device(&mesh);
            ttnn::all_gather(part, 0, axis, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                             topology);
        };
    };
    const std::string line = "0>1:1 1>2:2 1>0:3 2>3:3 2>1:2 3>2:1 ";
    const std::string ring = "0>1:2 0>3:1 1>2:2 1>0:1 2>3:2 2>1:1 3>0:2 3>2:1 ";
    // The first device of a line forwards one tile, the last receives those of all others.
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 4, gather(1)), line);
    expect_links(links_of(FabricConfig::FABRIC_2D, 4, 1, gather(0)), line);
    // On a ring, half of the tiles are sent in one direction.
    expect_links(links_of(FabricConfig::FABRIC_1D_RING, 1, 4, gather(1)), ring);
    expect_links(links_of(FabricConfig::FABRIC_2D_TORUS_X, 1, 4, gather(1)), ring);
    expect_links(links_of(FabricConfig::FABRIC_2D_TORUS_Y, 1, 4, gather(1)), line);
    // A line is requested on a ring: nothing is sent from the last device to the first.
    expect_links(links_of(FabricConfig::FABRIC_1D_RING, 1, 4, gather(1, Topology::Linear)),
                 "0>1:1 0>3:0 1>2:2 1>0:3 2>3:3 2>1:2 3>0:0 3>2:1 ");
    // Two devices are a line in any fabric.
    expect_links(links_of(FabricConfig::FABRIC_2D_TORUS_XY, 1, 2, gather(1, Topology::Ring)),
                 "0>1:1 1>0:1 ");
    // Along the columns of a torus of 3x2, which are rings; along its rows nothing.
    expect_links(links_of(FabricConfig::FABRIC_2D_TORUS_XY, 3, 2, gather(0)),
                 "0>2:1 0>4:1 2>4:1 2>0:1 4>0:1 4>2:1 1>3:1 1>5:1 3>5:1 3>1:1 5>1:1 5>3:1 "
                 "0>1:0 1>0:0 2>3:0 3>2:0 4>5:0 5>4:0 ");
    const auto reduce = [](MeshDevice& mesh) {
        ttnn::reduce_scatter(host(Shape({32, 96})).to_device(&mesh), 1, 1);
    };
    // Sums of the devices before, for each device after.
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 3, reduce), "0>1:2 1>2:1 1>0:1 2>1:2 ");
    expect_links(links_of(FabricConfig::FABRIC_1D_RING, 1, 3, reduce),
                 "0>1:1 0>2:1 1>2:1 1>0:1 2>0:1 2>1:1 ");
    const auto send = [](MeshDevice& mesh) {
        ttnn::point_to_point(host(Shape({64, 32})).to_device(&mesh), ttnn::MeshCoordinate(0, 1),
                             ttnn::MeshCoordinate(0, 3));
    };
    // Two tiles, from chip to chip.
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 4, send),
                 "0>1:0 1>2:0 1>0:0 2>3:0 2>1:2 3>2:2 ");
    // A single packet visits all devices of a direction; on a ring half of them.
    const auto broadcast = [](MeshDevice& mesh) {
        ttnn::broadcast(host(Shape({32, 32})).to_device(&mesh), ttnn::MeshCoordinate(0, 1),
                        std::nullopt, std::nullopt, Topology::Linear);
    };
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 4, broadcast),
                 "0>1:0 1>2:1 1>0:1 2>3:1 2>1:0 3>2:0 ");
    const auto round = [](MeshDevice& mesh) {
        ttnn::broadcast(host(Shape({32, 32})).to_device(&mesh), ttnn::MeshCoordinate(0, 1),
                        std::nullopt, std::nullopt, Topology::Ring);
    };
    expect_links(links_of(FabricConfig::FABRIC_1D_RING, 1, 4, round),
                 "0>1:0 0>3:0 1>2:1 1>0:1 2>3:1 2>1:0 3>0:0 3>2:0 ");
    // A tile for each of the others: the middle devices forward those of the ends.
    const auto exchange = [](MeshDevice& mesh) {
        ttnn::experimental::all_to_all_async_generic(host(Shape({32, 96})).to_device(&mesh), 0, 1);
    };
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 3, exchange), "0>1:2 1>2:2 1>0:2 2>1:2 ");
    expect_links(links_of(FabricConfig::FABRIC_1D_RING, 1, 3, exchange),
                 "0>1:1 0>2:1 1>2:1 1>0:1 2>0:1 2>1:1 ");
    // Rows of 4096 bytes: the first token's experts are on the last device, the others' at home.
    const auto tokens = [](MeshDevice& mesh) {
        const auto divided = [&](const Tensor& whole) {
            return distribute_tensor(whole, *shard_tensor_to_mesh_mapper(mesh, 0, 1), mesh);
        };
        const Tensor mapping =
            rows_of_host(Shape({1, 1, 3, 3}), DataType::UINT16, {1, 0, 0, 0, 1, 0, 0, 0, 1})
                .to_device(&mesh);
        const Tensor named = divided(rows_of_host(Shape({3, 1, 1, 2048}), DataType::UINT16, [] {
            std::vector<float> experts(std::size_t{3} * 2048, 2);
            std::fill_n(experts.begin() + 2048, 2048, 1.0F);
            return experts;
        }()));
        const Tensor rows = divided(rows_of_host(Shape({3, 1, 1, 2048}), DataType::BFLOAT16,
                                                 std::vector<float>(std::size_t{3} * 2048)));
        ttnn::all_to_all_dispatch(rows, named, mapping, 1);
    };
    expect_links(links_of(FabricConfig::FABRIC_1D, 1, 3, tokens), "0>1:2 1>2:3 1>0:2 2>1:1 ");
    links_of(FabricConfig::FABRIC_1D, 1, 4, [&](MeshDevice& mesh) {
        expect_refused([&] { gather(1, Topology::Ring)(mesh); }, "A ring of 4 devices");
    });
}

void test_refusals() {
    tt::tt_fabric::SetFabricConfig(FabricConfig::FABRIC_1D);
    const auto mesh = open_mesh(1, 4);
    const Tensor parts = sharded(*mesh, Shape({2, 8}), 1, 1);
    expect_refused([&] { ttnn::all_gather(parts, 1, 0); },
                   "num_devices > 1, but has 1 along axis 0");
    expect_refused([&] { ttnn::all_reduce(parts, 3); }, "Cluster axis 3");
    expect_refused([&] { ttnn::reduce_scatter(parts, 1, 1); }, "must be divisible");
    expect_refused([&] { ttnn::reduce_scatter(parts, 2, 1); }, "out of range");
    expect_refused(
        [&] { ttnn::all_reduce(parts, 1, std::nullopt, std::nullopt, std::optional{0U}); },
        "num_links should be more than 0");
    expect_refused([&] { ttnn::all_gather(host(Shape({8})).to_device(mesh.get()), 0, 1); },
                   "rank 2 or greater");
    expect_refused([&] { ttnn::all_gather(parts.cpu(), 1, 1); }, "must be on device");
    // Participants that do not fit: as many parts as another mesh has, of other shapes, and a
    // composer of another mesh.
    const Tensor piece = host(Shape({2, 2}));
    const Tensor two = from_host_shards({piece, piece}, MeshShape(1, 2));
    expect_refused([&] { (void)two.to_device(mesh.get()); },
                   "A tensor of 2 parts is not for a mesh of 4 devices");
    expect_refused([&] { from_host_shards({piece, host(Shape({2, 4}))}, MeshShape(1, 2)); },
                   "one specification");
    const auto pair = open_mesh(1, 2);
    expect_refused([&] { (void)ttnn::add(parts, piece.to_device(pair.get())); },
                   "Tensors of 4 and of 2 chips");
    expect_refused([&] { aggregate_tensor(parts, *concat_mesh_to_tensor_composer(*pair, 1)); },
                   "number of tensors, 4, to match the mesh of 2");
    pair->close();
    mesh->close();
}

void test_a_mesh_without_fabric() {
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::DISABLED);
    const auto mesh = open_mesh(1, 2);
    expect_refused([&] { ttnn::all_reduce(sharded(*mesh, Shape({2, 6}), 1, 1)); },
                   "SetFabricConfig");
    expect_refused([] { open_mesh(17, 8); }, "128 devices, not 136");
    expect_refused([] { open_mesh(0, 2); }, "128 devices, not 0");
    mesh->close();
}

}  // namespace

int main() {
    // Before the first use: chips run side by side on any machine.
    setenv("TTCODEGEN_THREADS", "4", 1);
    test_threads_of_chips();
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::FABRIC_1D);
    const auto mesh = open_mesh(2, 3);
    test_parts_and_the_whole(*mesh);
    test_creation_and_replication(*mesh);
    test_collectives(*mesh);
    test_point_to_point(*mesh);
    test_exchange(*mesh);
    test_broadcast(*mesh);
    test_experts(*mesh);
    test_chips_compute_as_one_device(*mesh);
    test_drawn_numbers(*mesh);
    mesh->close();
    test_bytes_of_links();
    test_refusals();
    test_a_mesh_without_fabric();
}
