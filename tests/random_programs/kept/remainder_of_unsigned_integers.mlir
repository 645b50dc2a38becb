// ttnn refuses the remainder of unsigned integers: the 32-bit one is computed from a signed quotient.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.div_trunc"(%{{.*}}) : (tensor<4x7xsi32
// CHECK: "ttnn.remainder"(%{{.*}}) : (tensor<5xsi32
func.func @remainder_of_unsigned_integers(
    %x: tensor<4x7xui32> {drawn.low = 0.0 : f64, drawn.high = 8.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<4x7xui32> {drawn.low = 1.0 : f64, drawn.high = 4.0 : f64, drawn.seed = 1 : i64},
    %z: tensor<5xui16> {drawn.low = 0.0 : f64, drawn.high = 8.0 : f64, drawn.seed = 2 : i64},
    %w: tensor<5xui16> {drawn.low = 1.0 : f64, drawn.high = 4.0 : f64, drawn.seed = 3 : i64})
    -> (tensor<4x7xui32>, tensor<5xui16>) {
  %0 = "ttir.remainder"(%x, %y) : (tensor<4x7xui32>, tensor<4x7xui32>) -> tensor<4x7xui32>
  %1 = "ttir.remainder"(%z, %w) : (tensor<5xui16>, tensor<5xui16>) -> tensor<5xui16>
  return %0, %1 : tensor<4x7xui32>, tensor<5xui16>
}
