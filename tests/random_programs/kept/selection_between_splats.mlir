// A select between two splats needs a full tensor if its condition is broadcast to the result.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.full"() <{shape = array<i32: 2, 3, 4>
func.func @selection_between_splats(
    %x: tensor<1xi1> {drawn.low = 0.0 : f64, drawn.high = 1.0 : f64, drawn.seed = 0 : i64},
    %y: tensor<4xf32> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 1 : i64})
    -> (tensor<2x3x4xbf16>, tensor<3x4xf32>) {
  %0 = "ttir.zeros"() <{shape = array<i32: 2, 3, 4>}> : () -> tensor<2x3x4xbf16>
  %1 = "ttir.ones"() <{shape = array<i32: 4>}> : () -> tensor<4xbf16>
  %2 = "ttir.where"(%x, %0, %1)
      : (tensor<1xi1>, tensor<2x3x4xbf16>, tensor<4xbf16>) -> tensor<2x3x4xbf16>
  %3 = "ttir.full"() <{shape = array<i32: 3, 4>, fill_value = 0.5 : f32}> : () -> tensor<3x4xf32>
  %4 = "ttir.where"(%x, %y, %3)
      : (tensor<1xi1>, tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2, %4 : tensor<2x3x4xbf16>, tensor<3x4xf32>
}
