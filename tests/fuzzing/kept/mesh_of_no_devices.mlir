builtin.module {
  func.func @cases_mesh_shard(%cases_mesh_shard_x0: tensor<33x5xf32> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<input>}, %cases_mesh_shard_x1: tensor<1x32x64xbf16> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<input>}) -> (tensor<33x5xf32>, tensor<1x32x64xbf16>) {
    %0 = "ttir.mesh_shard"(%cases_mesh_shard_x0) <{shard_shape = array<i32: 1, 0>}> : (tensor<33x5xf32>) -> tensor<33x5xf32>
    %1 = "ttir.mesh_shard"(%cases_mesh_shard_x1) <{shard_shape = array<i32: 1, 1>}> : (tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
    func.return %0, %1 : tensor<33x5xf32>, tensor<1x32x64xbf16>
  }
}
