// The ops that no random program has, one or more functions of each.

func.func @creation() -> (tensor<f32>, tensor<7xbf16>, tensor<2x3x33xi32>, tensor<1x2x3x4x5x6xf32>,
                          tensor<5x40xui32>, tensor<3x2xf32>) {
  %0 = "ttir.full"() <{shape = array<i32>, fill_value = 1.5 : f32}> : () -> tensor<f32>
  %1 = "ttir.ones"() <{shape = array<i32: 7>}> : () -> tensor<7xbf16>
  %2 = "ttir.full"() <{shape = array<i32: 2, 3, 33>, fill_value = -3 : i32}> : () -> tensor<2x3x33xi32>
  %3 = "ttir.zeros"() <{shape = array<i32: 1, 2, 3, 4, 5, 6>}> : () -> tensor<1x2x3x4x5x6xf32>
  %4 = "ttir.full"() <{shape = array<i32: 5, 40>, fill_value = 9 : i32}> : () -> tensor<5x40xui32>
  %5 = "ttir.constant"() <{value = dense<[[1.0, -2.0], [0.5, 4.0], [3.0, 0.25]]> : tensor<3x2xf32>}> : () -> tensor<3x2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<f32>, tensor<7xbf16>, tensor<2x3x33xi32>,
    tensor<1x2x3x4x5x6xf32>, tensor<5x40xui32>, tensor<3x2xf32>
}

func.func @clamp_scalar(%a: tensor<3x33xf32>, %b: tensor<bf16>, %c: tensor<2x3x4x5x6xi32>,
                        %d: tensor<70xui32>) -> (tensor<3x33xf32>, tensor<bf16>, tensor<2x3x4x5x6xi32>, tensor<70xui32>) {
  %0 = "ttir.clamp_scalar"(%a) <{min = -0.5 : f32, max = 0.25 : f32}> : (tensor<3x33xf32>) -> tensor<3x33xf32>
  %1 = "ttir.clamp_scalar"(%b) <{min = -0.5 : f32, max = 0.25 : f32}> : (tensor<bf16>) -> tensor<bf16>
  %2 = "ttir.clamp_scalar"(%c) <{min = -2 : i32, max = 3 : i32}> : (tensor<2x3x4x5x6xi32>) -> tensor<2x3x4x5x6xi32>
  %3 = "ttir.clamp_scalar"(%d) <{min = 2 : i32, max = 5 : i32}> : (tensor<70xui32>) -> tensor<70xui32>
  return %0, %1, %2, %3 : tensor<3x33xf32>, tensor<bf16>, tensor<2x3x4x5x6xi32>, tensor<70xui32>
}

func.func @bitcast_convert(%a: tensor<3x33xf32>, %b: tensor<2x1x5xf32>, %c: tensor<4x32xbf16>)
    -> (tensor<3x33xui32>, tensor<2x1x5xi32>, tensor<4x32xui16>) {
  %0 = "ttir.bitcast_convert"(%a) : (tensor<3x33xf32>) -> tensor<3x33xui32>
  %1 = "ttir.bitcast_convert"(%b) : (tensor<2x1x5xf32>) -> tensor<2x1x5xi32>
  %2 = "ttir.bitcast_convert"(%c) : (tensor<4x32xbf16>) -> tensor<4x32xui16>
  return %0, %1, %2 : tensor<3x33xui32>, tensor<2x1x5xi32>, tensor<4x32xui16>
}

func.func @drawn(%a: tensor<64x70xbf16>) -> (tensor<64x33xbf16>, tensor<2x64x32xf32>, tensor<64x70xbf16>) {
  %0 = "ttir.rand"() <{size = [64 : i32, 33 : i32], low = -1.0 : f32, high = 3.0 : f32, seed = 3 : ui32}> : () -> tensor<64x33xbf16>
  %1 = "ttir.rand"() <{size = [2 : i32, 64 : i32, 32 : i32], low = 0.0 : f32, high = 1.0 : f32, seed = 4 : ui32}> : () -> tensor<2x64x32xf32>
  %2 = "ttir.dropout"(%a) <{prob = 0.25 : f32, scale = 1.25 : f32, seed = 21 : ui32}> : (tensor<64x70xbf16>) -> tensor<64x70xbf16>
  return %0, %1, %2 : tensor<64x33xbf16>, tensor<2x64x32xf32>, tensor<64x70xbf16>
}

func.func @fill_cache(%cache: tensor<2x3x64x32xbf16>, %x: tensor<1x3x7x32xbf16>,
                      %wide: tensor<1x2x32x64xf32>, %y: tensor<1x2x32x64xf32>) -> (tensor<2x3x64x32xbf16>, tensor<1x2x32x64xf32>) {
  "ttir.fill_cache"(%cache, %x) <{batch_offset = 1 : i32}> : (tensor<2x3x64x32xbf16>, tensor<1x3x7x32xbf16>) -> ()
  "ttir.fill_cache"(%wide, %y) <{batch_offset = 0 : i32}> : (tensor<1x2x32x64xf32>, tensor<1x2x32x64xf32>) -> ()
  return %cache, %wide : tensor<2x3x64x32xbf16>, tensor<1x2x32x64xf32>
}

func.func @update_cache(%cache: tensor<2x3x64x32xbf16>, %x: tensor<1x3x2x32xbf16>, %at: tensor<1xi32>) -> tensor<2x3x64x32xbf16> {
  "ttir.update_cache"(%cache, %x, %at) <{batch_offset = 0 : i32}> : (tensor<2x3x64x32xbf16>, tensor<1x3x2x32xbf16>, tensor<1xi32>) -> ()
  return %cache : tensor<2x3x64x32xbf16>
}

func.func @update_cache_of_some(%cache: tensor<5x3x64x32xbf16>, %x: tensor<1x3x2x32xbf16>, %one: tensor<1xi32>,
                                %each: tensor<2xui32>) -> tensor<5x3x64x32xbf16> {
  "ttir.update_cache"(%cache, %x, %one) <{batch_offset = 3 : i32}> : (tensor<5x3x64x32xbf16>, tensor<1x3x2x32xbf16>, tensor<1xi32>) -> ()
  "ttir.update_cache"(%cache, %x, %each) <{batch_offset = 1 : i32}> : (tensor<5x3x64x32xbf16>, tensor<1x3x2x32xbf16>, tensor<2xui32>) -> ()
  return %cache : tensor<5x3x64x32xbf16>
}

func.func @paged_fill_cache(%cache: tensor<8x2x32x64xbf16>, %x: tensor<1x2x65x64xbf16>, %table: tensor<2x4xi32>,
                            %user: tensor<1xi32>) -> tensor<8x2x32x64xbf16> {
  "ttir.paged_fill_cache"(%cache, %x, %table, %user) : (tensor<8x2x32x64xbf16>, tensor<1x2x65x64xbf16>, tensor<2x4xi32>, tensor<1xi32>) -> ()
  return %cache : tensor<8x2x32x64xbf16>
}

func.func @paged_update_cache(%cache: tensor<8x4x32x64xbf16>, %x: tensor<1x1x4x64xbf16>, %at: tensor<1xi32>,
                              %table: tensor<1x4xi32>) -> tensor<8x4x32x64xbf16> {
  "ttir.paged_update_cache"(%cache, %x, %at, %table) <{share_cache = false}> : (tensor<8x4x32x64xbf16>, tensor<1x1x4x64xbf16>, tensor<1xi32>, tensor<1x4xi32>) -> ()
  return %cache : tensor<8x4x32x64xbf16>
}

func.func @decode(%q: tensor<1x2x4x32xbf16>, %k: tensor<2x2x64x32xbf16>, %v: tensor<2x2x64x32xbf16>, %at: tensor<2xi32>,
                  %mask: tensor<2x1x4x64xbf16>) -> (tensor<1x2x4x32xbf16>, tensor<1x2x4x32xbf16>) {
  %0 = "ttir.scaled_dot_product_attention_decode"(%q, %k, %v, %at) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0>}> : (tensor<1x2x4x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2xi32>) -> tensor<1x2x4x32xbf16>
  %1 = "ttir.scaled_dot_product_attention_decode"(%q, %k, %v, %mask, %at) <{is_causal = false, scale = 0.25 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}> : (tensor<1x2x4x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x1x4x64xbf16>, tensor<2xi32>) -> tensor<1x2x4x32xbf16>
  return %0, %1 : tensor<1x2x4x32xbf16>, tensor<1x2x4x32xbf16>
}

func.func @paged_decode(%q: tensor<1x2x4x32xbf16>, %k: tensor<8x2x32x32xbf16>, %v: tensor<8x2x32x32xbf16>, %table: tensor<2x4xi32>,
                        %at: tensor<2xi32>) -> tensor<1x2x4x32xbf16> {
  %0 = "ttir.empty"() : () -> tensor<1x2x4x32xbf16>
  %1 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %table, %0, %at) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 1, 0>}> : (tensor<1x2x4x32xbf16>, tensor<8x2x32x32xbf16>, tensor<8x2x32x32xbf16>, tensor<2x4xi32>, tensor<1x2x4x32xbf16>, tensor<2xi32>) -> tensor<1x2x4x32xbf16>
  return %1 : tensor<1x2x4x32xbf16>
}

func.func @chunked(%q: tensor<2x4x32x64xbf16>, %k: tensor<8x2x32x64xbf16>, %v: tensor<8x2x32x64xbf16>, %table: tensor<2x4xi32>) -> tensor<2x4x32x64xbf16> {
  %start = "ttir.constant"() <{value = dense<32> : tensor<1xi32>}> : () -> tensor<1xi32>
  %0 = "ttir.empty"() : () -> tensor<2x4x32x64xbf16>
  %1 = "ttir.chunked_scaled_dot_product_attention"(%q, %k, %v, %table, %start, %0) : (tensor<2x4x32x64xbf16>, tensor<8x2x32x64xbf16>, tensor<8x2x32x64xbf16>, tensor<2x4xi32>, tensor<1xi32>, tensor<2x4x32x64xbf16>) -> tensor<2x4x32x64xbf16>
  return %1 : tensor<2x4x32x64xbf16>
}

func.func @latent_decode(%q: tensor<1x2x4x32xbf16>, %k: tensor<8x1x32x32xbf16>, %table: tensor<2x4xui32>, %at: tensor<2xsi32>) -> tensor<1x2x4x16xbf16> {
  %0 = "ttir.paged_flash_multi_latent_attention_decode"(%q, %k, %table, %at) <{head_dim_v = 16 : ui32, is_causal = true, operandSegmentSizes = array<i32: 1, 1, 0, 1, 0, 1, 0>}> : (tensor<1x2x4x32xbf16>, tensor<8x1x32x32xbf16>, tensor<2x4xui32>, tensor<2xsi32>) -> tensor<1x2x4x16xbf16>
  return %0 : tensor<1x2x4x16xbf16>
}

func.func @sampling(%values: tensor<32x64xbf16>) -> tensor<32xi32> {
  %tokens = "ttir.arange"() <{start = 0 : si64, end = 64 : si64, step = 1 : si64, arange_dimension = 1 : i64}> : () -> tensor<32x64xi32>
  %k = "ttir.full"() <{shape = array<i32: 32>, fill_value = 1 : i32}> : () -> tensor<32xui32>
  %p = "ttir.full"() <{shape = array<i32: 32>, fill_value = 0.5 : f32}> : () -> tensor<32xbf16>
  %temp = "ttir.ones"() <{shape = array<i32: 32>}> : () -> tensor<32xbf16>
  %0 = "ttir.sampling"(%values, %tokens, %k, %p, %temp) <{seed = 7 : ui32}> : (tensor<32x64xbf16>, tensor<32x64xi32>, tensor<32xui32>, tensor<32xbf16>, tensor<32xbf16>) -> tensor<32xi32>
  return %0 : tensor<32xi32>
}

// Forms that the recipes do not reach.

func.func @one_query(%q: tensor<2x4x1x32xbf16>, %k: tensor<2x2x64x32xbf16>, %v: tensor<2x2x64x32xbf16>, %mask: tensor<2x1x1x64xbf16>,
                     %sink: tensor<1x4x1x1xbf16>) -> (tensor<2x4x1x32xbf16>, tensor<2x4x1x32xbf16>) {
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) <{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<2x4x1x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x2x64x32xbf16>) -> tensor<2x4x1x32xbf16>
  %1 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %mask, %sink) <{is_causal = false, scale = 0.25 : f32, sliding_window_size = 16 : ui32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}> : (tensor<2x4x1x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x2x64x32xbf16>, tensor<2x1x1x64xbf16>, tensor<1x4x1x1xbf16>) -> tensor<2x4x1x32xbf16>
  return %0, %1 : tensor<2x4x1x32xbf16>, tensor<2x4x1x32xbf16>
}

func.func @places_in_a_large_image(%x: tensor<1x260x260x2xbf16>) -> (tensor<1x130x130x2xbf16>, tensor<1x130x130x2xi32>) {
  %0, %1 = "ttir.max_pool2d_with_indices"(%x) <{kernel = 2 : i32, stride = 2 : i32, padding = 0 : i32, dilation = 1 : i32, ceil_mode = false}> : (tensor<1x260x260x2xbf16>) -> (tensor<1x130x130x2xbf16>, tensor<1x130x130x2xi32>)
  return %0, %1 : tensor<1x130x130x2xbf16>, tensor<1x130x130x2xi32>
}

func.func @product_of_vectors(%a: tensor<70xbf16>, %b: tensor<70xbf16>) -> tensor<1xbf16> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<70xbf16>, tensor<70xbf16>) -> tensor<1xbf16>
  return %0 : tensor<1xbf16>
}

func.func @numbers(%x: tensor<3x33xf32>, %n: tensor<40xi32>, %u: tensor<40xui32>)
    -> (tensor<3x33xf32>, tensor<40xi32>, tensor<40xui32>, tensor<3xui32>, tensor<3xi32>) {
  %0 = "ttir.selu"(%x) <{scale = 2.0 : f32, alpha = 0.5 : f32}> : (tensor<3x33xf32>) -> tensor<3x33xf32>
  %1 = "ttir.clamp_scalar"(%n) <{min = -2147483648 : i32, max = 3 : i32}> : (tensor<40xi32>) -> tensor<40xi32>
  %2 = "ttir.clamp_scalar"(%u) <{min = 2 : i32, max = -1 : i32}> : (tensor<40xui32>) -> tensor<40xui32>
  %3 = "ttir.full"() <{shape = array<i32: 3>, fill_value = -1 : i32}> : () -> tensor<3xui32>
  %4 = "ttir.full"() <{shape = array<i32: 3>, fill_value = 0xFF800000 : f32}> : () -> tensor<3xi32>
  return %0, %1, %2, %3, %4 : tensor<3x33xf32>, tensor<40xi32>, tensor<40xui32>, tensor<3xui32>, tensor<3xi32>
}

func.func @narrow_bits(%a: tensor<3x40xi8>, %b: tensor<40xui8>, %c: tensor<40xbf16>, %d: tensor<40xi16>)
    -> (tensor<3x40xi8>, tensor<3x40xi8>, tensor<40xi8>, tensor<40xi16>, tensor<40xbf16>) {
  %four = "ttir.full"() <{shape = array<i32: 1, 1>, fill_value = 4 : i32}> : () -> tensor<1x1xi8>
  %0 = "ttir.logical_left_shift"(%a, %four) : (tensor<3x40xi8>, tensor<1x1xi8>) -> tensor<3x40xi8>
  %1 = "ttir.right_shift"(%0, %four) : (tensor<3x40xi8>, tensor<1x1xi8>) -> tensor<3x40xi8>
  %2 = "ttir.logical_right_shift"(%a, %four) : (tensor<3x40xi8>, tensor<1x1xi8>) -> tensor<3x40xi8>
  %3 = "ttir.bitcast_convert"(%b) : (tensor<40xui8>) -> tensor<40xi8>
  %4 = "ttir.bitcast_convert"(%c) : (tensor<40xbf16>) -> tensor<40xi16>
  %5 = "ttir.bitcast_convert"(%d) : (tensor<40xi16>) -> tensor<40xbf16>
  return %1, %2, %3, %4, %5 : tensor<3x40xi8>, tensor<3x40xi8>, tensor<40xi8>, tensor<40xi16>, tensor<40xbf16>
}

func.func @product_of_booleans(%a: tensor<33x40xi1>, %b: tensor<40x50xi1>) -> tensor<33x50xi1> {
  %0 = "ttir.matmul"(%a, %b) : (tensor<33x40xi1>, tensor<40x50xi1>) -> tensor<33x50xi1>
  return %0 : tensor<33x50xi1>
}

func.func @running_sum_of_booleans(%a: tensor<4x40xi1>) -> tensor<4x40xi1> {
  %0 = "ttir.cumsum"(%a) <{dim = 1 : i64}> : (tensor<4x40xi1>) -> tensor<4x40xi1>
  return %0 : tensor<4x40xi1>
}

func.func @mean_of_booleans(%a: tensor<4x40xi1>) -> tensor<4x1xi1> {
  %0 = "ttir.mean"(%a) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<4x40xi1>) -> tensor<4x1xi1>
  return %0 : tensor<4x1xi1>
}

func.func @linear_of_booleans(%a: tensor<4x3xi1>, %b: tensor<3x50xi1>, %c: tensor<50xi1>) -> tensor<4x50xi1> {
  %0 = "ttir.linear"(%a, %b, %c) : (tensor<4x3xi1>, tensor<3x50xi1>, tensor<50xi1>) -> tensor<4x50xi1>
  return %0 : tensor<4x50xi1>
}

func.func @dot_general_of_booleans(%a: tensor<4x3xi1>, %b: tensor<3x50xi1>) -> tensor<4x50xi1> {
  %0 = "ttir.dot_general"(%a, %b) <{batch_dims_lhs = array<i64>, batch_dims_rhs = array<i64>, contract_dims_lhs = array<i64: 1>, contract_dims_rhs = array<i64: 0>}> : (tensor<4x3xi1>, tensor<3x50xi1>) -> tensor<4x50xi1>
  return %0 : tensor<4x50xi1>
}

func.func @convolution_of_any_layout(%a: tensor<2x9x10x4xbf16>, %b: tensor<3x3x2x6xbf16>) -> tensor<2x5x5x6xbf16> {
  %0 = "ttir.convolution"(%a, %b) <{window_strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 0, 1>, input_dilation = array<i64: 1, 1>, weight_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, true>, convolution_layout = #ttir<convolution_layout input_batch = 0, input_feature = 3, input_spatial_dimensions = 1x2, kernel_output_feature = 3, kernel_input_feature = 2, kernel_spatial_dimensions = 0x1, output_batch = 0, output_feature = 3, output_spatial_dimensions = 1x2>, feature_group_count = 2 : i64, batch_group_count = 1 : i64}> : (tensor<2x9x10x4xbf16>, tensor<3x3x2x6xbf16>) -> tensor<2x5x5x6xbf16>
  return %0 : tensor<2x5x5x6xbf16>
}

func.func @pooling_of_sums(%a: tensor<1x8x8x32xbf16>) -> tensor<1x4x4x32xbf16> {
  %0 = "ttir.pooling"(%a) <{pooling_method = #ttir<pooling_method Sum>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = array<i64: 0, 0, 0, 0, 0, 0, 0, 0>}> : (tensor<1x8x8x32xbf16>) -> tensor<1x4x4x32xbf16>
  return %0 : tensor<1x4x4x32xbf16>
}

func.func @adamw(%p: tensor<3x40xbf16>, %g: tensor<3x40xbf16>, %m: tensor<3x40xf32>, %v: tensor<3x40xf32>, %top: tensor<3x40xf32>)
    -> (tensor<3x40xbf16>, tensor<3x40xf32>, tensor<3x40xf32>, tensor<3x40xf32>) {
  %0:4 = "ttir.adamw"(%p, %g, %m, %v, %top) <{lr = 0.25 : f32, beta1 = 0.9 : f32, beta2 = 0.999 : f32, beta1_pow = 0.81 : f32,
    beta2_pow = 0.998 : f32, epsilon = 1.0e-3 : f32, weight_decay = 0.1 : f32}>
    : (tensor<3x40xbf16>, tensor<3x40xbf16>, tensor<3x40xf32>, tensor<3x40xf32>, tensor<3x40xf32>)
    -> (tensor<3x40xbf16>, tensor<3x40xf32>, tensor<3x40xf32>, tensor<3x40xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<3x40xbf16>, tensor<3x40xf32>, tensor<3x40xf32>, tensor<3x40xf32>
}

func.func @training_attention(%dy: tensor<2x4x33x16xbf16>, %q: tensor<2x4x33x16xbf16>, %k: tensor<2x2x33x16xbf16>, %v: tensor<2x2x33x16xbf16>,
                              %mask: tensor<33x33xbf16>)
    -> (tensor<2x4x33x16xbf16>, tensor<2x4x33x32xf32>, tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x4x33x16xbf16>) {
  %y, %kept = "ttir.sdpa_fw"(%q, %k, %v) <{mask_type = #ttcore.attention_mask_type<causal>, return_intermediates = true}>
    : (tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x2x33x16xbf16>) -> (tensor<2x4x33x16xbf16>, tensor<2x4x33x32xf32>)
  %dq, %dk, %dv = "ttir.sdpa_bw"(%dy, %y, %q, %k, %v, %kept) <{mask_type = #ttcore.attention_mask_type<causal>}>
    : (tensor<2x4x33x16xbf16>, tensor<2x4x33x16xbf16>, tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x4x33x32xf32>)
    -> (tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x2x33x16xbf16>)
  %z = "ttir.sdpa_fw"(%q, %k, %v, %mask) <{mask_type = #ttcore.attention_mask_type<arbitrary>}>
    : (tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<2x2x33x16xbf16>, tensor<33x33xbf16>) -> tensor<2x4x33x16xbf16>
  return %y, %kept, %dq, %dk, %dv, %z : tensor<2x4x33x16xbf16>, tensor<2x4x33x32xf32>, tensor<2x4x33x16xbf16>, tensor<2x2x33x16xbf16>,
    tensor<2x2x33x16xbf16>, tensor<2x4x33x16xbf16>
}

func.func @routed(%x: tensor<5x40xbf16>, %w: tensor<40x70xbf16>, %b: tensor<5x70xbf16>) -> (tensor<5x3xui16>, tensor<5x3xbf16>) {
  %indices, %shares = "ttir.topk_router_gpt"(%x, %w, %b) <{k = 3 : i32, num_experts = 70 : i32}>
    : (tensor<5x40xbf16>, tensor<40x70xbf16>, tensor<5x70xbf16>) -> (tensor<5x3xui16>, tensor<5x3xbf16>)
  return %indices, %shares : tensor<5x3xui16>, tensor<5x3xbf16>
}

func.func @remapped(%scores: tensor<1x3x5x6xbf16>, %owners: tensor<1x1x6x1xui16>, %experts: tensor<1x3x5x2xui16>)
    -> (tensor<1x3x5x6xbf16>, tensor<1x1x4x6xui16>) {
  %0, %1 = "ttir.moe_expert_token_remap"(%scores, %owners, %experts) <{reduction_size = 4 : i64}>
    : (tensor<1x3x5x6xbf16>, tensor<1x1x6x1xui16>, tensor<1x3x5x2xui16>) -> (tensor<1x3x5x6xbf16>, tensor<1x1x4x6xui16>)
  return %0, %1 : tensor<1x3x5x6xbf16>, tensor<1x1x4x6xui16>
}

func.func @dispatched(%x: tensor<3x5x1x40xbf16>, %experts: tensor<3x5x1x2xui16>, %owners: tensor<1x1x6x1xui16>, %made: tensor<6x3x5x40xbf16>)
    -> (tensor<1x3x5x40xbf16>, tensor<2x3x5x40xbf16>) {
  %0, %1 = "ttir.all_to_all_dispatch"(%x, %experts, %owners) <{num_devices = 1 : i64, cluster_axis = 0 : i64}>
    : (tensor<3x5x1x40xbf16>, tensor<3x5x1x2xui16>, tensor<1x1x6x1xui16>) -> (tensor<1x3x5x40xbf16>, tensor<1x3x5x2xui16>)
  %2 = "ttir.all_to_all_combine"(%made, %1, %owners) <{num_devices = 1 : i64, cluster_axis = 0 : i64, num_experts_per_tok = 2 : i64}>
    : (tensor<6x3x5x40xbf16>, tensor<1x3x5x2xui16>, tensor<1x1x6x1xui16>) -> tensor<2x3x5x40xbf16>
  return %0, %2 : tensor<1x3x5x40xbf16>, tensor<2x3x5x40xbf16>
}

func.func @experts(%x: tensor<1x1x5x32xbf16>, %named: tensor<1x1x5x2xui16>, %shares: tensor<1x1x5x2xbf16>, %owners: tensor<1x1x1x3xui16>,
                   %w0: tensor<1x3x32x64xbf16>, %w1: tensor<1x3x32x64xbf16>, %w2: tensor<1x3x64x32xbf16>)
    -> (tensor<2x5x32xbf16>, tensor<1x5x2xbf16>) {
  %0, %1, %2 = "ttir.all_to_all_dispatch_metadata"(%x, %named, %shares, %owners) <{num_devices = 1 : i64, cluster_axis = 1 : i64}>
    : (tensor<1x1x5x32xbf16>, tensor<1x1x5x2xui16>, tensor<1x1x5x2xbf16>, tensor<1x1x1x3xui16>)
    -> (tensor<1x5x32xbf16>, tensor<1x5x2xui16>, tensor<1x5x2xbf16>)
  %3 = "ttir.moe_compute"(%0, %1, %2, %owners, %w0, %w1, %w2) <{layer_id = 0 : ui32, output_height_shard_dim = 4 : ui32,
    intermediate_size = 64 : ui32, activation_function = #ttcore.moe_activation_function<swiglu>, cluster_axis = 1 : ui32,
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0>}>
    : (tensor<1x5x32xbf16>, tensor<1x5x2xui16>, tensor<1x5x2xbf16>, tensor<1x1x1x3xui16>, tensor<1x3x32x64xbf16>, tensor<1x3x32x64xbf16>,
       tensor<1x3x64x32xbf16>) -> tensor<2x5x32xbf16>
  return %3, %2 : tensor<2x5x32xbf16>, tensor<1x5x2xbf16>
}

func.func @experts_of_cores(%x: tensor<8x768xbf16>, %named: tensor<8x2xui16>, %scores: tensor<8x2xbf16>, %w0_w1: tensor<3x1x2x1x768x128xbf16>,
                            %w2: tensor<3x1x2x2x192x128xbf16>) -> (tensor<1x4xui32>, tensor<1x72xui32>, tensor<2x36xui32>, tensor<2x8x768xbf16>) {
  %owners = "ttir.full"() <{shape = array<i32: 1, 2>, fill_value = 0 : i32}> : () -> tensor<1x2xui16>
  %0, %1, %2, %3, %4 = "ttir.moe_gpt"(%x, %named, %scores, %owners, %w0_w1, %w2) <{hidden_size = 768 : ui32}>
    : (tensor<8x768xbf16>, tensor<8x2xui16>, tensor<8x2xbf16>, tensor<1x2xui16>, tensor<3x1x2x1x768x128xbf16>, tensor<3x1x2x2x192x128xbf16>)
    -> (tensor<1x4xui32>, tensor<1x72xui32>, tensor<2x36xui32>, tensor<12x2x32x768xbf16>, tensor<12x2x32x768xbf16>)
  %5 = "ttir.selective_reduce_combine"(%4, %1, %2, %0) <{hidden_size = 768 : ui32, batch_size = 8 : ui32, seq_size = 1 : ui32, select_experts_k = 2 : ui32,
    experts = 2 : ui32}> : (tensor<12x2x32x768xbf16>, tensor<1x72xui32>, tensor<2x36xui32>, tensor<1x4xui32>) -> tensor<2x8x768xbf16>
  return %0, %1, %2, %5 : tensor<1x4xui32>, tensor<1x72xui32>, tensor<2x36xui32>, tensor<2x8x768xbf16>
}

func.func @wanted_products(%a: tensor<2x3x5x40xbf16>, %b: tensor<1x4x40x70xbf16>, %flags: tensor<2x3x1x4xf32>, %rows: tensor<6x4x5x40xf32>,
                           %wide: tensor<1x4x40x70xf32>) -> (tensor<2x3x1x4x5x70xbf16>, tensor<6x4x5x70xf32>) {
  %0 = "ttir.sparse_matmul"(%a, %b, %flags) <{is_input_a_sparse = false, is_input_b_sparse = true, nnz = 2 : i64}>
    : (tensor<2x3x5x40xbf16>, tensor<1x4x40x70xbf16>, tensor<2x3x1x4xf32>) -> tensor<2x3x1x4x5x70xbf16>
  %1 = "ttir.reshape"(%flags) <{shape = [1 : i32, 1 : i32, 6 : i32, 4 : i32]}> : (tensor<2x3x1x4xf32>) -> tensor<1x1x6x4xf32>
  %2 = "ttir.sparse_matmul"(%rows, %wide, %1) <{is_input_a_sparse = true, is_input_b_sparse = false}>
    : (tensor<6x4x5x40xf32>, tensor<1x4x40x70xf32>, tensor<1x1x6x4xf32>) -> tensor<6x4x5x70xf32>
  return %0, %2 : tensor<2x3x1x4x5x70xbf16>, tensor<6x4x5x70xf32>
}

func.func @windows(%a: tensor<2x9x10x40xbf16>, %b: tensor<3x2x20x70xbf16>) -> (tensor<2x5x9x70xbf16>, tensor<2x4x5x40xbf16>) {
  %0 = "ttir.window_product"(%a, %b) <{stride = array<i64: 2, 1>, padding = array<i64: 1, 1, 0, 0>, dilation = array<i64: 1, 1>, groups = 2 : i32}> : (tensor<2x9x10x40xbf16>, tensor<3x2x20x70xbf16>) -> tensor<2x5x9x70xbf16>
  %1 = "ttir.window_reduction"(%a) <{kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, method = "max"}> : (tensor<2x9x10x40xbf16>) -> tensor<2x4x5x40xbf16>
  return %0, %1 : tensor<2x5x9x70xbf16>, tensor<2x4x5x40xbf16>
}

func.func @slices_at(%x: tensor<3x40x70xbf16>, %begins: tensor<3xi32>) -> tensor<2x17x30xbf16> {
  %0 = "ttir.slice_at"(%x, %begins) <{step = [1 : i32, 1 : i32, 2 : i32]}> : (tensor<3x40x70xbf16>, tensor<3xi32>) -> tensor<2x17x30xbf16>
  return %0 : tensor<2x17x30xbf16>
}
