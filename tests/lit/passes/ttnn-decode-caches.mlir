// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-decode-caches %s | filecheck %s

// Each user has a position, and sharded rows; no permutation is left, nor a position that the
// host would have to know.
// CHECK-LABEL: @update
// CHECK: %[[ROWS:.*]] = "ttnn.reshape"({{.*}}) <{shape = array<i32: 1, 32, 8, 64>}>
// CHECK: %[[PLACES:.*]] = "ttnn.repeat"({{.*}}) <{repeat_dimensions = array<i32: 32>}>
// CHECK: "ttnn.paged_update_cache"(%cache, %[[ROWS]], %[[PLACES]])
// CHECK-NOT: ttnn.repeat
// CHECK: "ttnn.paged_update_cache"(%other, {{.*}}, %[[PLACES]])
// CHECK: return
func.func @update(%cache: tensor<32x8x128x64xbf16>, %other: tensor<32x8x128x64xbf16>, %rows: tensor<32x8x1x64xbf16>, %at: tensor<1xi32>) -> (tensor<32x8x128x64xbf16>, tensor<32x8x128x64xbf16>) {
  %0 = "ttir.permute"(%rows) <{permutation = array<i64: 2, 1, 0, 3>}> : (tensor<32x8x1x64xbf16>) -> tensor<1x8x32x64xbf16>
  "ttir.update_cache"(%cache, %0, %at) <{batch_offset = 0 : i32}> : (tensor<32x8x128x64xbf16>, tensor<1x8x32x64xbf16>, tensor<1xi32>) -> ()
  "ttir.update_cache"(%other, %0, %at) <{batch_offset = 0 : i32}> : (tensor<32x8x128x64xbf16>, tensor<1x8x32x64xbf16>, tensor<1xi32>) -> ()
  return %cache, %other : tensor<32x8x128x64xbf16>, tensor<32x8x128x64xbf16>
}

// More heads than rows of a tile are left to the other call.
// CHECK-LABEL: @many_heads
// CHECK: "ttnn.update_cache"
func.func @many_heads(%cache: tensor<8x40x64x64xbf16>, %rows: tensor<1x40x8x64xbf16>, %at: tensor<1xi32>) -> tensor<8x40x64x64xbf16> {
  "ttir.update_cache"(%cache, %rows, %at) <{batch_offset = 0 : i32}> : (tensor<8x40x64x64xbf16>, tensor<1x40x8x64xbf16>, tensor<1xi32>) -> ()
  return %cache : tensor<8x40x64x64xbf16>
}

// A permutation that moves dimensions of more than one element is unchanged.
// CHECK-LABEL: @moved
// CHECK: "ttnn.permute"
func.func @moved(%x: tensor<32x8x1x64xbf16>) -> tensor<8x32x1x64xbf16> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 1, 0, 2, 3>}> : (tensor<32x8x1x64xbf16>) -> tensor<8x32x1x64xbf16>
  return %0 : tensor<8x32x1x64xbf16>
}
