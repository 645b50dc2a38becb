// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-decode-heads --ttnn-layout %s | filecheck %s

// The heads of a user are on one core, and are concatenated there.
// CHECK: #[[HEADS:.*]] = #ttnn.ttnn_layout<{{.*}}<height_sharded>
// CHECK: #[[ROWS:.*]] = #ttnn.ttnn_layout<{{.*}}<width_sharded>
// CHECK-LABEL: @join
// CHECK: "ttnn.nlp_concat_heads_decode"({{.*}}) <{num_heads = 8 : i32}> : (tensor<1x32x8x64xbf16, #[[HEADS]]>) -> tensor<1x1x32x512xbf16, #[[ROWS]]>
// CHECK: return
func.func @join(%x: tensor<32x8x1x64xbf16>) -> tensor<32x512xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [32 : i32, 8 : i32, 64 : i32]}> : (tensor<32x8x1x64xbf16>) -> tensor<32x8x64xbf16>
  %1 = "ttir.reshape"(%0) <{shape = [32 : i32, 512 : i32]}> : (tensor<32x8x64xbf16>) -> tensor<32x512xbf16>
  return %1 : tensor<32x512xbf16>
}

// The rows of fewer users are a slice of a tile, which the op does not take.
// CHECK-LABEL: @few
// CHECK-NOT: nlp_concat_heads_decode
// CHECK: return
func.func @few(%x: tensor<8x8x64xbf16>) -> tensor<8x512xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [8 : i32, 512 : i32]}> : (tensor<8x8x64xbf16>) -> tensor<8x512xbf16>
  return %0 : tensor<8x512xbf16>
}
