// The block of tests/frontends/jax_models.py as one would write it in TTIR.
func.func @block(
    %x: tensor<1x32x64xbf16>,
    %scale1: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %bias1: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %query_w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %query_b: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %key_w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %key_b: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %value_w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %value_b: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %out_w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %out_b: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %scale2: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %bias2: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %up_w: tensor<64x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %up_b: tensor<256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %down_w: tensor<256x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
    %down_b: tensor<64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}
) -> tensor<1x32x64xbf16> {
  %0 = "ttir.layer_norm"(%x, %scale1, %bias1) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-6 : f32, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %1 = "ttir.linear"(%0, %query_w, %query_b) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %2 = "ttir.reshape"(%1) <{shape = [1 : i32, 32 : i32, 2 : i32, 32 : i32]}> : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
  %3 = "ttir.permute"(%2) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
  %4 = "ttir.linear"(%0, %key_w, %key_b) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %5 = "ttir.reshape"(%4) <{shape = [1 : i32, 32 : i32, 2 : i32, 32 : i32]}> : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
  %6 = "ttir.permute"(%5) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
  %7 = "ttir.linear"(%0, %value_w, %value_b) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %8 = "ttir.reshape"(%7) <{shape = [1 : i32, 32 : i32, 2 : i32, 32 : i32]}> : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
  %9 = "ttir.permute"(%8) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
  %10 = "ttir.scaled_dot_product_attention"(%3, %6, %9) <{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>, tensor<1x2x32x32xbf16>) -> tensor<1x2x32x32xbf16>
  %11 = "ttir.concatenate_heads"(%10) : (tensor<1x2x32x32xbf16>) -> tensor<1x32x64xbf16>
  %12 = "ttir.linear"(%11, %out_w, %out_b) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %13 = "ttir.add"(%x, %12) : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
  %14 = "ttir.layer_norm"(%13, %scale2, %bias2) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-6 : f32, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %15 = "ttir.linear"(%14, %up_w, %up_b) : (tensor<1x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<1x32x256xbf16>
  %16 = "ttir.gelu"(%15) : (tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
  %17 = "ttir.linear"(%16, %down_w, %down_b) : (tensor<1x32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
  %18 = "ttir.add"(%13, %17) : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
  return %18 : tensor<1x32x64xbf16>
}
