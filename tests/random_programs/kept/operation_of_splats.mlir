// If both operands of an op are splats, one of them must have the shape of the result.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: "ttnn.full"() <{shape = array<i32: 3, 4>
func.func @operation_of_splats() -> tensor<3x4xui32> {
  %0 = "ttir.ones"() <{shape = array<i32: 3, 4>}> : () -> tensor<3x4xui32>
  %1 = "ttir.logical_left_shift"(%0, %0)
      : (tensor<3x4xui32>, tensor<3x4xui32>) -> tensor<3x4xui32>
  return %1 : tensor<3x4xui32>
}
