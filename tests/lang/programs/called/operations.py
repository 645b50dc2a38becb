"""Operations that models call: a product with two results, and one whose nodes send each other
what they read."""

import ttl


@ttl.operation(grid=(2, 2))
def product(a, b, y, doubled):
    """Each node computes a tile of the product of two matrices, and twice that."""
    column, row = ttl.node(dims=2)
    tensors = (a, b, y, doubled)
    a_dfb, b_dfb, y_dfb, d_dfb = (
        ttl.make_dataflow_buffer_like(each, shape=(1, 1)) for each in tensors
    )
    inner = a.shape[1] // 32

    @ttl.datamovement()
    def read():
        for k in range(inner):
            with a_dfb.reserve() as a_blk, b_dfb.reserve() as b_blk:
                ttl.copy(a[row, k], a_blk).wait()
                ttl.copy(b[k, column], b_blk).wait()

    @ttl.compute()
    def compute():
        with y_dfb.reserve() as y_blk, d_dfb.reserve() as d_blk:
            total = ttl.block.fill(0, shape=(1, 1))
            for _ in range(inner):
                with a_dfb.wait() as a_blk, b_dfb.wait() as b_blk:
                    total += a_blk @ b_blk
            y_blk.store(total)
            d_blk.store(total + total)

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as y_blk:
            ttl.copy(y_blk, y[row, column]).wait()
        with d_dfb.wait() as d_blk:
            ttl.copy(d_blk, doubled[row, column]).wait()


@ttl.operation(grid=(2, 3))
def rotated(own, others):
    """Each node sends its tile to the node below, the last one to the first, which negates it."""
    grid_x, grid_y = ttl.grid_size()
    x, y = ttl.node(dims=2)
    net = ttl.PipeNet(
        [
            ttl.Pipe(src=(x, y), dst=(x, (y + 1) % grid_y))
            for x in range(grid_x)
            for y in range(grid_y)
        ]
    )
    sent_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))
    received_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))
    negated_dfb = ttl.make_dataflow_buffer_like(own, shape=(1, 1))

    @ttl.datamovement()
    def exchange():
        with sent_dfb.reserve() as sent_blk:
            ttl.copy(own[y, x], sent_blk).wait()

            def send(pipe):
                ttl.copy(sent_blk, pipe).wait()

            net.if_src(send)

        def receive(pipe):
            with received_dfb.reserve() as received_blk:
                ttl.copy(pipe, received_blk).wait()

        net.if_dst(receive)

    @ttl.compute()
    def negate():
        with received_dfb.wait() as received_blk, negated_dfb.reserve() as negated_blk:
            negated_blk.store(-received_blk)

    @ttl.datamovement()
    def write():
        with negated_dfb.wait() as negated_blk:
            ttl.copy(negated_blk, others[y, x]).wait()
