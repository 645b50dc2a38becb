// RUN: ttcodegen-opt --ttir-empty-attention-rows %s | filecheck %s

// A mask that may hide every key of a row is limited, and such rows are zero.

// CHECK-LABEL: func.func @masked
// CHECK: "ttir.maximum"
// CHECK: "ttir.scaled_dot_product_attention"
// CHECK: "ttir.ge"
// CHECK: "ttir.max"
// CHECK: "ttir.multiply"
func.func @masked(%q: tensor<1x2x32x64xbf16>, %k: tensor<1x2x32x64xbf16>, %v: tensor<1x2x32x64xbf16>, %m: tensor<1x1x32x32xbf16>) -> tensor<1x2x32x64xbf16> {
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %m) <{is_causal = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}> : (tensor<1x2x32x64xbf16>, tensor<1x2x32x64xbf16>, tensor<1x2x32x64xbf16>, tensor<1x1x32x32xbf16>) -> tensor<1x2x32x64xbf16>
  return %0 : tensor<1x2x32x64xbf16>
}

// CHECK-LABEL: func.func @causal
// CHECK-NOT: "ttir.multiply"
func.func @causal(%q: tensor<1x2x32x64xbf16>, %k: tensor<1x2x32x64xbf16>, %v: tensor<1x2x32x64xbf16>) -> tensor<1x2x32x64xbf16> {
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) <{is_causal = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<1x2x32x64xbf16>, tensor<1x2x32x64xbf16>, tensor<1x2x32x64xbf16>) -> tensor<1x2x32x64xbf16>
  return %0 : tensor<1x2x32x64xbf16>
}
