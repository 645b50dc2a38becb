// RUN: ttcodegen-opt --ttir-unroll-loops %s | filecheck %s

// CHECK-LABEL: func.func @counted
// CHECK-COUNT-3: "ttir.multiply"
// CHECK-NOT: "ttir.multiply"
// CHECK: return
func.func @counted(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttcore.while_loop"(%x, %w) <{callee = @body, trip_count = 3 : i64, operandSegmentSizes = array<i32: 0, 2>}> : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
func.func private @body(%x: tensor<32x32xbf16>, %w: tensor<32x32xbf16>) -> tensor<32x32xbf16> attributes {ttcodegen.loop_body = "counted"} {
  %0 = "ttir.multiply"(%x, %w) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}

// Loops whose condition is only known at run time stay.
// CHECK-LABEL: func.func @conditional
// CHECK: "ttcore.while_loop"(%going, %x) <{callee = @again
// CHECK: func.func private @again
// CHECK-NOT: @body
func.func @conditional(%going: tensor<i1>, %x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttcore.while_loop"(%going, %x) <{callee = @again, operandSegmentSizes = array<i32: 1, 1>}> : (tensor<i1>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
func.func private @again(%x: tensor<32x32xbf16>) -> (tensor<i1>, tensor<32x32xbf16>) attributes {ttcodegen.loop_body = "conditional"} {
  %0 = "ttir.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
  %1 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0, %1 : tensor<i1>, tensor<32x32xbf16>
}
