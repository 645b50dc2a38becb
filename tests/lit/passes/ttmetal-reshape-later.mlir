// RUN: ttcodegen-opt --ttmetal-reshape-later %s | filecheck %s

// A row of its own for each user is padded to a row of tiles: silu runs before that reshape.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[S:.*]] = "ttir.silu"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
// CHECK-NEXT: "ttir.reshape"(%[[S]])
// CHECK-NEXT: func.return
func.func @f(%x: tensor<32x64xbf16>) -> tensor<32x1x64xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [32 : i32, 1 : i32, 64 : i32]}> : (tensor<32x64xbf16>) -> tensor<32x1x64xbf16>
  %1 = "ttir.silu"(%0) : (tensor<32x1x64xbf16>) -> tensor<32x1x64xbf16>
  return %1 : tensor<32x1x64xbf16>
}

// Together they take fewer tiles than apart.
// CHECK-LABEL: func.func @together
// CHECK-NEXT: "ttir.reshape"
// CHECK-NEXT: "ttir.silu"
func.func @together(%x: tensor<32x1x64xbf16>) -> tensor<32x64xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [32 : i32, 64 : i32]}> : (tensor<32x1x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.silu"(%0) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}

// The other operand would have to be reshaped instead.
// CHECK-LABEL: func.func @row
// CHECK-NEXT: %[[R:.*]] = "ttir.reshape"(%x)
// CHECK-NEXT: "ttir.add"(%[[R]], %y)
func.func @row(%x: tensor<1x1x64xbf16>, %y: tensor<1x64xbf16>) -> tensor<1x64xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [1 : i32, 64 : i32]}> : (tensor<1x1x64xbf16>) -> tensor<1x64xbf16>
  %1 = "ttir.add"(%0, %y) : (tensor<1x64xbf16>, tensor<1x64xbf16>) -> tensor<1x64xbf16>
  return %1 : tensor<1x64xbf16>
}
