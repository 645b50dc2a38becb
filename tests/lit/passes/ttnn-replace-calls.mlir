// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-replace-calls='overrides={{"version": 1, "functions": {"gated": {"active": {"calls": [{"name": "opened", "op": "sigmoid", "operands": ["active:0"]}, {"op": "multiply", "operands": ["gate", "opened"]}]}}, "inverse": {"reciprocal": {"calls": [{"op": "rsqrt", "operands": ["sqrt:0"]}]}}}}}' %s | filecheck %s

// CHECK-LABEL: @gated
// CHECK: %opened = "ttnn.sigmoid"(%gate)
// CHECK-NEXT: %active = "ttnn.multiply"(%gate, %opened)
// CHECK-NOT: ttnn.silu
func.func @gated(%gate: tensor<32x64xbf16>, %up: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  %active = "ttir.silu"(%gate) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %product = "ttir.multiply"(%active, %up) : (tensor<32x64xbf16>, tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %product : tensor<32x64xbf16>
}

// A call that only the replaced one reads goes with it.
// CHECK-LABEL: @inverse
// CHECK: "ttnn.rsqrt"(%x)
// CHECK-NOT: ttnn.sqrt
func.func @inverse(%x: tensor<32x64xbf16>) -> tensor<32x64xbf16> {
  %0 = "ttir.sqrt"(%x) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.reciprocal"(%0) : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %1 : tensor<32x64xbf16>
}
