// RUN: ttcodegen-opt --ttir-choose-shardings=parallel=data=0,tensor=1 %s | filecheck %s

// Columns of the first weight and rows of the second one.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %x: tensor<16x64xf32> {{{.*}}ttcore.sharding = [array<i64: 0>, array<i64>]}
// CHECK-SAME: %up: tensor<64x128xf32> {{{.*}}ttcore.sharding = [array<i64>, array<i64: 1>]}
// CHECK-SAME: %down: tensor<128x64xf32> {{{.*}}ttcore.sharding = [array<i64: 1>, array<i64>]}
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  func.func @layer(%x: tensor<16x64xf32>, %up: tensor<64x128xf32>, %down: tensor<128x64xf32>) -> tensor<16x64xf32> {
    %0 = "ttir.matmul"(%x, %up) : (tensor<16x64xf32>, tensor<64x128xf32>) -> tensor<16x128xf32>
    %1 = "ttir.relu"(%0) : (tensor<16x128xf32>) -> tensor<16x128xf32>
    %2 = "ttir.matmul"(%1, %down) : (tensor<16x128xf32>, tensor<128x64xf32>) -> tensor<16x64xf32>
    return %2 : tensor<16x64xf32>
  }
}
