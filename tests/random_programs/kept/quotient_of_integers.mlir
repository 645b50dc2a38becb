// ttnn divides int32 exactly in rounding mode trunc; integers of 16 bits are converted to int32.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.div_trunc"(%{{.*}}) : (tensor<64x32xsi32
// CHECK: "ttnn.div_trunc"(%{{.*}}) : (tensor<5xsi32
func.func @quotient_of_integers(
    %x: tensor<64x32xi32> {drawn.low = -8.0 : f64, drawn.high = 8.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<64x32xi32> {drawn.low = 1.0 : f64, drawn.high = 4.0 : f64, drawn.seed = 1 : i64},
    %z: tensor<5xui16> {drawn.low = 0.0 : f64, drawn.high = 8.0 : f64, drawn.seed = 2 : i64},
    %w: tensor<5xui16> {drawn.low = 1.0 : f64, drawn.high = 4.0 : f64, drawn.seed = 3 : i64})
    -> (tensor<64x32xi32>, tensor<5xui16>) {
  %0 = "ttir.div"(%x, %y) : (tensor<64x32xi32>, tensor<64x32xi32>) -> tensor<64x32xi32>
  %1 = "ttir.div"(%z, %w) : (tensor<5xui16>, tensor<5xui16>) -> tensor<5xui16>
  return %0, %1 : tensor<64x32xi32>, tensor<5xui16>
}
