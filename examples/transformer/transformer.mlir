func.func @block(
    %hidden_states: tensor<32x128xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "hidden_states"},
    %mask: tensor<1x1x32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "mask"},
    %attention_norm_weight: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "attention_norm.weight"},
    %attention_query_weight: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "attention.query.weight"},
    %attention_key_weight: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "attention.key.weight"},
    %attention_value_weight: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "attention.value.weight"},
    %attention_output_weight: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "attention.output.weight"},
    %feed_forward_norm_weight: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "feed_forward_norm.weight"},
    %feed_forward_gate_weight: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "feed_forward.gate.weight"},
    %feed_forward_up_weight: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "feed_forward.up.weight"},
    %feed_forward_down_weight: tensor<256x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "feed_forward.down.weight"}
) -> (tensor<32x128xbf16> {ttir.name = "hidden_states"}) {
  %attention_norm = "ttir.rms_norm"(%hidden_states, %attention_norm_weight) <{normalized_shape = array<i64: 128>, epsilon = 1.000000e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x128xbf16>, tensor<128xbf16>) -> tensor<32x128xbf16>
  %attention_query = "ttir.matmul"(%attention_norm, %attention_query_weight) : (tensor<32x128xbf16>, tensor<128x128xbf16>) -> tensor<32x128xbf16>
  %reshape_2 = "ttir.reshape"(%attention_query) <{shape = [1 : i32, 32 : i32, 4 : i32, 32 : i32]}> : (tensor<32x128xbf16>) -> tensor<1x32x4x32xbf16>
  %permute_3 = "ttir.permute"(%reshape_2) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x4x32xbf16>) -> tensor<1x4x32x32xbf16>
  %attention_key = "ttir.matmul"(%attention_norm, %attention_key_weight) : (tensor<32x128xbf16>, tensor<128x128xbf16>) -> tensor<32x128xbf16>
  %reshape_5 = "ttir.reshape"(%attention_key) <{shape = [1 : i32, 32 : i32, 4 : i32, 32 : i32]}> : (tensor<32x128xbf16>) -> tensor<1x32x4x32xbf16>
  %permute_6 = "ttir.permute"(%reshape_5) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x4x32xbf16>) -> tensor<1x4x32x32xbf16>
  %attention_value = "ttir.matmul"(%attention_norm, %attention_value_weight) : (tensor<32x128xbf16>, tensor<128x128xbf16>) -> tensor<32x128xbf16>
  %reshape_8 = "ttir.reshape"(%attention_value) <{shape = [1 : i32, 32 : i32, 4 : i32, 32 : i32]}> : (tensor<32x128xbf16>) -> tensor<1x32x4x32xbf16>
  %permute_9 = "ttir.permute"(%reshape_8) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x32x4x32xbf16>) -> tensor<1x4x32x32xbf16>
  %scores = "ttir.matmul"(%permute_3, %permute_6) <{transpose_b = true}> : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
  %scale = "ttir.full"() <{shape = array<i32: 1, 1, 1, 1>, fill_value = 1.767766953e-01 : f32}> : () -> tensor<1x1x1x1xbf16>
  %scaled_scores = "ttir.multiply"(%scores, %scale) : (tensor<1x4x32x32xbf16>, tensor<1x1x1x1xbf16>) -> tensor<1x4x32x32xbf16>
  %masked_scores = "ttir.add"(%scaled_scores, %mask) : (tensor<1x4x32x32xbf16>, tensor<1x1x32x32xbf16>) -> tensor<1x4x32x32xbf16>
  %softmax_14 = "ttir.softmax"(%masked_scores) <{dimension = -1 : si32}> : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
  %matmul_15 = "ttir.matmul"(%softmax_14, %permute_9) : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
  %permute_16 = "ttir.permute"(%matmul_15) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x4x32x32xbf16>) -> tensor<1x32x4x32xbf16>
  %reshape_17 = "ttir.reshape"(%permute_16) <{shape = [32 : i32, 128 : i32]}> : (tensor<1x32x4x32xbf16>) -> tensor<32x128xbf16>
  %attention_output = "ttir.matmul"(%reshape_17, %attention_output_weight) : (tensor<32x128xbf16>, tensor<128x128xbf16>) -> tensor<32x128xbf16>
  %after_attention = "ttir.add"(%hidden_states, %attention_output) : (tensor<32x128xbf16>, tensor<32x128xbf16>) -> tensor<32x128xbf16>
  %feed_forward_norm = "ttir.rms_norm"(%after_attention, %feed_forward_norm_weight) <{normalized_shape = array<i64: 128>, epsilon = 1.000000e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x128xbf16>, tensor<128xbf16>) -> tensor<32x128xbf16>
  %feed_forward_gate = "ttir.matmul"(%feed_forward_norm, %feed_forward_gate_weight) : (tensor<32x128xbf16>, tensor<128x256xbf16>) -> tensor<32x256xbf16>
  %silu_22 = "ttir.silu"(%feed_forward_gate) : (tensor<32x256xbf16>) -> tensor<32x256xbf16>
  %feed_forward_up = "ttir.matmul"(%feed_forward_norm, %feed_forward_up_weight) : (tensor<32x128xbf16>, tensor<128x256xbf16>) -> tensor<32x256xbf16>
  %multiply_24 = "ttir.multiply"(%silu_22, %feed_forward_up) : (tensor<32x256xbf16>, tensor<32x256xbf16>) -> tensor<32x256xbf16>
  %feed_forward_down = "ttir.matmul"(%multiply_24, %feed_forward_down_weight) : (tensor<32x256xbf16>, tensor<256x128xbf16>) -> tensor<32x128xbf16>
  %block_output = "ttir.add"(%after_attention, %feed_forward_down) : (tensor<32x128xbf16>, tensor<32x128xbf16>) -> tensor<32x128xbf16>
  return %block_output : tensor<32x128xbf16>
}
