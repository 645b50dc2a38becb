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

// An activation that no product can apply becomes one of the operand of the sum after it.
func.func @gated(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
// CHECK-LABEL: @gated
// CHECK-NOT: ttnn.silu
// CHECK: "ttnn.multiply"(%x, %y) <{lhs_activation = "silu"}>
// CHECK: "ttnn.add"(%x, %y) <{rhs_activation = "sigmoid"}>
  %0 = "ttir.silu"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.multiply"(%0, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %2 = "ttir.sigmoid"(%y) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %3 = "ttir.add"(%x, %2) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1, %3 : tensor<32x64xbf16>, tensor<32x64xbf16>
}

// A result that is used twice stays a call.
func.func @squared(%x: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
// CHECK-LABEL: @squared
// CHECK: "ttnn.silu"
  %0 = "ttir.silu"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.multiply"(%0, %0) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}
