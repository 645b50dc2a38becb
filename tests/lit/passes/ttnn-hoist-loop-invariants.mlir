// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-hoist-loop-invariants %s | filecheck %s

// Invariants of an iteration are computed before the loop.
// CHECK-LABEL: func.func @f
// CHECK: %[[SCALED:.*]] = "ttnn.exp"(%w)
// CHECK: "ttcore.while_loop"(%x, %[[SCALED]]) <{callee = @body, trip_count = 8
// CHECK-LABEL: func.func private @body
// CHECK-NOT: "ttnn.exp"
// CHECK: "ttnn.multiply"
func.func @f(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttcore.while_loop"(%x, %w) <{callee = @body, trip_count = 8 : i64, operandSegmentSizes = array<i32: 0, 2>}> : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
func.func private @body(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>) -> tensor<32x32xbf16> attributes {ttcodegen.loop_body = "counted"} {
  %0 = "ttir.exp"(%w) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.multiply"(%x, %0) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
