// RUN: ttcodegen-opt --ttir-implicit-broadcast-fold %s | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: ttir.broadcast
// CHECK: "ttir.add"(%x, %b)
func.func @f(%x: tensor<4x8xf32>, %b: tensor<1x8xf32>) -> tensor<4x8xf32> {
  %0 = "ttir.broadcast"(%b) <{broadcast_dimensions = array<i64: 4, 1>}> : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %1 = "ttir.add"(%x, %0) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
