// ttnn::repeat_interleave does not take a tensor of rank 1.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.repeat_interleave"(%{{.*}}) <{{{.*}}> : (tensor<1x3xbf16
func.func @repeated_vector(
    %x: tensor<3xbf16> {drawn.low = -2.0 : f64, drawn.high = 2.0 : f64, drawn.seed = 0 : i64})
    -> tensor<21xbf16> {
  %0 = "ttir.repeat_interleave"(%x) <{repeats = 7 : ui32, dim = -1 : si32}>
      : (tensor<3xbf16>) -> tensor<21xbf16>
  return %0 : tensor<21xbf16>
}
