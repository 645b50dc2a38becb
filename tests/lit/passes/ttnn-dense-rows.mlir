// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-dense-rows %s | filecheck %s

// Reshapes between ops that work row by row cancel.
// CHECK-LABEL: @rows
// CHECK-NOT: tensor<32x1x512xbf16>
// CHECK: "ttnn.exp"(%x) : (tensor<32x512xbf16>) -> tensor<32x512xbf16>
// CHECK-NOT: ttnn.reshape
// CHECK: return
func.func @rows(%x: tensor<32x512xbf16>) -> tensor<32x512xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [32 : i32, 1 : i32, 512 : i32]}> : (tensor<32x512xbf16>) -> tensor<32x1x512xbf16>
  %1 = "ttir.exp"(%0) : (tensor<32x1x512xbf16>) -> tensor<32x1x512xbf16>
  %2 = "ttir.reshape"(%1) <{shape = [32 : i32, 512 : i32]}> : (tensor<32x1x512xbf16>) -> tensor<32x512xbf16>
  return %2 : tensor<32x512xbf16>
}

// An op that broadcasts along some of the row dimensions is unchanged.
// CHECK-LABEL: @broadcast
// CHECK: "ttnn.add"({{.*}}) : (tensor<8x4x512xbf16>, tensor<1x4x512xbf16>) -> tensor<8x4x512xbf16>
func.func @broadcast(%x: tensor<32x512xbf16>, %y: tensor<1x4x512xbf16>) -> tensor<8x4x512xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [8 : i32, 4 : i32, 512 : i32]}> : (tensor<32x512xbf16>) -> tensor<8x4x512xbf16>
  %1 = "ttir.add"(%0, %y) : (tensor<8x4x512xbf16>, tensor<1x4x512xbf16>) -> tensor<8x4x512xbf16>
  return %1 : tensor<8x4x512xbf16>
}
