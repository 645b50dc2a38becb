"""The barriers of the specification: one node after all others, then all others after one."""

import sys

import numpy as np
import ttl
import ttnn
from ttl import grid_size

GRID_X, GRID_Y = map(int, sys.argv[1:])


@ttl.operation(grid=(GRID_X, GRID_Y))
def __count(order: ttnn.Tensor) -> None:
    node_num = ttl.node(dims=1)
    many_to_one = ttl.Semaphore()
    one_to_many = ttl.Semaphore(0)
    node_0_barrier = many_to_one.get_remote((0, 0))
    all_barrier = one_to_many.get_remote_multicast()
    non_0_node_count = grid_size(dims=1) - 1

    @ttl.datamovement()
    def dm():
        if node_num != 0:
            visited.append(node_num)
            node_0_barrier.inc(1)
        else:
            many_to_one.wait_eq(non_0_node_count)
            visited.append(0)
            all_barrier.set(1)

    @ttl.datamovement()
    def after():
        one_to_many.wait_ge(1)
        released.append(node_num)


visited, released = [], []
__count(ttnn.zeros((32, 32)))
results = {
    "last": (np.array(visited[-1:]), np.array([0])),
    "released": (np.sort(released), np.arange(GRID_X * GRID_Y)),
}
