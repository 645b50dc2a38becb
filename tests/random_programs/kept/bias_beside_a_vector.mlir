// ttnn::linear takes no bias if an operand of the matmul is a vector.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.matmul"(%x, %y) <
// CHECK: "ttnn.add"
func.func @bias_beside_a_vector(
    %x: tensor<5x3x2x1xf32> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<1xf32> {drawn.low = -0.5 : f64, drawn.high = 0.5 : f64, drawn.seed = 1 : i64},
    %b: tensor<2xf32> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 2 : i64})
    -> tensor<5x3x2xf32> {
  %0 = "ttir.linear"(%x, %y, %b)
      : (tensor<5x3x2x1xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<5x3x2xf32>
  return %0 : tensor<5x3x2xf32>
}
