// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-row-major-moves %s | filecheck %s

// Rows of tokens end within a tile.
// CHECK-LABEL: @tokens
// CHECK: %[[ROWS:.*]] = "ttnn.reshape_row_major"(%x)
// CHECK: "ttnn.concat_row_major"(%token, %[[ROWS]])
func.func @tokens(%token: tensor<8x1x768xbf16>, %x: tensor<1568x768xbf16>) -> tensor<8x197x768xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [8 : i32, 196 : i32, 768 : i32]}> : (tensor<1568x768xbf16>) -> tensor<8x196x768xbf16>
  %1 = "ttir.concat"(%token, %0) <{dim = 1 : si32}> : (tensor<8x1x768xbf16>, tensor<8x196x768xbf16>) -> tensor<8x197x768xbf16>
  return %1 : tensor<8x197x768xbf16>
}

// Each matrix fills its tiles: the reshape is a view.
// CHECK-LABEL: @tiles
// CHECK: "ttnn.reshape"
// CHECK: "ttnn.concat"
func.func @tiles(%x: tensor<256x768xbf16>, %y: tensor<8x32x768xbf16>) -> tensor<8x64x768xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [8 : i32, 32 : i32, 768 : i32]}> : (tensor<256x768xbf16>) -> tensor<8x32x768xbf16>
  %1 = "ttir.concat"(%0, %y) <{dim = 1 : si32}> : (tensor<8x32x768xbf16>, tensor<8x32x768xbf16>) -> tensor<8x64x768xbf16>
  return %1 : tensor<8x64x768xbf16>
}

// CHECK-LABEL: @pixels
// CHECK: "ttnn.reshape_row_major"
func.func @pixels(%x: tensor<784x2048xbf16>) -> tensor<16x49x2048xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [16 : i32, 49 : i32, 2048 : i32]}> : (tensor<784x2048xbf16>) -> tensor<16x49x2048xbf16>
  return %0 : tensor<16x49x2048xbf16>
}
