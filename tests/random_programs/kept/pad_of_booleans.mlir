// Any nonzero pad value of a boolean tensor is true, and becomes 1.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.pad_row_major"(%{{.*}}) <{{{.*}}value = 1.000000e+00 : f32
func.func @pad_of_booleans(
    %x: tensor<4x5xi1> {drawn.low = 0.0 : f64, drawn.high = 1.0 : f64, drawn.seed = 0 : i64})
    -> tensor<6x8xi1> {
  %0 = "ttir.pad"(%x) <{padding = array<i32: 1, 1, 0, 3>, value = 3.0 : f32}>
    : (tensor<4x5xi1>) -> tensor<6x8xi1>
  return %0 : tensor<6x8xi1>
}
