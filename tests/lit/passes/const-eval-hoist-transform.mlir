// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --const-eval-hoist-transform %s | filecheck %s

// CHECK-LABEL: func.func private @f_const_eval
// CHECK: "ttnn.exp"
// CHECK-LABEL: func.func @f
// CHECK: "ttcore.load_cached"(%w) <{callee = @f_const_eval}>
// CHECK-NOT: "ttnn.exp"
// CHECK: "ttnn.multiply"
func.func @f(%x: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%w) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.multiply"(%x, %0) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
