// Each chip of a mesh calls an operation on its part.
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {

func.func @rotations(%x: tensor<96x128xf32>) -> tensor<96x128xf32> {
  %0 = "ttir.mesh_shard"(%x) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<96x128xf32>) -> tensor<96x64xf32>
  %1 = "ttir.exp"(%0) : (tensor<96x64xf32>) -> tensor<96x64xf32>
  %2 = "ttir.tt_lang_op"(%1) <{kernel_id = "rotated", version_tag = "1", arg_roles = "in,out"}> : (tensor<96x64xf32>) -> tensor<96x64xf32>
  %3 = "ttir.mesh_shard"(%2) <{shard_dims = array<i64: -1, 1>, shard_shape = array<i64: 1, 2>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<96x64xf32>) -> tensor<96x128xf32>
  return %3 : tensor<96x128xf32>
}

}
