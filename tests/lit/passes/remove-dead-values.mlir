// RUN: ttcodegen-opt --convert-ttir-to-ttnn --remove-dead-values %s | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: func.return %x
func.func @f(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %x : tensor<32x32xbf16>
}
