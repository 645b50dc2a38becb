// RUN: ttcodegen-opt --symbol-dce %s | filecheck %s

// CHECK-NOT: @unused
// CHECK: func.func private @inner
// CHECK: func.func private @outer
// CHECK-NOT: @unused
// CHECK: func.func @f
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @unused_too(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @unused_too(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
