// Meshes of several devices: what each has, what collectives give and refuse, what links carry.

#include <numeric>

#include "compute_testing.hpp"
#include "core/device.hpp"
#include "tt-metalium/experimental/fabric/fabric.hpp"
#include "ttnn/distributed/api.hpp"
#include "ttnn/distributed/distributed_tensor.hpp"
#include "ttnn/operations/ccl/all_gather/all_gather.hpp"
#include "ttnn/operations/ccl/all_reduce/all_reduce.hpp"
#include "ttnn/operations/ccl/mesh_partition/mesh_partition.hpp"
#include "ttnn/operations/ccl/reduce_scatter/reduce_scatter.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"

using namespace compute_testing;
using namespace ttnn::distributed;

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
    return get_device_tensors(tensor).at(chip).to_vector<float>();
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

void test_a_mesh_without_fabric() {
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::DISABLED);
    const auto mesh = open_mesh(1, 2);
    expect_refused([&] { ttnn::all_reduce(sharded(*mesh, Shape({2, 6}), 1, 1)); },
                   "SetFabricConfig");
    expect_refused([] { open_mesh(5, 8); }, "32 devices, not 40");
    expect_refused([] { open_mesh(0, 2); }, "32 devices, not 0");
    mesh->close();
}

}  // namespace

int main() {
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::FABRIC_1D);
    const auto mesh = open_mesh(2, 3);
    test_parts_and_the_whole(*mesh);
    test_creation_and_replication(*mesh);
    test_collectives(*mesh);
    mesh->close();
    test_a_mesh_without_fabric();
}
