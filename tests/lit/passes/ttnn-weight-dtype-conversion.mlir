// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-weight-dtype-conversion='target=bfp_bf8' %s | filecheck %s

// The operand that is a parameter is converted; the other one is not.
// CHECK: %[[W:.*]] = "ttnn.composite_to_layout"(%w)
// CHECK: "ttnn.matmul"(%x, %[[W]])
func.func @product(%x: tensor<64x64xbf16>, %w: tensor<64x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<64x32xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x64xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}
