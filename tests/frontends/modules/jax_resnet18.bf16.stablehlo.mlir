module @jit_called attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_0.BatchNorm_0.mean"}, %arg1: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_0.BatchNorm_0.var"}, %arg2: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_0.BatchNorm_1.mean"}, %arg3: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_0.BatchNorm_1.var"}, %arg4: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_1.BatchNorm_0.mean"}, %arg5: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_1.BatchNorm_0.var"}, %arg6: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_1.BatchNorm_1.mean"}, %arg7: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_1.BatchNorm_1.var"}, %arg8: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.BatchNorm_0.mean"}, %arg9: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.BatchNorm_0.var"}, %arg10: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.BatchNorm_1.mean"}, %arg11: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.BatchNorm_1.var"}, %arg12: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.norm_proj.mean"}, %arg13: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_2.norm_proj.var"}, %arg14: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_3.BatchNorm_0.mean"}, %arg15: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_3.BatchNorm_0.var"}, %arg16: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_3.BatchNorm_1.mean"}, %arg17: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_3.BatchNorm_1.var"}, %arg18: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.BatchNorm_0.mean"}, %arg19: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.BatchNorm_0.var"}, %arg20: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.BatchNorm_1.mean"}, %arg21: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.BatchNorm_1.var"}, %arg22: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.norm_proj.mean"}, %arg23: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_4.norm_proj.var"}, %arg24: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_5.BatchNorm_0.mean"}, %arg25: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_5.BatchNorm_0.var"}, %arg26: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_5.BatchNorm_1.mean"}, %arg27: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_5.BatchNorm_1.var"}, %arg28: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.BatchNorm_0.mean"}, %arg29: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.BatchNorm_0.var"}, %arg30: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.BatchNorm_1.mean"}, %arg31: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.BatchNorm_1.var"}, %arg32: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.norm_proj.mean"}, %arg33: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_6.norm_proj.var"}, %arg34: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_7.BatchNorm_0.mean"}, %arg35: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_7.BatchNorm_0.var"}, %arg36: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_7.BatchNorm_1.mean"}, %arg37: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.ResidualBlock_7.BatchNorm_1.var"}, %arg38: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.bn_init.mean"}, %arg39: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "batch_stats.bn_init.var"}, %arg40: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.bias"}, %arg41: tensor<128x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.kernel"}, %arg42: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.BatchNorm_0.bias"}, %arg43: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.BatchNorm_0.scale"}, %arg44: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.BatchNorm_1.bias"}, %arg45: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.BatchNorm_1.scale"}, %arg46: tensor<3x3x16x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.Conv_0.kernel"}, %arg47: tensor<3x3x16x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_0.Conv_1.kernel"}, %arg48: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.BatchNorm_0.bias"}, %arg49: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.BatchNorm_0.scale"}, %arg50: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.BatchNorm_1.bias"}, %arg51: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.BatchNorm_1.scale"}, %arg52: tensor<3x3x16x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.Conv_0.kernel"}, %arg53: tensor<3x3x16x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_1.Conv_1.kernel"}, %arg54: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.BatchNorm_0.bias"}, %arg55: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.BatchNorm_0.scale"}, %arg56: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.BatchNorm_1.bias"}, %arg57: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.BatchNorm_1.scale"}, %arg58: tensor<3x3x16x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.Conv_0.kernel"}, %arg59: tensor<3x3x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.Conv_1.kernel"}, %arg60: tensor<1x1x16x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.conv_proj.kernel"}, %arg61: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.norm_proj.bias"}, %arg62: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_2.norm_proj.scale"}, %arg63: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.BatchNorm_0.bias"}, %arg64: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.BatchNorm_0.scale"}, %arg65: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.BatchNorm_1.bias"}, %arg66: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.BatchNorm_1.scale"}, %arg67: tensor<3x3x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.Conv_0.kernel"}, %arg68: tensor<3x3x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_3.Conv_1.kernel"}, %arg69: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.BatchNorm_0.bias"}, %arg70: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.BatchNorm_0.scale"}, %arg71: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.BatchNorm_1.bias"}, %arg72: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.BatchNorm_1.scale"}, %arg73: tensor<3x3x32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.Conv_0.kernel"}, %arg74: tensor<3x3x64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.Conv_1.kernel"}, %arg75: tensor<1x1x32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.conv_proj.kernel"}, %arg76: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.norm_proj.bias"}, %arg77: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_4.norm_proj.scale"}, %arg78: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.BatchNorm_0.bias"}, %arg79: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.BatchNorm_0.scale"}, %arg80: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.BatchNorm_1.bias"}, %arg81: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.BatchNorm_1.scale"}, %arg82: tensor<3x3x64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.Conv_0.kernel"}, %arg83: tensor<3x3x64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_5.Conv_1.kernel"}, %arg84: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.BatchNorm_0.bias"}, %arg85: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.BatchNorm_0.scale"}, %arg86: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.BatchNorm_1.bias"}, %arg87: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.BatchNorm_1.scale"}, %arg88: tensor<3x3x64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.Conv_0.kernel"}, %arg89: tensor<3x3x128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.Conv_1.kernel"}, %arg90: tensor<1x1x64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.conv_proj.kernel"}, %arg91: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.norm_proj.bias"}, %arg92: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_6.norm_proj.scale"}, %arg93: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.BatchNorm_0.bias"}, %arg94: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.BatchNorm_0.scale"}, %arg95: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.BatchNorm_1.bias"}, %arg96: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.BatchNorm_1.scale"}, %arg97: tensor<3x3x128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.Conv_0.kernel"}, %arg98: tensor<3x3x128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "ResidualBlock_7.Conv_1.kernel"}, %arg99: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "bn_init.bias"}, %arg100: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "bn_init.scale"}, %arg101: tensor<7x7x3x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv_init.kernel"}, %arg102: tensor<1x64x64x3xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "arg0"}) -> (tensor<1x10xbf16> {ttir.name = "output"}) {
    %0 = stablehlo.convolution(%arg102, %arg101) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[3, 3], [3, 3]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x64x64x3xbf16>, tensor<7x7x3x16xbf16>) -> tensor<1x32x32x16xbf16>
    %1 = stablehlo.broadcast_in_dim %arg38, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %2 = stablehlo.broadcast_in_dim %arg39, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x32x32x16xbf16>
    %4 = stablehlo.subtract %0, %3 : tensor<1x32x32x16xbf16>
    %cst = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %6 = stablehlo.add %2, %5 : tensor<1x1x1x16xbf16>
    %7 = stablehlo.rsqrt %6 : tensor<1x1x1x16xbf16>
    %8 = stablehlo.reshape %arg100 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %9 = stablehlo.multiply %7, %8 : tensor<1x1x1x16xbf16>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x32x32x16xbf16>
    %11 = stablehlo.multiply %4, %10 : tensor<1x32x32x16xbf16>
    %12 = stablehlo.reshape %arg99 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x32x32x16xbf16>
    %14 = stablehlo.add %11, %13 : tensor<1x32x32x16xbf16>
    %15 = call @relu(%14) : (tensor<1x32x32x16xbf16>) -> tensor<1x32x32x16xbf16>
    %cst_0 = stablehlo.constant dense<0xFF80> : tensor<bf16>
    %16 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<bf16>
    %17 = "stablehlo.reduce_window"(%15, %16) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg103: tensor<bf16>, %arg104: tensor<bf16>):
      %335 = stablehlo.maximum %arg103, %arg104 : tensor<bf16>
      stablehlo.return %335 : tensor<bf16>
    }) : (tensor<1x32x32x16xbf16>, tensor<bf16>) -> tensor<1x16x16x16xbf16>
    %18 = stablehlo.convolution(%17, %arg46) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<3x3x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %19 = stablehlo.broadcast_in_dim %arg0, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %20 = stablehlo.broadcast_in_dim %arg1, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %21 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %22 = stablehlo.subtract %18, %21 : tensor<1x16x16x16xbf16>
    %cst_1 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %23 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %24 = stablehlo.add %20, %23 : tensor<1x1x1x16xbf16>
    %25 = stablehlo.rsqrt %24 : tensor<1x1x1x16xbf16>
    %26 = stablehlo.reshape %arg43 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %27 = stablehlo.multiply %25, %26 : tensor<1x1x1x16xbf16>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %29 = stablehlo.multiply %22, %28 : tensor<1x16x16x16xbf16>
    %30 = stablehlo.reshape %arg42 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %32 = stablehlo.add %29, %31 : tensor<1x16x16x16xbf16>
    %33 = call @relu_0(%32) : (tensor<1x16x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %34 = stablehlo.convolution(%33, %arg47) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<3x3x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %35 = stablehlo.broadcast_in_dim %arg2, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %36 = stablehlo.broadcast_in_dim %arg3, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %37 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %38 = stablehlo.subtract %34, %37 : tensor<1x16x16x16xbf16>
    %cst_2 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %39 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %40 = stablehlo.add %36, %39 : tensor<1x1x1x16xbf16>
    %41 = stablehlo.rsqrt %40 : tensor<1x1x1x16xbf16>
    %42 = stablehlo.reshape %arg45 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %43 = stablehlo.multiply %41, %42 : tensor<1x1x1x16xbf16>
    %44 = stablehlo.broadcast_in_dim %43, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %45 = stablehlo.multiply %38, %44 : tensor<1x16x16x16xbf16>
    %46 = stablehlo.reshape %arg44 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %48 = stablehlo.add %45, %47 : tensor<1x16x16x16xbf16>
    %49 = stablehlo.add %17, %48 : tensor<1x16x16x16xbf16>
    %50 = call @relu_0(%49) : (tensor<1x16x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %51 = stablehlo.convolution(%50, %arg52) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<3x3x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %52 = stablehlo.broadcast_in_dim %arg4, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %53 = stablehlo.broadcast_in_dim %arg5, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %54 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %55 = stablehlo.subtract %51, %54 : tensor<1x16x16x16xbf16>
    %cst_3 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %56 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %57 = stablehlo.add %53, %56 : tensor<1x1x1x16xbf16>
    %58 = stablehlo.rsqrt %57 : tensor<1x1x1x16xbf16>
    %59 = stablehlo.reshape %arg49 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %60 = stablehlo.multiply %58, %59 : tensor<1x1x1x16xbf16>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %62 = stablehlo.multiply %55, %61 : tensor<1x16x16x16xbf16>
    %63 = stablehlo.reshape %arg48 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %65 = stablehlo.add %62, %64 : tensor<1x16x16x16xbf16>
    %66 = call @relu_0(%65) : (tensor<1x16x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %67 = stablehlo.convolution(%66, %arg53) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<3x3x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %68 = stablehlo.broadcast_in_dim %arg6, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %69 = stablehlo.broadcast_in_dim %arg7, dims = [3] : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %70 = stablehlo.broadcast_in_dim %68, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %71 = stablehlo.subtract %67, %70 : tensor<1x16x16x16xbf16>
    %cst_4 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %72 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<bf16>) -> tensor<1x1x1x16xbf16>
    %73 = stablehlo.add %69, %72 : tensor<1x1x1x16xbf16>
    %74 = stablehlo.rsqrt %73 : tensor<1x1x1x16xbf16>
    %75 = stablehlo.reshape %arg51 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %76 = stablehlo.multiply %74, %75 : tensor<1x1x1x16xbf16>
    %77 = stablehlo.broadcast_in_dim %76, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %78 = stablehlo.multiply %71, %77 : tensor<1x16x16x16xbf16>
    %79 = stablehlo.reshape %arg50 : (tensor<16xbf16>) -> tensor<1x1x1x16xbf16>
    %80 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 2, 3] : (tensor<1x1x1x16xbf16>) -> tensor<1x16x16x16xbf16>
    %81 = stablehlo.add %78, %80 : tensor<1x16x16x16xbf16>
    %82 = stablehlo.add %50, %81 : tensor<1x16x16x16xbf16>
    %83 = call @relu_0(%82) : (tensor<1x16x16x16xbf16>) -> tensor<1x16x16x16xbf16>
    %84 = stablehlo.convolution(%83, %arg58) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<3x3x16x32xbf16>) -> tensor<1x8x8x32xbf16>
    %85 = stablehlo.broadcast_in_dim %arg8, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %86 = stablehlo.broadcast_in_dim %arg9, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %87 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %88 = stablehlo.subtract %84, %87 : tensor<1x8x8x32xbf16>
    %cst_5 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %89 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<bf16>) -> tensor<1x1x1x32xbf16>
    %90 = stablehlo.add %86, %89 : tensor<1x1x1x32xbf16>
    %91 = stablehlo.rsqrt %90 : tensor<1x1x1x32xbf16>
    %92 = stablehlo.reshape %arg55 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %93 = stablehlo.multiply %91, %92 : tensor<1x1x1x32xbf16>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %95 = stablehlo.multiply %88, %94 : tensor<1x8x8x32xbf16>
    %96 = stablehlo.reshape %arg54 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %97 = stablehlo.broadcast_in_dim %96, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %98 = stablehlo.add %95, %97 : tensor<1x8x8x32xbf16>
    %99 = call @relu_1(%98) : (tensor<1x8x8x32xbf16>) -> tensor<1x8x8x32xbf16>
    %100 = stablehlo.convolution(%99, %arg59) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x32xbf16>, tensor<3x3x32x32xbf16>) -> tensor<1x8x8x32xbf16>
    %101 = stablehlo.broadcast_in_dim %arg10, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %102 = stablehlo.broadcast_in_dim %arg11, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %103 = stablehlo.broadcast_in_dim %101, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %104 = stablehlo.subtract %100, %103 : tensor<1x8x8x32xbf16>
    %cst_6 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %105 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<bf16>) -> tensor<1x1x1x32xbf16>
    %106 = stablehlo.add %102, %105 : tensor<1x1x1x32xbf16>
    %107 = stablehlo.rsqrt %106 : tensor<1x1x1x32xbf16>
    %108 = stablehlo.reshape %arg57 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %109 = stablehlo.multiply %107, %108 : tensor<1x1x1x32xbf16>
    %110 = stablehlo.broadcast_in_dim %109, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %111 = stablehlo.multiply %104, %110 : tensor<1x8x8x32xbf16>
    %112 = stablehlo.reshape %arg56 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %114 = stablehlo.add %111, %113 : tensor<1x8x8x32xbf16>
    %115 = stablehlo.convolution(%83, %arg60) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x16x16x16xbf16>, tensor<1x1x16x32xbf16>) -> tensor<1x8x8x32xbf16>
    %116 = stablehlo.broadcast_in_dim %arg12, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %117 = stablehlo.broadcast_in_dim %arg13, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %118 = stablehlo.broadcast_in_dim %116, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %119 = stablehlo.subtract %115, %118 : tensor<1x8x8x32xbf16>
    %cst_7 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %120 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<1x1x1x32xbf16>
    %121 = stablehlo.add %117, %120 : tensor<1x1x1x32xbf16>
    %122 = stablehlo.rsqrt %121 : tensor<1x1x1x32xbf16>
    %123 = stablehlo.reshape %arg62 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %124 = stablehlo.multiply %122, %123 : tensor<1x1x1x32xbf16>
    %125 = stablehlo.broadcast_in_dim %124, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %126 = stablehlo.multiply %119, %125 : tensor<1x8x8x32xbf16>
    %127 = stablehlo.reshape %arg61 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %128 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %129 = stablehlo.add %126, %128 : tensor<1x8x8x32xbf16>
    %130 = stablehlo.add %129, %114 : tensor<1x8x8x32xbf16>
    %131 = call @relu_1(%130) : (tensor<1x8x8x32xbf16>) -> tensor<1x8x8x32xbf16>
    %132 = stablehlo.convolution(%131, %arg67) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x32xbf16>, tensor<3x3x32x32xbf16>) -> tensor<1x8x8x32xbf16>
    %133 = stablehlo.broadcast_in_dim %arg14, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %134 = stablehlo.broadcast_in_dim %arg15, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %135 = stablehlo.broadcast_in_dim %133, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %136 = stablehlo.subtract %132, %135 : tensor<1x8x8x32xbf16>
    %cst_8 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %137 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<bf16>) -> tensor<1x1x1x32xbf16>
    %138 = stablehlo.add %134, %137 : tensor<1x1x1x32xbf16>
    %139 = stablehlo.rsqrt %138 : tensor<1x1x1x32xbf16>
    %140 = stablehlo.reshape %arg64 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %141 = stablehlo.multiply %139, %140 : tensor<1x1x1x32xbf16>
    %142 = stablehlo.broadcast_in_dim %141, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %143 = stablehlo.multiply %136, %142 : tensor<1x8x8x32xbf16>
    %144 = stablehlo.reshape %arg63 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %146 = stablehlo.add %143, %145 : tensor<1x8x8x32xbf16>
    %147 = call @relu_1(%146) : (tensor<1x8x8x32xbf16>) -> tensor<1x8x8x32xbf16>
    %148 = stablehlo.convolution(%147, %arg68) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x32xbf16>, tensor<3x3x32x32xbf16>) -> tensor<1x8x8x32xbf16>
    %149 = stablehlo.broadcast_in_dim %arg16, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %150 = stablehlo.broadcast_in_dim %arg17, dims = [3] : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %151 = stablehlo.broadcast_in_dim %149, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %152 = stablehlo.subtract %148, %151 : tensor<1x8x8x32xbf16>
    %cst_9 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %153 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<1x1x1x32xbf16>
    %154 = stablehlo.add %150, %153 : tensor<1x1x1x32xbf16>
    %155 = stablehlo.rsqrt %154 : tensor<1x1x1x32xbf16>
    %156 = stablehlo.reshape %arg66 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %157 = stablehlo.multiply %155, %156 : tensor<1x1x1x32xbf16>
    %158 = stablehlo.broadcast_in_dim %157, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %159 = stablehlo.multiply %152, %158 : tensor<1x8x8x32xbf16>
    %160 = stablehlo.reshape %arg65 : (tensor<32xbf16>) -> tensor<1x1x1x32xbf16>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xbf16>) -> tensor<1x8x8x32xbf16>
    %162 = stablehlo.add %159, %161 : tensor<1x8x8x32xbf16>
    %163 = stablehlo.add %131, %162 : tensor<1x8x8x32xbf16>
    %164 = call @relu_1(%163) : (tensor<1x8x8x32xbf16>) -> tensor<1x8x8x32xbf16>
    %165 = stablehlo.convolution(%164, %arg73) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x32xbf16>, tensor<3x3x32x64xbf16>) -> tensor<1x4x4x64xbf16>
    %166 = stablehlo.broadcast_in_dim %arg18, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %167 = stablehlo.broadcast_in_dim %arg19, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %168 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %169 = stablehlo.subtract %165, %168 : tensor<1x4x4x64xbf16>
    %cst_10 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %170 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<bf16>) -> tensor<1x1x1x64xbf16>
    %171 = stablehlo.add %167, %170 : tensor<1x1x1x64xbf16>
    %172 = stablehlo.rsqrt %171 : tensor<1x1x1x64xbf16>
    %173 = stablehlo.reshape %arg70 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %174 = stablehlo.multiply %172, %173 : tensor<1x1x1x64xbf16>
    %175 = stablehlo.broadcast_in_dim %174, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %176 = stablehlo.multiply %169, %175 : tensor<1x4x4x64xbf16>
    %177 = stablehlo.reshape %arg69 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %178 = stablehlo.broadcast_in_dim %177, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %179 = stablehlo.add %176, %178 : tensor<1x4x4x64xbf16>
    %180 = call @relu_2(%179) : (tensor<1x4x4x64xbf16>) -> tensor<1x4x4x64xbf16>
    %181 = stablehlo.convolution(%180, %arg74) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<1x4x4x64xbf16>
    %182 = stablehlo.broadcast_in_dim %arg20, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %183 = stablehlo.broadcast_in_dim %arg21, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %184 = stablehlo.broadcast_in_dim %182, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %185 = stablehlo.subtract %181, %184 : tensor<1x4x4x64xbf16>
    %cst_11 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %186 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<bf16>) -> tensor<1x1x1x64xbf16>
    %187 = stablehlo.add %183, %186 : tensor<1x1x1x64xbf16>
    %188 = stablehlo.rsqrt %187 : tensor<1x1x1x64xbf16>
    %189 = stablehlo.reshape %arg72 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %190 = stablehlo.multiply %188, %189 : tensor<1x1x1x64xbf16>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %192 = stablehlo.multiply %185, %191 : tensor<1x4x4x64xbf16>
    %193 = stablehlo.reshape %arg71 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %194 = stablehlo.broadcast_in_dim %193, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %195 = stablehlo.add %192, %194 : tensor<1x4x4x64xbf16>
    %196 = stablehlo.convolution(%164, %arg75) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x32xbf16>, tensor<1x1x32x64xbf16>) -> tensor<1x4x4x64xbf16>
    %197 = stablehlo.broadcast_in_dim %arg22, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %198 = stablehlo.broadcast_in_dim %arg23, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %199 = stablehlo.broadcast_in_dim %197, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %200 = stablehlo.subtract %196, %199 : tensor<1x4x4x64xbf16>
    %cst_12 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %201 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<bf16>) -> tensor<1x1x1x64xbf16>
    %202 = stablehlo.add %198, %201 : tensor<1x1x1x64xbf16>
    %203 = stablehlo.rsqrt %202 : tensor<1x1x1x64xbf16>
    %204 = stablehlo.reshape %arg77 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %205 = stablehlo.multiply %203, %204 : tensor<1x1x1x64xbf16>
    %206 = stablehlo.broadcast_in_dim %205, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %207 = stablehlo.multiply %200, %206 : tensor<1x4x4x64xbf16>
    %208 = stablehlo.reshape %arg76 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %209 = stablehlo.broadcast_in_dim %208, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %210 = stablehlo.add %207, %209 : tensor<1x4x4x64xbf16>
    %211 = stablehlo.add %210, %195 : tensor<1x4x4x64xbf16>
    %212 = call @relu_2(%211) : (tensor<1x4x4x64xbf16>) -> tensor<1x4x4x64xbf16>
    %213 = stablehlo.convolution(%212, %arg82) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<1x4x4x64xbf16>
    %214 = stablehlo.broadcast_in_dim %arg24, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %215 = stablehlo.broadcast_in_dim %arg25, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %216 = stablehlo.broadcast_in_dim %214, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %217 = stablehlo.subtract %213, %216 : tensor<1x4x4x64xbf16>
    %cst_13 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %218 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<bf16>) -> tensor<1x1x1x64xbf16>
    %219 = stablehlo.add %215, %218 : tensor<1x1x1x64xbf16>
    %220 = stablehlo.rsqrt %219 : tensor<1x1x1x64xbf16>
    %221 = stablehlo.reshape %arg79 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %222 = stablehlo.multiply %220, %221 : tensor<1x1x1x64xbf16>
    %223 = stablehlo.broadcast_in_dim %222, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %224 = stablehlo.multiply %217, %223 : tensor<1x4x4x64xbf16>
    %225 = stablehlo.reshape %arg78 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %226 = stablehlo.broadcast_in_dim %225, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %227 = stablehlo.add %224, %226 : tensor<1x4x4x64xbf16>
    %228 = call @relu_2(%227) : (tensor<1x4x4x64xbf16>) -> tensor<1x4x4x64xbf16>
    %229 = stablehlo.convolution(%228, %arg83) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<1x4x4x64xbf16>
    %230 = stablehlo.broadcast_in_dim %arg26, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %231 = stablehlo.broadcast_in_dim %arg27, dims = [3] : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %232 = stablehlo.broadcast_in_dim %230, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %233 = stablehlo.subtract %229, %232 : tensor<1x4x4x64xbf16>
    %cst_14 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %234 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<bf16>) -> tensor<1x1x1x64xbf16>
    %235 = stablehlo.add %231, %234 : tensor<1x1x1x64xbf16>
    %236 = stablehlo.rsqrt %235 : tensor<1x1x1x64xbf16>
    %237 = stablehlo.reshape %arg81 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %238 = stablehlo.multiply %236, %237 : tensor<1x1x1x64xbf16>
    %239 = stablehlo.broadcast_in_dim %238, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %240 = stablehlo.multiply %233, %239 : tensor<1x4x4x64xbf16>
    %241 = stablehlo.reshape %arg80 : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %242 = stablehlo.broadcast_in_dim %241, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %243 = stablehlo.add %240, %242 : tensor<1x4x4x64xbf16>
    %244 = stablehlo.add %212, %243 : tensor<1x4x4x64xbf16>
    %245 = call @relu_2(%244) : (tensor<1x4x4x64xbf16>) -> tensor<1x4x4x64xbf16>
    %246 = stablehlo.convolution(%245, %arg88) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x64xbf16>, tensor<3x3x64x128xbf16>) -> tensor<1x2x2x128xbf16>
    %247 = stablehlo.broadcast_in_dim %arg28, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %248 = stablehlo.broadcast_in_dim %arg29, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %249 = stablehlo.broadcast_in_dim %247, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %250 = stablehlo.subtract %246, %249 : tensor<1x2x2x128xbf16>
    %cst_15 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %251 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<bf16>) -> tensor<1x1x1x128xbf16>
    %252 = stablehlo.add %248, %251 : tensor<1x1x1x128xbf16>
    %253 = stablehlo.rsqrt %252 : tensor<1x1x1x128xbf16>
    %254 = stablehlo.reshape %arg85 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %255 = stablehlo.multiply %253, %254 : tensor<1x1x1x128xbf16>
    %256 = stablehlo.broadcast_in_dim %255, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %257 = stablehlo.multiply %250, %256 : tensor<1x2x2x128xbf16>
    %258 = stablehlo.reshape %arg84 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %259 = stablehlo.broadcast_in_dim %258, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %260 = stablehlo.add %257, %259 : tensor<1x2x2x128xbf16>
    %261 = call @relu_3(%260) : (tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xbf16>
    %262 = stablehlo.convolution(%261, %arg89) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x2x128xbf16>, tensor<3x3x128x128xbf16>) -> tensor<1x2x2x128xbf16>
    %263 = stablehlo.broadcast_in_dim %arg30, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %264 = stablehlo.broadcast_in_dim %arg31, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %265 = stablehlo.broadcast_in_dim %263, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %266 = stablehlo.subtract %262, %265 : tensor<1x2x2x128xbf16>
    %cst_16 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %267 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<bf16>) -> tensor<1x1x1x128xbf16>
    %268 = stablehlo.add %264, %267 : tensor<1x1x1x128xbf16>
    %269 = stablehlo.rsqrt %268 : tensor<1x1x1x128xbf16>
    %270 = stablehlo.reshape %arg87 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %271 = stablehlo.multiply %269, %270 : tensor<1x1x1x128xbf16>
    %272 = stablehlo.broadcast_in_dim %271, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %273 = stablehlo.multiply %266, %272 : tensor<1x2x2x128xbf16>
    %274 = stablehlo.reshape %arg86 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %275 = stablehlo.broadcast_in_dim %274, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %276 = stablehlo.add %273, %275 : tensor<1x2x2x128xbf16>
    %277 = stablehlo.convolution(%245, %arg90) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x4x4x64xbf16>, tensor<1x1x64x128xbf16>) -> tensor<1x2x2x128xbf16>
    %278 = stablehlo.broadcast_in_dim %arg32, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %279 = stablehlo.broadcast_in_dim %arg33, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %280 = stablehlo.broadcast_in_dim %278, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %281 = stablehlo.subtract %277, %280 : tensor<1x2x2x128xbf16>
    %cst_17 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %282 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<1x1x1x128xbf16>
    %283 = stablehlo.add %279, %282 : tensor<1x1x1x128xbf16>
    %284 = stablehlo.rsqrt %283 : tensor<1x1x1x128xbf16>
    %285 = stablehlo.reshape %arg92 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %286 = stablehlo.multiply %284, %285 : tensor<1x1x1x128xbf16>
    %287 = stablehlo.broadcast_in_dim %286, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %288 = stablehlo.multiply %281, %287 : tensor<1x2x2x128xbf16>
    %289 = stablehlo.reshape %arg91 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %290 = stablehlo.broadcast_in_dim %289, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %291 = stablehlo.add %288, %290 : tensor<1x2x2x128xbf16>
    %292 = stablehlo.add %291, %276 : tensor<1x2x2x128xbf16>
    %293 = call @relu_3(%292) : (tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xbf16>
    %294 = stablehlo.convolution(%293, %arg97) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x2x128xbf16>, tensor<3x3x128x128xbf16>) -> tensor<1x2x2x128xbf16>
    %295 = stablehlo.broadcast_in_dim %arg34, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %296 = stablehlo.broadcast_in_dim %arg35, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %297 = stablehlo.broadcast_in_dim %295, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %298 = stablehlo.subtract %294, %297 : tensor<1x2x2x128xbf16>
    %cst_18 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %299 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<bf16>) -> tensor<1x1x1x128xbf16>
    %300 = stablehlo.add %296, %299 : tensor<1x1x1x128xbf16>
    %301 = stablehlo.rsqrt %300 : tensor<1x1x1x128xbf16>
    %302 = stablehlo.reshape %arg94 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %303 = stablehlo.multiply %301, %302 : tensor<1x1x1x128xbf16>
    %304 = stablehlo.broadcast_in_dim %303, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %305 = stablehlo.multiply %298, %304 : tensor<1x2x2x128xbf16>
    %306 = stablehlo.reshape %arg93 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %307 = stablehlo.broadcast_in_dim %306, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %308 = stablehlo.add %305, %307 : tensor<1x2x2x128xbf16>
    %309 = call @relu_3(%308) : (tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xbf16>
    %310 = stablehlo.convolution(%309, %arg98) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x2x128xbf16>, tensor<3x3x128x128xbf16>) -> tensor<1x2x2x128xbf16>
    %311 = stablehlo.broadcast_in_dim %arg36, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %312 = stablehlo.broadcast_in_dim %arg37, dims = [3] : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %313 = stablehlo.broadcast_in_dim %311, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %314 = stablehlo.subtract %310, %313 : tensor<1x2x2x128xbf16>
    %cst_19 = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %315 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<bf16>) -> tensor<1x1x1x128xbf16>
    %316 = stablehlo.add %312, %315 : tensor<1x1x1x128xbf16>
    %317 = stablehlo.rsqrt %316 : tensor<1x1x1x128xbf16>
    %318 = stablehlo.reshape %arg96 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %319 = stablehlo.multiply %317, %318 : tensor<1x1x1x128xbf16>
    %320 = stablehlo.broadcast_in_dim %319, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %321 = stablehlo.multiply %314, %320 : tensor<1x2x2x128xbf16>
    %322 = stablehlo.reshape %arg95 : (tensor<128xbf16>) -> tensor<1x1x1x128xbf16>
    %323 = stablehlo.broadcast_in_dim %322, dims = [0, 1, 2, 3] : (tensor<1x1x1x128xbf16>) -> tensor<1x2x2x128xbf16>
    %324 = stablehlo.add %321, %323 : tensor<1x2x2x128xbf16>
    %325 = stablehlo.add %293, %324 : tensor<1x2x2x128xbf16>
    %326 = call @relu_3(%325) : (tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xbf16>
    %327 = stablehlo.convert %326 : (tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %328 = stablehlo.reduce(%327 init: %cst_20) applies stablehlo.add across dimensions = [1, 2] : (tensor<1x2x2x128xf32>, tensor<f32>) -> tensor<1x128xf32>
    %cst_21 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %329 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<1x128xf32>
    %330 = stablehlo.divide %328, %329 : tensor<1x128xf32>
    %331 = stablehlo.convert %330 : (tensor<1x128xf32>) -> tensor<1x128xbf16>
    %332 = stablehlo.dot_general %331, %arg41, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x128xbf16>, tensor<128x10xbf16>) -> tensor<1x10xbf16>
    %333 = stablehlo.reshape %arg40 : (tensor<10xbf16>) -> tensor<1x10xbf16>
    %334 = stablehlo.add %332, %333 : tensor<1x10xbf16>
    return %334 : tensor<1x10xbf16>
  }
  func.func private @relu(%arg0: tensor<1x32x32x16xbf16>) -> tensor<1x32x32x16xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x32x32x16xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x32x32x16xbf16>
    return %1 : tensor<1x32x32x16xbf16>
  }
  func.func private @relu_0(%arg0: tensor<1x16x16x16xbf16>) -> tensor<1x16x16x16xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x16x16x16xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x16x16x16xbf16>
    return %1 : tensor<1x16x16x16xbf16>
  }
  func.func private @relu_1(%arg0: tensor<1x8x8x32xbf16>) -> tensor<1x8x8x32xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x8x8x32xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x8x8x32xbf16>
    return %1 : tensor<1x8x8x32xbf16>
  }
  func.func private @relu_2(%arg0: tensor<1x4x4x64xbf16>) -> tensor<1x4x4x64xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x4x4x64xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x4x4x64xbf16>
    return %1 : tensor<1x4x4x64xbf16>
  }
  func.func private @relu_3(%arg0: tensor<1x2x2x128xbf16>) -> tensor<1x2x2x128xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x2x2x128xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<1x2x2x128xbf16>
    return %1 : tensor<1x2x2x128xbf16>
  }
}
