// RUN: ttcodegen-opt --ttir-element-type-normalization %s | filecheck %s

// The types of the source are kept as an attribute.
// CHECK-LABEL: func.func @f(%x: tensor<4xsi32>, %m: tensor<4xbf16>) -> tensor<4xf32>
// CHECK-SAME: ttcodegen.source_types = (tensor<4xi64>, tensor<4xi1>) -> tensor<4xf64>
// CHECK: dense<[1, -2, 3, 2147483647]> : tensor<4xsi32>
func.func @f(%x: tensor<4xi64>, %m: tensor<4xi1>) -> tensor<4xf64> {
  %c = "ttir.constant"() <{value = dense<[1, -2, 3, 9223372036854775807]> : tensor<4xi64>}> : () -> tensor<4xi64>
  %0 = "ttir.where"(%m, %x, %c) : (tensor<4xi1>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %1 = "ttir.typecast"(%0) : (tensor<4xi64>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}
