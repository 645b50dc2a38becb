// RUN: ttcodegen-opt --convert-ttir-to-ttnn %s | filecheck %s
// RUN: ttcodegen-opt --ttir-layout --convert-ttir-to-ttnn %s | filecheck %s --check-prefix=PLACED

// CHECK-LABEL: func.func @f
// CHECK: "ttnn.matmul"(%x, %w) : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>

// PLACED-LABEL: func.func @f
// PLACED-NOT: layouts_wanted
// PLACED: "ttnn.matmul"(%{{.*}}, %{{.*}}) : {{.*}} -> tensor<64x96xf32, #ttnn_layout
func.func @f(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>) -> tensor<64x96xf32> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
