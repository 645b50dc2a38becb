// RUN: ttcodegen-opt --ttir-fusing %s | filecheck %s

// CHECK-LABEL: func.func @linear
// CHECK: "ttir.linear"(%x, %w, %b)
// CHECK-NOT: ttir.add
func.func @linear(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = "ttir.add"(%0, %b) : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
