// Ops between the chips of a mesh: 2x4 chips have 4x8 of 8x32 elements each.
module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x4>]>} {

func.func @gather_along_rows(%a: tensor<8x32xf32>) -> tensor<8x128xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_gather"(%0) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<4x8xf32>) -> tensor<4x32xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x32xf32>) -> tensor<8x128xf32>
  return %2 : tensor<8x128xf32>
}

func.func @gather_along_columns(%a: tensor<8x32xf32>) -> tensor<16x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_gather"(%0) <{all_gather_dim = -2 : si32, cluster_axis = 0 : ui32}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<8x8xf32>) -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}

func.func @sum_along_columns(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 0 : ui32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @sum_of_all(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<sum>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @largest_along_rows(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_reduce"(%0) <{reduce_type = #ttcore.reduce_type<max>, cluster_axis = 1 : ui32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @share_of_the_sum(%a: tensor<8x32xf32>) -> tensor<8x8xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.reduce_scatter"(%0) <{reduce_type = #ttcore.reduce_type<sum>, scatter_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x2xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

func.func @share_of_the_least(%a: tensor<8x32xf32>) -> tensor<4x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.reduce_scatter"(%0) <{reduce_type = #ttcore.reduce_type<min>, scatter_dim = 0 : si32, cluster_axis = 0 : ui32}> : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<2x8xf32>) -> tensor<4x32xf32>
  return %2 : tensor<4x32xf32>
}

func.func @partition(%a: tensor<8x32xf32>) -> tensor<8x8xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.mesh_partition"(%0) <{dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x2xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

func.func @exchange(%a: tensor<8x32xf32>) -> tensor<32x8xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_to_all"(%0) <{split_dim = 1 : si32, concat_dim = 0 : si32, split_count = 4 : si32, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}> : (tensor<4x8xf32>) -> tensor<16x2xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<16x2xf32>) -> tensor<32x8xf32>
  return %2 : tensor<32x8xf32>
}

func.func @exchange_within_a_dimension(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_to_all"(%0) <{split_dim = 1 : si32, concat_dim = 1 : si32, split_count = 4 : si32, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @broadcast(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.collective_broadcast"(%0) <{replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @permutation(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.collective_permute"(%0) <{source_target_pairs = dense<[[0, 5], [5, 0], [3, 7]]> : tensor<3x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @sum_along_columns_async(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.all_reduce_async"(%0) <{reduce_type = #ttcore.reduce_type<sum>, cluster_axis = 0 : ui32}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @distributed_rms_norm(%a: tensor<8x32xf32>, %w: tensor<8xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.distributed_rms_norm"(%0, %w) <{cluster_axis = 1 : ui32, epsilon = 0.01 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}

func.func @distributed_layer_norm(%a: tensor<8x32xf32>, %w: tensor<8xf32>) -> tensor<8x32xf32> {
  %0 = "ttir.mesh_shard"(%a) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<full_to_shard>}> : (tensor<8x32xf32>) -> tensor<4x8xf32>
  %1 = "ttir.distributed_layer_norm"(%0, %w, %w) <{cluster_axis = 1 : ui32, epsilon = 0.01 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = "ttir.mesh_shard"(%1) <{shard_dims = array<i64: 0, 1>, shard_shape = array<i64: 2, 4>, shard_type = #ttcore.shard_type<devices>, shard_direction = #ttcore.shard_direction<shard_to_full>}> : (tensor<4x8xf32>) -> tensor<8x32xf32>
  return %2 : tensor<8x32xf32>
}
}
