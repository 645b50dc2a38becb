// RUN: ttcodegen-opt --ttir-partition %s | filecheck %s

// Each chip multiplies its part of the inner dimension; the chips of a row add up.
// CHECK-LABEL: func.func @product
// CHECK-SAME: tensor<16x64xf32>
// CHECK-NOT: ttcore.sharding
// CHECK: "ttir.mesh_shard"(%x)
// CHECK-SAME: (tensor<16x64xf32>) -> tensor<8x16xf32>
// CHECK: "ttir.mesh_shard"(%w)
// CHECK-SAME: (tensor<64x32xf32>) -> tensor<16x32xf32>
// CHECK: "ttir.matmul"
// CHECK-SAME: (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
// CHECK: "ttir.all_reduce"
// CHECK-SAME: cluster_axis = 1
// CHECK: "ttir.mesh_shard"
// CHECK-SAME: (tensor<8x32xf32>) -> tensor<16x32xf32>
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {
  func.func @product(%x: tensor<16x64xf32> {ttcore.sharding = [array<i64: 0>, array<i64: 1>]}, %w: tensor<64x32xf32> {ttcore.sharding = [array<i64: 1>, array<i64>]}) -> tensor<16x32xf32> {
    %0 = "ttir.matmul"(%x, %w) : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
}
