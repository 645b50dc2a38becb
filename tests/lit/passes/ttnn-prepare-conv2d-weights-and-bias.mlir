// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-prepare-conv2d-weights-and-bias %s | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK: "ttnn.prepare_conv2d_weights"(%w)
// CHECK-SAME: tensor<16x32x3x3xbf16
// CHECK-SAME: tensor<1x1x288x16xbf16
// CHECK: "ttnn.conv2d"
func.func @f(%x: tensor<1x8x8x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<16x32x3x3xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<1x6x6x16xbf16> {
  %0 = "ttir.conv2d"(%x, %w) <{stride = array<i32: 1, 1>, padding = array<i32: 0, 0, 0, 0>, dilation = array<i32: 1, 1>, groups = 1 : i32}> : (tensor<1x8x8x32xbf16>, tensor<16x32x3x3xbf16>) -> tensor<1x6x6x16xbf16>
  return %0 : tensor<1x6x6x16xbf16>
}
