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

// Equal constants are one, but for what an op overwrites.
// CHECK-LABEL: func.func private @equal_const_eval
// CHECK: %[[ONE:.*]] = "ttnn.full"() <{shape = array<i32: 1, 1>
// CHECK-NEXT: return %[[ONE]] :
// CHECK-LABEL: func.func @equal
// CHECK-COUNT-2: "ttnn.full"
func.func @equal(%x: tensor<32x32xbf16>, %k: tensor<1x4x1x32xbf16>, %i: tensor<1xi32>) -> (tensor<32x32xbf16>, tensor<1x4x64x32xbf16>, tensor<1x4x64x32xbf16>) {
  %0 = "ttir.ones"() <{shape = array<i32: 32, 32>}> : () -> tensor<32x32xbf16>
  %1 = "ttir.ones"() <{shape = array<i32: 32, 32>}> : () -> tensor<32x32xbf16>
  %2 = "ttir.atan2"(%x, %0) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %3 = "ttir.atan2"(%2, %1) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %4 = "ttir.zeros"() <{shape = array<i32: 1, 4, 64, 32>}> : () -> tensor<1x4x64x32xbf16>
  %5 = "ttir.zeros"() <{shape = array<i32: 1, 4, 64, 32>}> : () -> tensor<1x4x64x32xbf16>
  %6 = "ttir.update_cache"(%4, %k, %i) <{batch_offset = 0 : i32}> : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>, tensor<1xi32>) -> tensor<1x4x64x32xbf16>
  %7 = "ttir.fill_cache"(%5, %k) <{batch_offset = 0 : i32}> : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>) -> tensor<1x4x64x32xbf16>
  return %3, %6, %7 : tensor<32x32xbf16>, tensor<1x4x64x32xbf16>, tensor<1x4x64x32xbf16>
}
