// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-decompose-layouts --ttnn-deallocate %s | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK: %[[E:.*]] = "ttnn.exp"(%x)
// CHECK: %[[S:.*]] = "ttnn.sin"(%[[E]])
// CHECK-NEXT: "ttnn.deallocate"(%[[E]])
// CHECK-NEXT: func.return %[[S]]
func.func @f(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.sin"(%0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
