// RUN: ttcodegen-opt --ttcore-register-device --ttir-to-ttir-generic --convert-ttir-to-ttmetal %s | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttmetal-backend-pipeline %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// Programs and kernels read back.
// RUN: ttcodegen-opt %t.mlir | diff - %t.mlir

// CHECK-LABEL: func.func @f
// CHECK: %[[B:.*]] = "ttmetal.create_buffer"()
// CHECK: "ttmetal.run_program"(%x, %y, %[[B]])
// CHECK: func.func @compute_add() attributes {ttkernel.thread = #ttkernel.thread<compute>
// CHECK: ttkernel.cb_wait_front
// CHECK: ttkernel.add_tiles_init
// CHECK: ttkernel.add_tiles
func.func @f(%x: tensor<64x96xbf16>, %y: tensor<64x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.add"(%x, %y) : (tensor<64x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
