func.func @classify(
    %image: tensor<1x32x32x3xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "image"},
    %conv0_weight: tensor<16x3x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv0.weight"},
    %conv0_norm_weight: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv0.norm.weight"},
    %conv0_norm_bias: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv0.norm.bias"},
    %conv0_norm_running_mean: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv0.norm.running_mean"},
    %conv0_norm_running_var: tensor<16xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv0.norm.running_var"},
    %conv1_weight: tensor<32x16x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv1.weight"},
    %conv1_norm_weight: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv1.norm.weight"},
    %conv1_norm_bias: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv1.norm.bias"},
    %conv1_norm_running_mean: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv1.norm.running_mean"},
    %conv1_norm_running_var: tensor<32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "conv1.norm.running_var"},
    %classifier_weight: tensor<2048x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "classifier.weight"},
    %classifier_bias: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "classifier.bias"}
) -> (tensor<1x10xbf16> {ttir.name = "scores"}) {
  %conv0 = "ttir.conv2d"(%image, %conv0_weight) <{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}> : (tensor<1x32x32x3xbf16>, tensor<16x3x3x3xbf16>) -> tensor<1x32x32x16xbf16>
  %batch_norm_inference_1 = "ttir.batch_norm_inference"(%conv0, %conv0_norm_weight, %conv0_norm_bias, %conv0_norm_running_mean, %conv0_norm_running_var) <{dimension = 3 : i32, epsilon = 1.000000e-05 : f32}> : (tensor<1x32x32x16xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<16xbf16>, tensor<16xbf16>) -> tensor<1x32x32x16xbf16>
  %relu_2 = "ttir.relu"(%batch_norm_inference_1) : (tensor<1x32x32x16xbf16>) -> tensor<1x32x32x16xbf16>
  %max_pool2d_3 = "ttir.max_pool2d"(%relu_2) <{kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32, dilation = 1 : i32, ceil_mode = false}> : (tensor<1x32x32x16xbf16>) -> tensor<1x16x16x16xbf16>
  %conv1 = "ttir.conv2d"(%max_pool2d_3, %conv1_weight) <{stride = 1 : i32, padding = 1 : i32, dilation = 1 : i32, groups = 1 : i32}> : (tensor<1x16x16x16xbf16>, tensor<32x16x3x3xbf16>) -> tensor<1x16x16x32xbf16>
  %batch_norm_inference_5 = "ttir.batch_norm_inference"(%conv1, %conv1_norm_weight, %conv1_norm_bias, %conv1_norm_running_mean, %conv1_norm_running_var) <{dimension = 3 : i32, epsilon = 1.000000e-05 : f32}> : (tensor<1x16x16x32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>, tensor<32xbf16>) -> tensor<1x16x16x32xbf16>
  %relu_6 = "ttir.relu"(%batch_norm_inference_5) : (tensor<1x16x16x32xbf16>) -> tensor<1x16x16x32xbf16>
  %max_pool2d_7 = "ttir.max_pool2d"(%relu_6) <{kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32, dilation = 1 : i32, ceil_mode = false}> : (tensor<1x16x16x32xbf16>) -> tensor<1x8x8x32xbf16>
  %reshape_8 = "ttir.reshape"(%max_pool2d_7) <{shape = [1 : i32, 2048 : i32]}> : (tensor<1x8x8x32xbf16>) -> tensor<1x2048xbf16>
  %linear_9 = "ttir.linear"(%reshape_8, %classifier_weight, %classifier_bias) : (tensor<1x2048xbf16>, tensor<2048x10xbf16>, tensor<10xbf16>) -> tensor<1x10xbf16>
  %scores = "ttir.softmax"(%linear_9) <{dimension = -1 : si32}> : (tensor<1x10xbf16>) -> tensor<1x10xbf16>
  return %scores : tensor<1x10xbf16>
}
