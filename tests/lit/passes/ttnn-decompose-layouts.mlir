// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-decompose-layouts %s | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: composite_to_layout
// CHECK: "ttnn.to_layout"(%x)
// CHECK-NEXT: "ttnn.exp"
func.func @f(%x: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
