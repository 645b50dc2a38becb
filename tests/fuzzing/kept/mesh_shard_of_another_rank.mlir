builtin.module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  func.func @scaled(%x: tensor<16x64xf32>, %scale: tensor<1x1xf32>) -> tensor<16x64xf32> {
    %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<16x64xf32>) -> tensor<32xf32>
    %1 = "ttir.multiply"(%0, %scale) : (tensor<32xf32>, tensor<1x1xf32>) -> tensor<16x32xf32>
    %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<16x32xf32>) -> tensor<16x64xf32>
    func.return %2 : tensor<16x64xf32>
  }
}
