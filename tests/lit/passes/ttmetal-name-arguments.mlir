// RUN: ttcodegen-opt --ttmetal-name-arguments %s | filecheck %s

// An argument that a compiler named after the op that uses it is the bias of the layer of its weight.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %x: tensor<32x64xbf16>,
// CHECK-SAME: ttir.name = "fc.weight"}
// CHECK-SAME: ttir.name = "input_0_add_3", ttcodegen.title = "fc_bias"
func.func @layer(%x: tensor<32x64xbf16>,
                 %arg1: tensor<64x32xbf16> {ttir.name = "fc.weight"},
                 %arg2: tensor<32xbf16> {ttir.name = "input_0_add_3"}) -> tensor<32x32xbf16> {
  %0 = "ttir.linear"(%x, %arg1, %arg2) : (tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
