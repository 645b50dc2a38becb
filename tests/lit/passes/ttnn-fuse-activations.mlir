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

// Sums of floats apply one before they are rounded.
// CHECK-LABEL: @sums
// CHECK: "ttnn.add"(%x, %y) <{activation = "relu"
// CHECK: "ttnn.multiply"(%x, %y) <{activation = "gelu"
// CHECK: "ttnn.add"(%i, %j) :
// CHECK: "ttnn.relu"
func.func @sums(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>, %i: tensor<32x64xi32>, %j: tensor<32x64xi32>) -> (tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<32x64xi32>) {
  %0 = "ttir.add"(%x, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.relu"(%0) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %2 = "ttir.multiply"(%x, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %3 = "ttir.gelu"(%2) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %4 = "ttir.add"(%i, %j) : (tensor<32x64xi32>, tensor<32x64xi32>) -> tensor<32x64xi32>
  %5 = "ttir.relu"(%4) : (tensor<32x64xi32>) -> tensor<32x64xi32>
  return %1, %3, %5 : tensor<32x64xbf16>, tensor<32x64xbf16>, tensor<32x64xi32>
}
