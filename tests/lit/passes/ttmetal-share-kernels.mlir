// RUN: ttcodegen-opt --ttir-to-ttmetal-fe-pipeline --convert-ttir-to-ttmetal --ttmetal-share-kernels %s | filecheck %s

// The writers differ in names only, the compute kernels in what they compute.
// CHECK-LABEL: func.func @two
// CHECK: "ttmetal.run_program"
// CHECK-SAME: function = "read_tiles"
// CHECK-SAME: function = "compute_exp"
// CHECK-SAME: name = "write_tiles"
// CHECK-SAME: function = "write_tiles"
// CHECK-SAME: name = "cb_output"
// CHECK-SAME: name = "output_address"
// CHECK: "ttmetal.run_program"
// CHECK-SAME: function = "compute_sin"
// CHECK-SAME: function = "write_tiles"
// CHECK-NOT: func.func @write_exp
// CHECK: func.func @write_tiles
// CHECK-NOT: func.func @write_
func.func @two(%x: tensor<64x96xbf16>, %y: tensor<512x512xbf16>) -> (tensor<64x96xbf16>, tensor<512x512xbf16>) {
  %fast = "ttir.exp"(%x) : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  %wave = "ttir.sin"(%y) : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %fast, %wave : tensor<64x96xbf16>, tensor<512x512xbf16>
}
