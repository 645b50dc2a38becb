// RUN: ttcodegen-opt --inline %s | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NEXT: "ttir.relu"
// CHECK-NEXT: func.return
// CHECK-NOT: func.func
func.func private @layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "ttir.relu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
