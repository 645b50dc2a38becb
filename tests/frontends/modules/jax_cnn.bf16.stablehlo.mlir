module @jit_called attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.BatchNorm_0.mean"}, %arg1: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.BatchNorm_0.var"}, %arg2: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.BatchNorm_1.mean"}, %arg3: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.BatchNorm_1.var"}, %arg4: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "BatchNorm_0.bias"}, %arg5: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "BatchNorm_0.scale"}, %arg6: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "BatchNorm_1.bias"}, %arg7: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "BatchNorm_1.scale"}, %arg8: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Conv_0.bias"}, %arg9: tensor<3x3x3x8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Conv_0.kernel"}, %arg10: tensor<3x3x8x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Conv_1.kernel"}, %arg11: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.bias"}, %arg12: tensor<16x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.kernel"}, %arg13: tensor<1x32x32x3xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "arg0"}) -> (tensor<1x10xbf16> {ttir.name = "output"}) {
    %0 = stablehlo.convolution(%arg13, %arg9) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x32x32x3xbf16>, tensor<3x3x3x8xbf16>) -> tensor<1x32x32x8xbf16>
    %1 = stablehlo.reshape %arg8 : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<1x32x32x8xbf16>
    %3 = stablehlo.add %0, %2 : tensor<1x32x32x8xbf16>
    %4 = stablehlo.broadcast_in_dim %arg0, dims = [3] : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %6 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<1x32x32x8xbf16>
    %7 = stablehlo.subtract %3, %6 : tensor<1x32x32x8xbf16>
    %cst = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x1x1x8xbf16>
    %9 = stablehlo.add %5, %8 : tensor<1x1x1x8xbf16>
    %10 = stablehlo.rsqrt %9 : tensor<1x1x1x8xbf16>
    %11 = stablehlo.reshape %arg5 : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %12 = stablehlo.multiply %10, %11 : tensor<1x1x1x8xbf16>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<1x32x32x8xbf16>
    %14 = stablehlo.multiply %7, %13 : tensor<1x32x32x8xbf16>
    %15 = stablehlo.reshape %arg4 : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<1x1x1x8xbf16>) -> tensor<1x32x32x8xbf16>
    %17 = stablehlo.add %14, %16 : tensor<1x32x32x8xbf16>
    %18 = call @relu(%17) : (tensor<1x32x32x8xbf16>) -> tensor<1x32x32x8xbf16>
    %cst_0 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %19 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<bf16>
    %20 = "stablehlo.reduce_window"(%18, %19) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg14: tensor<bf16>, %arg15: tensor<bf16>):
      %45 = stablehlo.maximum %arg14, %arg15 : tensor<bf16>
      stablehlo.return %45 : tensor<bf16>
    }) : (tensor<1x32x32x8xbf16>, tensor<bf16>) -> tensor<1x16x16x8xbf16>
    %21 = stablehlo.convolution(%20, %arg10) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x8xbf16>, tensor<3x3x8x16xbf16>) -> tensor<1x8x8x16xbf16>
    %22 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %23 = stablehlo.broadcast_in_dim %arg3, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %24 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x8x8x16xbf16>
    %25 = stablehlo.subtract %21, %24 : tensor<1x8x8x16xbf16>
    %cst_1 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %26 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %27 = stablehlo.add %23, %26 : tensor<1x1x1x16xbf16>
    %28 = stablehlo.rsqrt %27 : tensor<1x1x1x16xbf16>
    %29 = stablehlo.reshape %arg7 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %30 = stablehlo.multiply %28, %29 : tensor<1x1x1x16xbf16>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x8x8x16xbf16>
    %32 = stablehlo.multiply %25, %31 : tensor<1x8x8x16xbf16>
    %33 = stablehlo.reshape %arg6 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x8x8x16xbf16>
    %35 = stablehlo.add %32, %34 : tensor<1x8x8x16xbf16>
    %36 = call @relu_0(%35) : (tensor<1x8x8x16xbf16>) -> tensor<1x8x8x16xbf16>
    %37 = stablehlo.convert %36 : (tensor<1x8x8x16xbf16>) -> tensor<1x8x8x16xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_2) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x8x8x16xf32>, tensor<f32>) -> tensor<1x16xf32>
    %cst_3 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %40 = stablehlo.divide %38, %39 : tensor<1x16xf32>
    %41 = stablehlo.convert %40 : (tensor<1x16xf32>) -> tensor<1x16xbf16>
    %42 = stablehlo.dot_general %41, %arg12, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x16xbf16>, tensor<16x10xbf16>) -> tensor<1x10xbf16>
    %43 = stablehlo.reshape %arg11 : (tensor<10xbf16>) -> tensor<1x10xbf16>
    %44 = stablehlo.add %42, %43 : tensor<1x10xbf16>
    return %44 : tensor<1x10xbf16>
  }
  func.func private @relu(%arg0: tensor<1x32x32x8xbf16>) -> tensor<1x32x32x8xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x32x32x8xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x32x32x8xbf16>
    return %1 : tensor<1x32x32x8xbf16>
  }
  func.func private @relu_0(%arg0: tensor<1x8x8x16xbf16>) -> tensor<1x8x8x16xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x8x8x16xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x8x8x16xbf16>
    return %1 : tensor<1x8x8x16xbf16>
  }
}
