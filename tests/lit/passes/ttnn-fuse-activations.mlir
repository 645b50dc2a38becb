// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-fuse-activations %s | filecheck %s

// CHECK-LABEL: @product
// CHECK: "ttnn.matmul"(%x, %w) <{activation = "silu"}>
// CHECK-NOT: ttnn.silu
func.func @product(%x: tensor<32x64xbf16>, %w: tensor<64x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.silu"(%0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}

// A matmul with other uses is not fused.
// CHECK-LABEL: @shared
// CHECK: "ttnn.silu"
func.func @shared(%x: tensor<32x64xbf16>, %w: tensor<64x32xbf16>) -> (tensor<32x32xbf16>, tensor<32x32xbf16>) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.silu"(%0) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0, %1 : tensor<32x32xbf16>, tensor<32x32xbf16>
}
