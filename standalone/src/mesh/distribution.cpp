// Distribution of host tensors over the devices of a mesh, and composition.

#include "core/chips.hpp"
#include "core/device.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/distributed/api.hpp"
#include "ttnn/distributed/distributed_tensor.hpp"

namespace ttcodegen::cpu {

namespace {

using tt::tt_metal::distributed::MeshShape;

/// The tensor dimension that is sharded or concatenated along an axis of the mesh.
struct Division {
    std::size_t axis;
    std::size_t dim;
};

std::vector<std::size_t> coordinates(const MeshShape& shape, std::size_t index) {
    std::vector<std::size_t> place(shape.dims());
    for (std::size_t axis = shape.dims(); axis-- > 0;) {
        place[axis] = index % shape[static_cast<std::int32_t>(axis)];
        index /= shape[static_cast<std::int32_t>(axis)];
    }
    return place;
}

std::size_t index_in(const MeshShape& shape, const std::vector<std::size_t>& place) {
    std::size_t index = 0;
    for (std::size_t axis = 0; axis < shape.dims(); ++axis) {
        index = index * shape[static_cast<std::int32_t>(axis)] + place[axis];
    }
    return index;
}

/// The device for a position of another mesh shape: the same position if that shape fits into the
/// mesh, else the one with the same row-major index.
std::size_t device_at(const MeshShape& mesh, const MeshShape& shape, std::size_t index) {
    bool fits = shape.dims() == mesh.dims();
    for (std::size_t axis = 0; fits && axis < shape.dims(); ++axis) {
        fits = shape[static_cast<std::int32_t>(axis)] <= mesh[static_cast<std::int32_t>(axis)];
    }
    return fits ? index_in(mesh, coordinates(shape, index)) : index;
}

void check_shape(const MeshShape& mesh, const MeshShape& shape, std::size_t given,
                 const char* what) {
    TT_FATAL(shape.mesh_size() <= mesh.mesh_size(),
             "The size of the supplied mesh shape, {}, does not match the device shape size, {}",
             shape.mesh_size(), mesh.mesh_size());
    TT_FATAL(shape.dims() == given,
             "The number of dimensions in the mesh shape, {}, does not match the number of {} in "
             "the config, {}",
             shape.dims(), what, given);
    // A line no longer than the mesh is high would be taken for positions of the mesh, which have
    // more dimensions.
    TT_FATAL(shape.dims() == mesh.dims() || shape[0] > mesh[0],
             "A mesh shape of {} dimensions fits into the mesh, whose devices have {} coordinates",
             shape.dims(), mesh.dims());
}

void check_unique(const std::vector<Division>& divisions) {
    for (std::size_t i = 0; i < divisions.size(); ++i) {
        for (std::size_t j = i + 1; j < divisions.size(); ++j) {
            TT_FATAL(divisions[i].dim != divisions[j].dim, "dims must be unique");
        }
    }
}

/// Copies a box of elements between host tensors.
void copy_box(const Tensor& from, std::size_t from_offset, const Tensor& to, std::size_t to_offset,
              const Shape& box) {
    const std::size_t element = stored_size(from.dtype());
    strided_copy(
        {buffer_of(from).data() + from_offset * element, signed_strides(from.logical_shape())},
        {buffer_of(to).data() + to_offset * element, signed_strides(to.logical_shape())},
        extents(box), element);
}

/// The offset of a shard in the whole tensor.
std::size_t offset_in(const Shape& whole, const Shape& part, const std::vector<Division>& divisions,
                      const std::vector<std::size_t>& place) {
    const auto strides = element_strides(whole);
    std::size_t offset = 0;
    for (const Division& division : divisions) {
        offset += place[division.axis] * part.view()[division.dim] * strides[division.dim];
    }
    return offset;
}

Shape scaled(const Shape& shape, const MeshShape& mesh, const std::vector<Division>& divisions,
             bool grows) {
    ttsl::SmallVector<std::uint32_t> sizes(shape.begin(), shape.end());
    for (const auto& [axis, dim] : divisions) {
        const std::uint32_t count = mesh[static_cast<std::int32_t>(axis)];
        TT_FATAL(grows || sizes[dim] % count == 0,
                 "Dimension {} of the tensor {} does not divide among {} devices: the parts would "
                 "have different shapes",
                 dim, shape, count);
        sizes[dim] = grows ? sizes[dim] * count : sizes[dim] / count;
    }
    return Shape(std::move(sizes));
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn::distributed {

namespace cpu = ttcodegen::cpu;
using cpu::Division;

class TensorToMesh::Impl {
  public:
    Impl(MeshShape mesh, MeshShape shape, MeshMapperConfig config)
        : mesh_(std::move(mesh)), shape_(std::move(shape)), config_(std::move(config)) {}

    Tensor map(const Tensor& tensor) const {
        TT_FATAL(cpu::parts_of(tensor).empty(), "The tensor to distribute has parts already");
        std::vector<Division> divisions;
        for (std::size_t axis = 0; axis < config_.placements.size(); ++axis) {
            if (const auto* shard =
                    std::get_if<MeshMapperConfig::Shard>(&config_.placements[axis])) {
                divisions.push_back(
                    {axis, cpu::normalize_dim(shard->dim, tensor.logical_shape().rank())});
            }
        }
        cpu::check_unique(divisions);
        const auto shape = cpu::scaled(tensor.logical_shape(), shape_, divisions, false);
        const auto spec =
            cpu::make_spec(shape, tensor.dtype(), tensor.layout(), tensor.memory_config());
        TT_FATAL(shape_.mesh_size() == mesh_.mesh_size(),
                 "The CPU backend distributes among all devices of a mesh, not among {} of {}",
                 shape_.mesh_size(), mesh_.mesh_size());
        std::vector<Tensor> parts(mesh_.mesh_size());
        const cpu::LocalChips local = cpu::local_chips(parts.size());
        for (std::size_t index = 0; index < shape_.mesh_size(); ++index) {
            const std::size_t chip = cpu::device_at(mesh_, shape_, index);
            if (!local.contains(chip)) {
                continue;
            }
            Tensor part = cpu::allocate(spec, nullptr);
            const auto place = cpu::coordinates(shape_, index);
            cpu::copy_box(tensor, cpu::offset_in(tensor.logical_shape(), shape, divisions, place),
                          part, 0, shape);
            cpu::finish_block_float(part);
            parts[chip] = part;
        }
        return parts.size() == 1 ? parts.front() : cpu::joined(parts, nullptr);
    }

    const MeshMapperConfig& config() const { return config_; }

  private:
    MeshShape mesh_;
    MeshShape shape_;
    MeshMapperConfig config_;
};

TensorToMesh::TensorToMesh(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TensorToMesh::~TensorToMesh() = default;
TensorToMesh::TensorToMesh(TensorToMesh&& other) noexcept = default;
TensorToMesh& TensorToMesh::operator=(TensorToMesh&& other) noexcept = default;
Tensor TensorToMesh::operator()(const Tensor& tensor) const { return impl_->map(tensor); }
const MeshMapperConfig& TensorToMesh::config() const { return impl_->config(); }

TensorToMesh TensorToMesh::create(const MeshDevice& mesh_device, const MeshMapperConfig& config) {
    const MeshShape shape = config.mesh_shape_override.value_or(mesh_device.shape());
    cpu::check_shape(mesh_device.shape(), shape, config.placements.size(), "placements");
    return TensorToMesh(std::make_unique<Impl>(mesh_device.shape(), shape, config));
}

std::unique_ptr<TensorToMesh> create_mesh_mapper(MeshDevice& mesh_device,
                                                 const MeshMapperConfig& config) {
    return std::make_unique<TensorToMesh>(TensorToMesh::create(mesh_device, config));
}

std::unique_ptr<TensorToMesh> replicate_tensor_to_mesh_mapper(MeshDevice& mesh_device) {
    MeshMapperConfig config;
    config.placements.resize(mesh_device.shape().dims(), MeshMapperConfig::Replicate{});
    return create_mesh_mapper(mesh_device, config);
}

std::unique_ptr<TensorToMesh> shard_tensor_to_mesh_mapper(MeshDevice& mesh_device, int dim,
                                                          std::optional<int> cluster_axis) {
    MeshMapperConfig config;
    if (!cluster_axis) {
        config.placements.push_back(MeshMapperConfig::Shard{dim});
        config.mesh_shape_override =
            MeshShape(static_cast<std::uint32_t>(mesh_device.num_devices()));
        return create_mesh_mapper(mesh_device, config);
    }
    const auto dims = static_cast<int>(mesh_device.shape().dims());
    TT_FATAL(*cluster_axis >= 0 && *cluster_axis < dims,
             "Cluster axis {} is out of range for mesh device with {} dimensions", *cluster_axis,
             dims);
    config.placements.resize(static_cast<std::size_t>(dims), MeshMapperConfig::Replicate{});
    config.placements[static_cast<std::size_t>(*cluster_axis)] = MeshMapperConfig::Shard{dim};
    return create_mesh_mapper(mesh_device, config);
}

class MeshToTensor::Impl {
  public:
    Impl(MeshShape mesh, MeshShape shape, MeshComposerConfig config)
        : mesh_(std::move(mesh)), shape_(std::move(shape)), config_(std::move(config)) {}

    Tensor compose(const Tensor& tensor) const {
        const Tensor host = tensor.cpu();
        std::vector<Tensor> parts = cpu::gathered_parts(host);
        if (parts.empty()) {
            parts.push_back(host);
        }
        TT_FATAL(parts.size() == mesh_.mesh_size(),
                 "ND composition requires the number of tensors, {}, to match the mesh of {}",
                 parts.size(), mesh_.mesh_size());
        const auto& part_shape = host.logical_shape();
        std::vector<Division> divisions;
        if (shape_.mesh_size() > 1) {
            for (std::size_t axis = 0; axis < config_.dims.size(); ++axis) {
                divisions.push_back(
                    {axis, cpu::normalize_dim(config_.dims[axis], part_shape.rank())});
            }
        }
        cpu::check_unique(divisions);
        const auto shape = cpu::scaled(part_shape, shape_, divisions, true);
        const Tensor whole = cpu::allocate(
            cpu::make_spec(shape, host.dtype(), host.layout(), host.memory_config()), nullptr);
        for (std::size_t index = 0; index < shape_.mesh_size(); ++index) {
            const auto place = cpu::coordinates(shape_, index);
            cpu::copy_box(parts[cpu::device_at(mesh_, shape_, index)], 0, whole,
                          cpu::offset_in(shape, part_shape, divisions, place), part_shape);
        }
        cpu::finish_block_float(whole);
        return whole;
    }

  private:
    MeshShape mesh_;
    MeshShape shape_;
    MeshComposerConfig config_;
};

MeshToTensor::MeshToTensor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeshToTensor::~MeshToTensor() = default;
MeshToTensor::MeshToTensor(MeshToTensor&& other) noexcept = default;
MeshToTensor& MeshToTensor::operator=(MeshToTensor&& other) noexcept = default;
Tensor MeshToTensor::compose(const Tensor& tensor) const { return impl_->compose(tensor); }

MeshToTensor MeshToTensor::create(const MeshDevice& mesh_device, const MeshComposerConfig& config) {
    const MeshShape shape = config.mesh_shape_override.value_or(mesh_device.shape());
    cpu::check_shape(mesh_device.shape(), shape, config.dims.size(), "dims");
    return MeshToTensor(std::make_unique<Impl>(mesh_device.shape(), shape, config));
}

std::unique_ptr<MeshToTensor> create_mesh_composer(MeshDevice& mesh_device,
                                                   const MeshComposerConfig& config) {
    return std::make_unique<MeshToTensor>(MeshToTensor::create(mesh_device, config));
}

std::unique_ptr<MeshToTensor> concat_mesh_to_tensor_composer(MeshDevice& mesh_device, int dim) {
    MeshComposerConfig config;
    config.dims.push_back(dim);
    config.mesh_shape_override = MeshShape(static_cast<std::uint32_t>(mesh_device.num_devices()));
    return create_mesh_composer(mesh_device, config);
}

Tensor distribute_tensor(const Tensor& tensor, const TensorToMesh& mapper,
                         std::optional<std::reference_wrapper<MeshDevice>> mesh_device,
                         std::optional<ttnn::QueueId> cq_id) {
    TTCODEGEN_REPORTED(distribute_tensor, tensor, mapper, mesh_device, cq_id);
    TT_FATAL(tensor.storage_type() == tt::tt_metal::StorageType::HOST,
             "TensorToMesh only supports host tensors; got storage type: {}",
             tensor.storage_type());
    const Tensor parts = mapper(tensor);
    return mesh_device ? parts.to_device(&mesh_device->get(), parts.memory_config(), cq_id) : parts;
}

Tensor aggregate_tensor(const Tensor& tensor, const MeshToTensor& composer) {
    TTCODEGEN_REPORTED(aggregate_tensor, tensor, composer);
    return composer.compose(tensor);
}

std::vector<Tensor> get_device_tensors(const Tensor& tensor) {
    const auto& parts = cpu::parts_of(tensor);
    if (parts.empty()) {
        return {tensor};
    }
    // As in the library: a host tensor is gathered from all processes, a device tensor is not.
    return cpu::on_device(tensor) ? parts : cpu::gathered_parts(tensor);
}

Tensor from_host_shards(const std::vector<Tensor>& tensor_shards, const MeshShape& mesh_shape,
                        int /*shard_dim*/) {
    TT_FATAL(tensor_shards.size() == mesh_shape.mesh_size(),
             "Number of tensor shards, {}, must match mesh size, {}", tensor_shards.size(),
             mesh_shape.mesh_size());
    for (const Tensor& shard : tensor_shards) {
        TT_FATAL(!cpu::on_device(shard), "All tensor shards must be on host");
    }
    return tensor_shards.size() == 1 ? tensor_shards.front() : cpu::joined(tensor_shards, nullptr);
}

}  // namespace ttnn::distributed
