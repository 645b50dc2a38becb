"""A product of two matrices, divided among four devices: by rows, by parts of sums, by blocks."""

import sys

import numpy as np
import ttl
import ttnn


@ttl.operation(grid=(1, 1))
def product(a, b, y):
    a_dfb, b_dfb, y_dfb = (ttl.make_dataflow_buffer_like(t, shape=(1, 1)) for t in (a, b, y))
    rows, inner, columns = (n // 32 for n in (a.shape[0], a.shape[1], b.shape[1]))

    @ttl.datamovement()
    def read():
        for row in range(rows):
            for column in range(columns):
                for k in range(inner):
                    with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                        ttl.copy(a[row, k], a_blk).wait()
                        ttl.copy(b[k, column], b_blk).wait()

    @ttl.compute()
    def compute():
        for _ in range(rows * columns):
            with y_dfb.reserve() as y_blk:
                total = ttl.block.fill(0, shape=(1, 1))
                for _ in range(inner):
                    with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                        total += a_blk @ b_blk
                y_blk.store(total)

    @ttl.datamovement()
    def write():
        for row in range(rows):
            for column in range(columns):
                with y_dfb.wait() as y_blk:
                    ttl.copy(y_blk, y[row, column]).wait()


generator = np.random.default_rng(1)
a, b = generator.random((128, 128), np.float32), generator.random((128, 64), np.float32)


def tensor(array, mapper):
    return ttnn.from_torch(array, layout=ttnn.TILE_LAYOUT, device=mesh, mesh_mapper=mapper)


division = sys.argv[1] if len(sys.argv) > 1 else "rows"
if division == "rows":
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 4))
    y = tensor(np.zeros((128, 64), np.float32), ttnn.ShardTensorToMesh(mesh, dim=0))
    product(tensor(a, ttnn.ShardTensorToMesh(mesh, dim=0)), tensor(b, None), y)
    found = ttnn.to_torch(y, mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    shape = y.shape
elif division == "sums":
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 4))
    y = ttnn.zeros((128, 64), ttnn.float32, layout=ttnn.TILE_LAYOUT, device=mesh)
    product(
        tensor(a, ttnn.ShardTensorToMesh(mesh, 1)), tensor(b, ttnn.ShardTensorToMesh(mesh, 0)), y
    )
    y = ttnn.relu(ttnn.all_reduce(y))
    found = ttnn.to_torch(ttnn.get_device_tensors(y)[3])
    shape = y.shape
else:
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(2, 2))
    y = ttnn.zeros((64, 64), ttnn.float32, layout=ttnn.TILE_LAYOUT, device=mesh)
    product(
        tensor(a, ttnn.ShardTensor2dMesh(mesh, mesh.shape, dims=(0, 1))),
        tensor(b, ttnn.ShardTensor2dMesh(mesh, mesh.shape, dims=(None, 0))),
        y,
    )
    y = ttnn.all_gather(ttnn.reduce_scatter(y, dim=1, cluster_axis=1), dim=1, cluster_axis=1)
    y = ttnn.all_gather(y, dim=0, cluster_axis=0)
    found = ttnn.to_torch(y, mesh_composer=ttnn.ConcatMesh2dToTensor(mesh, (2, 2), (0, 1)))[
        :128, :64
    ]
    shape = y.shape

results = {"y": (found, a @ b)}
