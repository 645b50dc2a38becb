// RUN: ttcodegen-opt --ttnn-layout --ttnn-fit-attention %s | filecheck %s
// RUN: ttcodegen-opt --ttcore-register-device='mock-system-desc-arch=blackhole' --ttnn-layout --ttnn-fit-attention %s | filecheck %s

// Heads of 512 elements: eight tiles of keys at a time, as the library takes them, are too many.
// CHECK-LABEL: @deep
// CHECK: "ttnn.paged_scaled_dot_product_attention_decode"{{.*}}program_config = #ttnn.sdpa_program_config<{{.*}}k_chunk_size = {{(32|64|128)}}
func.func @deep(%q: tensor<1x1x4x512xbf16>, %k: tensor<128x4x32x512xbf16>, %v: tensor<128x4x32x512xbf16>, %pages: tensor<1x64xsi32>, %positions: tensor<1xsi32>) -> tensor<1x1x4x512xbf16> {
  %0 = "ttnn.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %pages, %positions) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0>}> : (tensor<1x1x4x512xbf16>, tensor<128x4x32x512xbf16>, tensor<128x4x32x512xbf16>, tensor<1x64xsi32>, tensor<1xsi32>) -> tensor<1x1x4x512xbf16>
  return %0 : tensor<1x1x4x512xbf16>
}

// Of heads of 64 they are not.
// CHECK-LABEL: @shallow
// CHECK-NOT: program_config
func.func @shallow(%q: tensor<1x1x4x64xbf16>, %k: tensor<128x4x32x64xbf16>, %v: tensor<128x4x32x64xbf16>, %pages: tensor<1x64xsi32>, %positions: tensor<1xsi32>) -> tensor<1x1x4x64xbf16> {
  %0 = "ttnn.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %pages, %positions) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 0>}> : (tensor<1x1x4x64xbf16>, tensor<128x4x32x64xbf16>, tensor<128x4x32x64xbf16>, tensor<1x64xsi32>, tensor<1xsi32>) -> tensor<1x1x4x64xbf16>
  return %0 : tensor<1x1x4x64xbf16>
}
