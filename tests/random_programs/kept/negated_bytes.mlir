// ttnn::logical_not does not take bytes.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK-NOT: "ttnn.logical_not"(%{{.*}}) : (tensor<4x7xui8
// CHECK: "ttnn.logical_not"(%{{.*}}) : (tensor<4x7xui32
func.func @negated_bytes(
    %x: tensor<4x7xui8> {drawn.low = 0.0 : f64, drawn.high = 1.0 : f64, drawn.seed = 0 : i64})
    -> (tensor<4x7xi1>, tensor<4x7xui8>) {
  %0 = "ttir.logical_not"(%x) : (tensor<4x7xui8>) -> tensor<4x7xi1>
  %1 = "ttir.logical_not"(%x) : (tensor<4x7xui8>) -> tensor<4x7xui8>
  return %0, %1 : tensor<4x7xi1>, tensor<4x7xui8>
}
