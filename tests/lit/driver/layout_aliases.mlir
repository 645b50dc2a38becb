// Layouts and memories are printed as aliases, so that tests of other tools find them.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// RUN: ttcodegen-opt %t.mlir | diff - %t.mlir
// RUN: ttcodegen-opt --mlir-print-op-generic %t.mlir | ttcodegen-opt | diff - %t.mlir
// RUN: ttcodegen-translate --ttnn-to-flatbuffer %t.mlir -o %t.ttnn
// RUN: ttcodegen-translate --flatbuffer-to-mlir %t.ttnn | ttcodegen-translate --ttnn-to-flatbuffer -o %t.2.ttnn
// RUN: cmp %t.ttnn %t.2.ttnn
// RUN: ttcodegen-translate --flatbuffer-to-mlir %t.ttnn | filecheck %s
// CHECK: #dram = #ttnn.buffer_type<dram>
// CHECK: #[[TILED_LAYOUT:.*]] = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x4x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
module attributes {} {
  func.func @forward(%arg0: tensor<64x128xbf16>, %arg1: tensor<128x96xbf16>) -> tensor<64x96xbf16> {
    %0 = tensor.empty() : tensor<64x96xbf16>
    // CHECK: %[[C:.*]] = "ttnn.matmul"{{.*}} : (tensor<64x128xbf16, #[[TILED_LAYOUT]]>,
    %1 = "ttir.matmul"(%arg0, %arg1, %0) : (tensor<64x128xbf16>, tensor<128x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
    return %1 : tensor<64x96xbf16>
  }
}
