// RUN: ttcodegen-opt --ttir-erase-inverse %s | filecheck %s
// RUN: ttcodegen-opt --ttir-erase-inverse-ops %s | filecheck %s

// The permutations meet on either side of the op between them, and are gone.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: "ttir.relu"(%x) : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
// CHECK-NEXT: func.return
func.func @f(%x: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32>
  %1 = "ttir.relu"(%0) : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  %2 = "ttir.permute"(%1) <{permutation = array<i64: 0, 2, 3, 1>}> : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
  return %2 : tensor<1x4x4x8xf32>
}
