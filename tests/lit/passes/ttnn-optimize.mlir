// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-optimize %s | filecheck %s
// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-optimize='level=2' %s | filecheck %s --check-prefix=SHARDS

// Tensors between calls are in L1; results are in DRAM.
// CHECK: #[[DRAM:.*]] = #ttnn.ttnn_layout<{{.*}}memref<64x64x!ttcore.tile<32x32, bf16>, #dram>
// CHECK: #[[L1:.*]] = #ttnn.ttnn_layout<{{.*}}memref<64x64x!ttcore.tile<32x32, bf16>, #l1_>
// CHECK: "ttnn.matmul"({{.*}}) <{{.*}}matmul_program_config = #ttnn.matmul_multi_core_reuse_multi_cast_{{(1d_)?}}program_config<
// CHECK-SAME: math_fidelity = hifi2
// CHECK-SAME: -> tensor<2048x2048xbf16, #[[L1]]>
// CHECK: "ttnn.exp"
// CHECK-SAME: -> tensor<2048x2048xbf16, #[[DRAM]]>
// SHARDS: "ttnn.matmul"
// SHARDS: "ttnn.exp"
func.func @chain(%x: tensor<2048x64xbf16>, %w: tensor<64x2048xbf16>) -> tensor<2048x2048xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<2048x64xbf16>, tensor<64x2048xbf16>) -> tensor<2048x2048xbf16>
  %1 = "ttir.exp"(%0) : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
  return %1 : tensor<2048x2048xbf16>
}
