// An f32 result that is computed in bf16 on the way has the precision of bf16.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.typecast"({{.*}}) : {{.*}} -> tensor<1x12x4x32xbf16
// CHECK: "ttnn.upsample_bilinear"
// CHECK: "ttnn.typecast"({{.*}}) : {{.*}} -> tensor<1x36x12x32xf32
func.func @coarse_floats(
    %x: tensor<1x12x4x1xf32> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 4 : i64})
    -> tensor<1x36x12x1xf32> {
  %0 = "ttir.upsample2d"(%x) <{scale_factor = array<i32: 3, 3>, mode = "bilinear"}>
      : (tensor<1x12x4x1xf32>) -> tensor<1x36x12x1xf32>
  return %0 : tensor<1x36x12x1xf32>
}
