builtin.module {
  func.func @forward(%token: tensor<1x1x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "token"}, %positions: tensor<1x17x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "positions"}, %patches_weight: tensor<64x3x8x8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "patches.weight"}, %patches_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "patches.bias"}, %encoder_layers_0_self_attn_in_proj_weight: tensor<192x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.self_attn.in_proj_weight"}, %encoder_layers_0_self_attn_in_proj_bias: tensor<192xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.self_attn.in_proj_bias"}, %encoder_layers_0_self_attn_out_proj_weight: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.self_attn.out_proj.weight"}, %encoder_layers_0_self_attn_out_proj_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.self_attn.out_proj.bias"}, %encoder_layers_0_linear1_weight: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.linear1.weight"}, %encoder_layers_0_linear1_bias: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.linear1.bias"}, %encoder_layers_0_linear2_weight: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.linear2.weight"}, %encoder_layers_0_linear2_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.linear2.bias"}, %encoder_layers_0_norm1_weight: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.norm1.weight"}, %encoder_layers_0_norm1_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.norm1.bias"}, %encoder_layers_0_norm2_weight: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.norm2.weight"}, %encoder_layers_0_norm2_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.0.norm2.bias"}, %encoder_layers_1_self_attn_in_proj_weight: tensor<192x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.self_attn.in_proj_weight"}, %encoder_layers_1_self_attn_in_proj_bias: tensor<192xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.self_attn.in_proj_bias"}, %encoder_layers_1_self_attn_out_proj_weight: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.self_attn.out_proj.weight"}, %encoder_layers_1_self_attn_out_proj_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.self_attn.out_proj.bias"}, %encoder_layers_1_linear1_weight: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.linear1.weight"}, %encoder_layers_1_linear1_bias: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.linear1.bias"}, %encoder_layers_1_linear2_weight: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.linear2.weight"}, %encoder_layers_1_linear2_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.linear2.bias"}, %encoder_layers_1_norm1_weight: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.norm1.weight"}, %encoder_layers_1_norm1_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.norm1.bias"}, %encoder_layers_1_norm2_weight: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.norm2.weight"}, %encoder_layers_1_norm2_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "encoder.layers.1.norm2.bias"}, %norm_weight: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "norm.weight"}, %norm_bias: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "norm.bias"}, %head_weight: tensor<10x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "head.weight"}, %head_bias: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "head.bias"}, %x: tensor<1x3x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "x"}) -> (tensor<1x10xbf16> {ttir.name = "output"}) {
    %0 = "ttir.permute"(%x) <{permutation = array<i32: 0, 2, 3, 1>}> : (tensor<1x3x32x32xbf16>) -> tensor<1x32x32x3xbf16>
    %1 = "ttir.reshape"(%patches_bias) <{shape = array<i32: 1, 1, 1, 64>}> : (tensor<64xbf16>) -> tensor<1x1x1x64xbf16>
    %2 = "ttir.conv2d"(%0, %patches_weight, %1) <{stride = array<i32: 8, 8>, padding = array<i32: 0, 0, 0, 0>, dilation = array<i32: 1, 1>}> : (tensor<1x32x32x3xbf16>, tensor<64x3x8x8xbf16>, tensor<1x1x1x64xbf16>) -> tensor<1x4x4x64xbf16>
    %3 = "ttir.permute"(%2) <{permutation = array<i32: 0, 3, 1, 2>}> : (tensor<1x4x4x64xbf16>) -> tensor<1x64x4x4xbf16>
    %4 = "ttir.reshape"(%3) <{shape = array<i32: 1, 64, 16>}> : (tensor<1x64x4x4xbf16>) -> tensor<1x64x16xbf16>
    %5 = "ttir.permute"(%4) <{permutation = array<i32: 0, 2, 1>}> : (tensor<1x64x16xbf16>) -> tensor<1x16x64xbf16>
    %6 = "ttir.concat"(%token, %5) <{dim = 1 : i32}> : (tensor<1x1x64xbf16>, tensor<1x16x64xbf16>) -> tensor<1x17x64xbf16>
    %7 = "ttir.add"(%6, %positions) : (tensor<1x17x64xbf16>, tensor<1x17x64xbf16>) -> tensor<1x17x64xbf16>
    %8 = "ttir.layer_norm"(%7, %encoder_layers_0_norm1_weight, %encoder_layers_0_norm1_bias) <{normalized_shape = array<i32: 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %9 = "ttir.permute"(%8) <{permutation = array<i32: 1, 0, 2>}> : (tensor<1x17x64xbf16>) -> tensor<17x1x64xbf16>
    %10 = "ttir.linear"(%9, %encoder_layers_0_self_attn_in_proj_weight, %encoder_layers_0_self_attn_in_proj_bias) <{transpose_b = true}> : (tensor<17x1x64xbf16>, tensor<192x64xbf16>, tensor<192xbf16>) -> tensor<17x1x192xbf16>
    %11 = "ttir.reshape"(%10) <{shape = array<i32: 17, 1, 3, 64>}> : (tensor<17x1x192xbf16>) -> tensor<17x1x3x64xbf16>
    %12 = "ttir.reshape"(%11) <{shape = array<i32: 1, 17, 1, 3, 64>}> : (tensor<17x1x3x64xbf16>) -> tensor<1x17x1x3x64xbf16>
    %13 = "ttir.permute"(%12) <{permutation = array<i32: 3, 1, 2, 0, 4>}> : (tensor<1x17x1x3x64xbf16>) -> tensor<3x17x1x1x64xbf16>
    %14 = "ttir.reshape"(%13) <{shape = array<i32: 3, 17, 1, 64>}> : (tensor<3x17x1x1x64xbf16>) -> tensor<3x17x1x64xbf16>
    %15 = "ttir.slice_static"(%14) <{begins = array<i32: 0, 0, 0, 0>, ends = array<i32: 1, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %16 = "ttir.reshape"(%15) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %17 = "ttir.slice_static"(%14) <{begins = array<i32: 1, 0, 0, 0>, ends = array<i32: 2, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %18 = "ttir.reshape"(%17) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %19 = "ttir.slice_static"(%14) <{begins = array<i32: 2, 0, 0, 0>, ends = array<i32: 3, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %20 = "ttir.reshape"(%19) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %21 = "ttir.reshape"(%16) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %22 = "ttir.permute"(%21) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %23 = "ttir.reshape"(%18) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %24 = "ttir.permute"(%23) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %25 = "ttir.reshape"(%20) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %26 = "ttir.permute"(%25) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %27 = "ttir.reshape"(%22) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %28 = "ttir.reshape"(%24) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %29 = "ttir.reshape"(%26) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %30 = "ttir.scaled_dot_product_attention"(%27, %28, %29) <{is_causal = false, scale = 2.500000e-01 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1x4x17x16xbf16>, tensor<1x4x17x16xbf16>, tensor<1x4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %31 = "ttir.permute"(%30) <{permutation = array<i32: 2, 0, 1, 3>}> : (tensor<1x4x17x16xbf16>) -> tensor<17x1x4x16xbf16>
    %32 = "ttir.reshape"(%31) <{shape = array<i32: 17, 64>}> : (tensor<17x1x4x16xbf16>) -> tensor<17x64xbf16>
    %33 = "ttir.linear"(%32, %encoder_layers_0_self_attn_out_proj_weight, %encoder_layers_0_self_attn_out_proj_bias) <{transpose_b = true}> : (tensor<17x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<17x64xbf16>
    %34 = "ttir.reshape"(%33) <{shape = array<i32: 17, 1, 64>}> : (tensor<17x64xbf16>) -> tensor<17x1x64xbf16>
    %35 = "ttir.permute"(%34) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x1x64xbf16>) -> tensor<1x17x64xbf16>
    %36 = "ttir.add"(%7, %35) : (tensor<1x17x64xbf16>, tensor<1x17x64xbf16>) -> tensor<1x17x64xbf16>
    %37 = "ttir.layer_norm"(%36, %encoder_layers_0_norm2_weight, %encoder_layers_0_norm2_bias) <{normalized_shape = array<i32: 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %38 = "ttir.linear"(%37, %encoder_layers_0_linear1_weight, %encoder_layers_0_linear1_bias) <{transpose_b = true}> : (tensor<1x17x64xbf16>, tensor<128x64xbf16>, tensor<128xbf16>) -> tensor<1x17x128xbf16>
    %39 = "ttir.gelu"(%38) : (tensor<1x17x128xbf16>) -> tensor<1x17x128xbf16>
    %40 = "ttir.linear"(%39, %encoder_layers_0_linear2_weight, %encoder_layers_0_linear2_bias) <{transpose_b = true}> : (tensor<1x17x128xbf16>, tensor<64x128xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %41 = "ttir.add"(%36, %40) : (tensor<1x17x64xbf16>, tensor<1x17x64xbf16>) -> tensor<1x17x64xbf16>
    %42 = "ttir.layer_norm"(%41, %encoder_layers_1_norm1_weight, %encoder_layers_1_norm1_bias) <{normalized_shape = array<i32: 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %43 = "ttir.permute"(%42) <{permutation = array<i32: 1, 0, 2>}> : (tensor<1x17x64xbf16>) -> tensor<17x1x64xbf16>
    %44 = "ttir.linear"(%43, %encoder_layers_1_self_attn_in_proj_weight, %encoder_layers_1_self_attn_in_proj_bias) <{transpose_b = true}> : (tensor<17x1x64xbf16>, tensor<192x64xbf16>, tensor<192xbf16>) -> tensor<17x1x192xbf16>
    %45 = "ttir.reshape"(%44) <{shape = array<i32: 17, 1, 3, 64>}> : (tensor<17x1x192xbf16>) -> tensor<17x1x3x64xbf16>
    %46 = "ttir.reshape"(%45) <{shape = array<i32: 1, 17, 1, 3, 64>}> : (tensor<17x1x3x64xbf16>) -> tensor<1x17x1x3x64xbf16>
    %47 = "ttir.permute"(%46) <{permutation = array<i32: 3, 1, 2, 0, 4>}> : (tensor<1x17x1x3x64xbf16>) -> tensor<3x17x1x1x64xbf16>
    %48 = "ttir.reshape"(%47) <{shape = array<i32: 3, 17, 1, 64>}> : (tensor<3x17x1x1x64xbf16>) -> tensor<3x17x1x64xbf16>
    %49 = "ttir.slice_static"(%48) <{begins = array<i32: 0, 0, 0, 0>, ends = array<i32: 1, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %50 = "ttir.reshape"(%49) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %51 = "ttir.slice_static"(%48) <{begins = array<i32: 1, 0, 0, 0>, ends = array<i32: 2, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %52 = "ttir.reshape"(%51) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %53 = "ttir.slice_static"(%48) <{begins = array<i32: 2, 0, 0, 0>, ends = array<i32: 3, 17, 1, 64>, step = array<i32: 1, 1, 1, 1>}> : (tensor<3x17x1x64xbf16>) -> tensor<1x17x1x64xbf16>
    %54 = "ttir.reshape"(%53) <{shape = array<i32: 17, 1, 64>}> : (tensor<1x17x1x64xbf16>) -> tensor<17x1x64xbf16>
    %55 = "ttir.reshape"(%50) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %56 = "ttir.permute"(%55) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %57 = "ttir.reshape"(%52) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %58 = "ttir.permute"(%57) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %59 = "ttir.reshape"(%54) <{shape = array<i32: 17, 4, 16>}> : (tensor<17x1x64xbf16>) -> tensor<17x4x16xbf16>
    %60 = "ttir.permute"(%59) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x4x16xbf16>) -> tensor<4x17x16xbf16>
    %61 = "ttir.reshape"(%56) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %62 = "ttir.reshape"(%58) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %63 = "ttir.reshape"(%60) <{shape = array<i32: 1, 4, 17, 16>}> : (tensor<4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %64 = "ttir.scaled_dot_product_attention"(%61, %62, %63) <{is_causal = false, scale = 2.500000e-01 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1x4x17x16xbf16>, tensor<1x4x17x16xbf16>, tensor<1x4x17x16xbf16>) -> tensor<1x4x17x16xbf16>
    %65 = "ttir.permute"(%64) <{permutation = array<i32: 2, 0, 1, 3>}> : (tensor<1x4x17x16xbf16>) -> tensor<17x1x4x16xbf16>
    %66 = "ttir.reshape"(%65) <{shape = array<i32: 17, 64>}> : (tensor<17x1x4x16xbf16>) -> tensor<17x64xbf16>
    %67 = "ttir.linear"(%66, %encoder_layers_1_self_attn_out_proj_weight, %encoder_layers_1_self_attn_out_proj_bias) <{transpose_b = true}> : (tensor<17x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<17x64xbf16>
    %68 = "ttir.reshape"(%67) <{shape = array<i32: 17, 1, 64>}> : (tensor<17x64xbf16>) -> tensor<17x1x64xbf16>
    %69 = "ttir.permute"(%68) <{permutation = array<i32: 1, 0, 2>}> : (tensor<17x1x64xbf16>) -> tensor<1x17x64xbf16>
    %70 = "ttir.add"(%41, %69) : (tensor<1x17x64xbf16>, tensor<1x17x64xbf16>) -> tensor<1x17x64xbf16>
    %71 = "ttir.layer_norm"(%70, %encoder_layers_1_norm2_weight, %encoder_layers_1_norm2_bias) <{normalized_shape = array<i32: 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %72 = "ttir.linear"(%71, %encoder_layers_1_linear1_weight, %encoder_layers_1_linear1_bias) <{transpose_b = true}> : (tensor<1x17x64xbf16>, tensor<128x64xbf16>, tensor<128xbf16>) -> tensor<1x17x128xbf16>
    %73 = "ttir.gelu"(%72) : (tensor<1x17x128xbf16>) -> tensor<1x17x128xbf16>
    %74 = "ttir.linear"(%73, %encoder_layers_1_linear2_weight, %encoder_layers_1_linear2_bias) <{transpose_b = true}> : (tensor<1x17x128xbf16>, tensor<64x128xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %75 = "ttir.add"(%70, %74) : (tensor<1x17x64xbf16>, tensor<1x17x64xbf16>) -> tensor<1x17x64xbf16>
    %76 = "ttir.layer_norm"(%75, %norm_weight, %norm_bias) <{normalized_shape = array<i32: 64>, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x17x64xbf16>
    %77 = "ttir.slice_static"(%76) <{begins = array<i32: 0, 0, 0>, ends = array<i32: 1, 1, 64>, step = array<i32: 1, 1, 1>}> : (tensor<1x17x64xbf16>) -> tensor<1x1x64xbf16>
    %78 = "ttir.reshape"(%77) <{shape = array<i32: 1, 64>}> : (tensor<1x1x64xbf16>) -> tensor<1x64xbf16>
    %79 = "ttir.linear"(%78, %head_weight, %head_bias) <{transpose_b = true}> : (tensor<1x64xbf16>, tensor<10x64xbf16>, tensor<10xbf16>) -> tensor<1x10xbf16>
    func.return %79 : tensor<1x10xbf16>
  }
}
