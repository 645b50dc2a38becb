builtin.module {
  func.func @forward(%features_0_weight: tensor<8x3x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.0.weight"}, %features_0_bias: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.0.bias"}, %features_1_weight: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.1.weight"}, %features_1_bias: tensor<8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.1.bias"}, %features_4_weight: tensor<16x8x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.4.weight"}, %features_5_weight: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.5.weight"}, %features_5_bias: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "features.5.bias"}, %head_weight: tensor<10x16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "head.weight"}, %head_bias: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "head.bias"}, %x: tensor<1x3x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "x"}) -> (tensor<1x10xbf16> {ttir.name = "output"}) {
    %features_1_running_mean = "ttir.constant"() <{value = dense<[8.239750e-03, -3.750000e-01, -2.734380e-01, 1.865230e-01, -2.167970e-01, 1.201170e-01, 4.921880e-01, 1.699220e-01]> : tensor<8xbf16>}> : () -> tensor<8xbf16>
    %features_1_running_var = "ttir.constant"() <{value = dense<[9.531250e-01, 1.125000e+00, 7.109380e-01, 5.781250e-01, 6.250000e-01, 5.820310e-01, 1.101560e+00, 1.093750e+00]> : tensor<8xbf16>}> : () -> tensor<8xbf16>
    %features_5_running_mean = "ttir.constant"() <{value = dense<[-2.128910e-01, -4.882810e-01, 2.714840e-01, -2.832030e-01, -8.349610e-02, -4.199220e-01, -2.812500e-01, 2.089840e-01, -4.667970e-01, -2.851560e-01, 3.750000e-01, -2.558590e-01, -2.080080e-01, -1.406250e-01, 2.138670e-01, -3.281250e-01]> : tensor<16xbf16>}> : () -> tensor<16xbf16>
    %features_5_running_var = "ttir.constant"() <{value = dense<[1.046880e+00, 1.203120e+00, 9.648440e-01, 1.093750e+00, 6.171880e-01, 1.226560e+00, 1.187500e+00, 9.375000e-01, 5.859380e-01, 1.203120e+00, 1.328120e+00, 9.140620e-01, 1.234380e+00, 1.187500e+00, 8.007810e-01, 9.648440e-01]> : tensor<16xbf16>}> : () -> tensor<16xbf16>
    %0 = "ttir.permute"(%x) <{permutation = array<i32: 0, 2, 3, 1>}> : (tensor<1x3x32x32xbf16>) -> tensor<1x32x32x3xbf16>
    %1 = "ttir.reshape"(%features_0_bias) <{shape = array<i32: 1, 1, 1, 8>}> : (tensor<8xbf16>) -> tensor<1x1x1x8xbf16>
    %2 = "ttir.conv2d"(%0, %features_0_weight, %1) <{stride = array<i32: 1, 1>, padding = array<i32: 1, 1, 1, 1>, dilation = array<i32: 1, 1>}> : (tensor<1x32x32x3xbf16>, tensor<8x3x3x3xbf16>, tensor<1x1x1x8xbf16>) -> tensor<1x32x32x8xbf16>
    %3 = "ttir.permute"(%2) <{permutation = array<i32: 0, 3, 1, 2>}> : (tensor<1x32x32x8xbf16>) -> tensor<1x8x32x32xbf16>
    %4 = "ttir.batch_norm_inference"(%3, %features_1_weight, %features_1_bias, %features_1_running_mean, %features_1_running_var) <{epsilon = 1.000000e-05 : f32, dimension = 1 : i32}> : (tensor<1x8x32x32xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<1x8x32x32xbf16>
    %5 = "ttir.relu"(%4) : (tensor<1x8x32x32xbf16>) -> tensor<1x8x32x32xbf16>
    %6 = "ttir.permute"(%5) <{permutation = array<i32: 0, 2, 3, 1>}> : (tensor<1x8x32x32xbf16>) -> tensor<1x32x32x8xbf16>
    %7 = "ttir.max_pool2d"(%6) <{kernel = array<i32: 2, 2>, stride = array<i32: 2, 2>, padding = array<i32: 0, 0, 0, 0>, dilation = array<i32: 1, 1>}> : (tensor<1x32x32x8xbf16>) -> tensor<1x16x16x8xbf16>
    %8 = "ttir.permute"(%7) <{permutation = array<i32: 0, 3, 1, 2>}> : (tensor<1x16x16x8xbf16>) -> tensor<1x8x16x16xbf16>
    %9 = "ttir.permute"(%8) <{permutation = array<i32: 0, 2, 3, 1>}> : (tensor<1x8x16x16xbf16>) -> tensor<1x16x16x8xbf16>
    %10 = "ttir.conv2d"(%9, %features_4_weight) <{stride = array<i32: 2, 2>, padding = array<i32: 1, 1, 1, 1>, dilation = array<i32: 1, 1>}> : (tensor<1x16x16x8xbf16>, tensor<16x8x3x3xbf16>) -> tensor<1x8x8x16xbf16>
    %11 = "ttir.permute"(%10) <{permutation = array<i32: 0, 3, 1, 2>}> : (tensor<1x8x8x16xbf16>) -> tensor<1x16x8x8xbf16>
    %12 = "ttir.batch_norm_inference"(%11, %features_5_weight, %features_5_bias, %features_5_running_mean, %features_5_running_var) <{epsilon = 1.000000e-05 : f32, dimension = 1 : i32}> : (tensor<1x16x8x8xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<16xbf16>) -> tensor<1x16x8x8xbf16>
    %13 = "ttir.relu"(%12) : (tensor<1x16x8x8xbf16>) -> tensor<1x16x8x8xbf16>
    %14 = "ttir.mean"(%13) <{dim_arg = array<i32: 2, 3>, keep_dim = true}> : (tensor<1x16x8x8xbf16>) -> tensor<1x16x1x1xbf16>
    %15 = "ttir.reshape"(%14) <{shape = array<i32: 1, 16>}> : (tensor<1x16x1x1xbf16>) -> tensor<1x16xbf16>
    %16 = "ttir.linear"(%15, %head_weight, %head_bias) <{transpose_b = true}> : (tensor<1x16xbf16>, tensor<10x16xbf16>, tensor<10xbf16>) -> tensor<1x10xbf16>
    func.return %16 : tensor<1x10xbf16>
  }
}
