// A vector operand of a matmul is not transposed.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK-NOT: transpose_
// CHECK: "ttnn.matmul"(%x, %y) :
func.func @transposed_vectors(
    %x: tensor<1x4x32xbf16> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<32xbf16> {drawn.low = -0.5 : f64, drawn.high = 0.5 : f64, drawn.seed = 1 : i64},
    %z: tensor<32x3xbf16> {drawn.low = -0.5 : f64, drawn.high = 0.5 : f64, drawn.seed = 2 : i64})
    -> (tensor<1x4xbf16>, tensor<3xbf16>) {
  %0 = "ttir.matmul"(%x, %y) <{transpose_b = true}>
      : (tensor<1x4x32xbf16>, tensor<32xbf16>) -> tensor<1x4xbf16>
  %1 = "ttir.linear"(%y, %z) <{transpose_a = true}>
      : (tensor<32xbf16>, tensor<32x3xbf16>) -> tensor<3xbf16>
  return %0, %1 : tensor<1x4xbf16>, tensor<3xbf16>
}
