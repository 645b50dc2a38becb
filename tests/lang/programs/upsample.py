"""Nearest neighbor upsample of row-major images, as in the specification; the nodes of a grid
share the rows and columns of images."""

import sys

import numpy as np
import ttl
import ttnn

N, HI, WI, C, H_SCALE_FACTOR, W_SCALE_FACTOR = map(int, sys.argv[1:7])
COLUMNS, ROWS = map(int, sys.argv[7:] or (1, 1))
HO = HI * H_SCALE_FACTOR
WO = WI * W_SCALE_FACTOR


@ttl.operation(grid=(COLUMNS, ROWS))
def __upsample(input_images: ttnn.Tensor, output_images: ttnn.Tensor) -> None:
    io_dfb = ttl.make_dataflow_buffer_like(input_images, shape=(C,), block_count=2)

    column, row = ttl.node(dims=2)

    @ttl.datamovement()
    def reader():
        for n in range(N):
            for hi in range(row, HI, ROWS):
                for wi in range(column, WI, COLUMNS):
                    with io_dfb.reserve() as io_blk:
                        xf = ttl.copy(input_images[n, hi, wi, :], io_blk)
                        xf.wait()

    @ttl.datamovement()
    def writer():
        for n in range(N):
            for hi in range(row, HI, ROWS):
                for wi in range(column, WI, COLUMNS):
                    with io_dfb.wait() as io_blk:
                        gxf = ttl.GroupTransfer()

                        for h_scale_index in range(H_SCALE_FACTOR):
                            for w_scale_index in range(W_SCALE_FACTOR):
                                xf = ttl.copy(
                                    io_blk,
                                    output_images[
                                        n,
                                        hi * H_SCALE_FACTOR + h_scale_index,
                                        wi * W_SCALE_FACTOR + w_scale_index,
                                        :,
                                    ],
                                )
                                gxf.add(xf)

                        gxf.wait_all()


pixels = np.random.default_rng(1).random((N, HI, WI, C), np.float32)
images = ttnn.from_torch(pixels, layout=ttnn.ROW_MAJOR_LAYOUT)
upsampled = ttnn.zeros((N, HO, WO, C), ttnn.float32, layout=ttnn.ROW_MAJOR_LAYOUT)
__upsample(images, upsampled)
results = {
    "images": (upsampled.elements(), pixels.repeat(H_SCALE_FACTOR, 1).repeat(W_SCALE_FACTOR, 2))
}
