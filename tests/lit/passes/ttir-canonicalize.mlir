// RUN: ttcodegen-opt --ttir-canonicalize %s | filecheck %s
// RUN: ttcodegen-opt --canonicalize %s | filecheck %s

// Two permutations that undo each other are none; equal ops are one.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[E:.*]] = "ttir.exp"(%x)
// CHECK-NEXT: "ttir.multiply"(%[[E]], %[[E]])
// CHECK-NEXT: func.return
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "ttir.permute"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = "ttir.exp"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "ttir.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "ttir.multiply"(%2, %3) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}
