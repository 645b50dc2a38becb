// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-batched-rows %s | filecheck %s

// Tiles pad each of the matrices: a reshape to rows of all of them moves nearly every row.
// CHECK-LABEL: @matrices
// CHECK-NOT: ttnn.reshape
// CHECK: "ttnn.matmul"({{.*}}) : (tensor<8x197x768xbf16>, tensor<768x768xbf16>) -> tensor<8x197x768xbf16>
// CHECK-NOT: ttnn.reshape
// CHECK: return
func.func @matrices(%x: tensor<8x197x768xbf16>, %w: tensor<768x768xbf16>) -> tensor<8x197x768xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [1576 : i32, 768 : i32]}> : (tensor<8x197x768xbf16>) -> tensor<1576x768xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<1576x768xbf16>, tensor<768x768xbf16>) -> tensor<1576x768xbf16>
  %2 = "ttir.reshape"(%1) <{shape = [8 : i32, 197 : i32, 768 : i32]}> : (tensor<1576x768xbf16>) -> tensor<8x197x768xbf16>
  return %2 : tensor<8x197x768xbf16>
}

// A left factor has fewer elements than a wide product.
// CHECK-LABEL: @sequences
// CHECK: "ttnn.reshape"({{.*}} : (tensor<576x256xbf16>) -> tensor<32x18x256xbf16>
// CHECK: "ttnn.matmul"({{.*}}) : (tensor<32x18x256xbf16>, tensor<256x16384xbf16>) -> tensor<32x18x16384xbf16>
// CHECK: return
func.func @sequences(%x: tensor<576x256xbf16>, %w: tensor<256x16384xbf16>) -> tensor<32x18x16384xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<576x256xbf16>, tensor<256x16384xbf16>) -> tensor<576x16384xbf16>
  %1 = "ttir.reshape"(%0) <{shape = [32 : i32, 18 : i32, 16384 : i32]}> : (tensor<576x16384xbf16>) -> tensor<32x18x16384xbf16>
  return %1 : tensor<32x18x16384xbf16>
}

// Reshapes of whole tiles move nothing.
// CHECK-LABEL: @views
// CHECK: "ttnn.matmul"({{.*}}) : (tensor<1536x768xbf16>, tensor<768x768xbf16>) -> tensor<1536x768xbf16>
// CHECK: return
func.func @views(%x: tensor<8x192x768xbf16>, %w: tensor<768x768xbf16>) -> tensor<8x192x768xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [1536 : i32, 768 : i32]}> : (tensor<8x192x768xbf16>) -> tensor<1536x768xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<1536x768xbf16>, tensor<768x768xbf16>) -> tensor<1536x768xbf16>
  %2 = "ttir.reshape"(%1) <{shape = [8 : i32, 192 : i32, 768 : i32]}> : (tensor<1536x768xbf16>) -> tensor<8x192x768xbf16>
  return %2 : tensor<8x192x768xbf16>
}
