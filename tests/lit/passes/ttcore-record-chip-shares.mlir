// RUN: ttcodegen-opt --ttcore-record-chip-shares %s | filecheck %s

// Arguments say the axes of the mesh that their dimensions are divided along, as do results.
// CHECK-LABEL: func.func @scaled
// CHECK-SAME: %x: tensor<16x64xf32> {ttcodegen.share = [array<i64>, array<i64: 1>]}
// CHECK-SAME: %scale: tensor<1x1xf32> {ttcodegen.share = [array<i64>, array<i64>]}
// CHECK-SAME: -> (tensor<16x64xf32> {ttcodegen.share = [array<i64>, array<i64: 1>]})
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  func.func @scaled(%x: tensor<16x64xf32>, %scale: tensor<1x1xf32>) -> tensor<16x64xf32> {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<16x64xf32>) -> tensor<16x32xf32>
    %1 = "ttir.multiply"(%0, %scale) : (tensor<16x32xf32>, tensor<1x1xf32>) -> tensor<16x32xf32>
    %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<16x32xf32>) -> tensor<16x64xf32>
    return %2 : tensor<16x64xf32>
  }
}
