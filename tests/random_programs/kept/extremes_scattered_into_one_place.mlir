// A repeat by one returns its operand: deallocating one of them deallocates both.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.maximum"
// CHECK-NOT: "ttnn.repeat"
func.func @extremes_scattered_into_one_place(
    %x: tensor<4x5x1x1xf32> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 0 : i64},
    %i: tensor<4x5x1x1xi32> {drawn.low = 0.0 : f64, drawn.high = 0.0 : f64, drawn.seed = 1 : i64})
    -> tensor<4x5x1x1xf32> {
  %0 = "ttir.neg"(%x) : (tensor<4x5x1x1xf32>) -> tensor<4x5x1x1xf32>
  %1 = "ttir.scatter"(%0, %i, %x) <{dim = 2 : i32, scatter_reduce_type = "max"}>
      : (tensor<4x5x1x1xf32>, tensor<4x5x1x1xi32>, tensor<4x5x1x1xf32>) -> tensor<4x5x1x1xf32>
  return %1 : tensor<4x5x1x1xf32>
}
