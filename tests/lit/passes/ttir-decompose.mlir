// RUN: ttcodegen-opt --ttir-decompose %s | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttir-decomposition %s | filecheck %s

// CHECK-LABEL: func.func @dot
// CHECK-NOT: ttir.dot_general
// CHECK: "ttir.matmul"
func.func @dot(%a: tensor<4x8xf32>, %b: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %0 = "ttir.dot_general"(%a, %b) <{batch_dims_lhs = array<i64>, batch_dims_rhs = array<i64>, contract_dims_lhs = array<i64: 1>, contract_dims_rhs = array<i64: 0>}> : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
