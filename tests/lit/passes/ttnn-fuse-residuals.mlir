// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-fuse-residuals %s | filecheck %s

// A sum that is only normalized is part of that call.
// CHECK-LABEL: @after
// CHECK-NOT: ttnn.add
// CHECK: "ttnn.layer_norm"(%x, %w, %w, %y)
func.func @after(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>, %w: tensor<64xbf16>) -> tensor<32x64xbf16> {
  %0 = "ttir.add"(%x, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.layer_norm"(%0, %w, %w) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}

// CHECK-LABEL: @unweighted
// CHECK: "ttnn.rms_norm"(%x, %y)
// CHECK-SAME: array<i32: 1, 0, 0, 1>
func.func @unweighted(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  %0 = "ttir.add"(%x, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.rms_norm"(%0) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}

// A sum that goes on is computed once.
// CHECK-LABEL: @before
// CHECK: "ttnn.add"
// CHECK: "ttnn.rms_norm"
func.func @before(%x: tensor<32x64xbf16>, %y: tensor<32x64xbf16>) -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
  %0 = "ttir.add"(%x, %y) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.rms_norm"(%0) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0, %1 : tensor<32x64xbf16>, tensor<32x64xbf16>
}

// The residual has the shape of the input, which is more than one row.
// CHECK-LABEL: @repeated
// CHECK: "ttnn.add"
// CHECK: "ttnn.add"
func.func @repeated(%x: tensor<32x64xbf16>, %y: tensor<1x64xbf16>) -> (tensor<32x64xbf16>, tensor<1x64xbf16>) {
  %0 = "ttir.add"(%x, %y) : (tensor<32x64xbf16>, tensor<1x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.rms_norm"(%0) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %2 = "ttir.add"(%y, %y) : (tensor<1x64xbf16>, tensor<1x64xbf16>) -> tensor<1x64xbf16>
  %3 = "ttir.rms_norm"(%2) <{normalized_shape = array<i64: 64>, epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<1x64xbf16>) -> tensor<1x64xbf16>
  return %1, %3 : tensor<32x64xbf16>, tensor<1x64xbf16>
}
