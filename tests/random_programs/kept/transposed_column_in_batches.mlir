// The rows of a transposed operand are contiguous within a batch, but not across batches.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.matmul"(%x, %y) <{transpose_a = true}> : (tensor<3x2x1xbf16
func.func @transposed_column_in_batches(
    %x: tensor<3x2x1xbf16> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<2x8xbf16> {drawn.low = -0.5 : f64, drawn.high = 0.5 : f64, drawn.seed = 1 : i64})
    -> tensor<3x1x8xbf16> {
  %0 = "ttir.matmul"(%x, %y) <{transpose_a = true}>
      : (tensor<3x2x1xbf16>, tensor<2x8xbf16>) -> tensor<3x1x8xbf16>
  return %0 : tensor<3x1x8xbf16>
}
