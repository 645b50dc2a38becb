// The command lines of the reference system's documents work here, names of the programs apart.
// RUN: ttcodegen-opt --ttir-load-system-desc --ttir-layout --convert-ttir-to-ttnn --convert-ttnn-to-emitc %s -o %t.c.mlir
// RUN: filecheck %s --check-prefix=EMITC --input-file=%t.c.mlir
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s -o %t.ttnn.mlir
// RUN: filecheck %s --check-prefix=TTNN --input-file=%t.ttnn.mlir
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline="system-desc-path=wormhole_b0" %s > %t.mlir
// RUN: diff %t.ttnn.mlir %t.mlir
// RUN: ttcodegen-opt --ttnn-modify-signatures-for-dylib --convert-ttnn-to-emitc %t.mlir > %t2.mlir
// RUN: ttcodegen-opt --ttir-load-system-desc="path=wormhole_b0" --ttir-implicit-device --ttir-layout --convert-ttir-to-ttnn %s > %t3.mlir
// RUN: ttcodegen-opt --ttir-to-emitc-pipeline %s | filecheck %s --check-prefix=EMITC

// EMITC: callee = "ttnn::multiply"
// TTNN: #dram = #ttnn.buffer_type<dram>
// TTNN: #[[LAYOUT:.*]] = #ttnn.ttnn_layout<{{.*}}!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
// TTNN: "ttnn.multiply"{{.*}} -> tensor<64x128xbf16, #[[LAYOUT]]>
#any_device = #tt.operand_constraint<dram|l1|scalar|tile|any_device|any_device_tile>
module attributes {} {
  func.func @forward(%arg0: tensor<64x128xbf16>, %arg1: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
    %0 = tensor.empty() : tensor<64x128xbf16>
    %1 = "ttir.multiply"(%arg0, %arg1, %0) <{operandSegmentSizes = array<i32: 2, 1>, operand_constraints = [#any_device, #any_device, #any_device]}> : (tensor<64x128xbf16>, tensor<64x128xbf16>, tensor<64x128xbf16>) -> tensor<64x128xbf16>
    return %1 : tensor<64x128xbf16>
  }
}
