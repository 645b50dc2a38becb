// RUN: ttcodegen-opt --convert-linalg-to-ttir %s | filecheck %s

// CHECK-LABEL: func.func @sum
// CHECK: "ttir.add"
// CHECK-NOT: linalg
func.func @sum(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.add ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
