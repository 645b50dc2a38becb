// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline %s | filecheck %s --check-prefix=KEPT
// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline="weight-dtype=bfp_bf8" %s | filecheck %s
// RUN: ttcodegen-opt --ttmetal-weight-dtype-conversion="target-dtype=bfp_bf8" %s > %t
// RUN: not ttcodegen-opt --ttir-to-ttmetal-pipeline="set-math-fidelity=LoFi" %s 2>&1 | filecheck %s --check-prefix=FIDELITY

// KEPT: #[[LAYOUT:ttnn_layout[0-9]*]] = {{.*}}memref<4x3x!ttcore.tile<32x32, bf16>
// KEPT: func.func @f({{.*}}%w: tensor<128x96xbf16, #[[LAYOUT]]>
// CHECK: #[[LAYOUT:ttnn_layout[0-9]*]] = {{.*}}memref<4x3x!ttcore.tile<32x32, bfp_bf8>
// CHECK: func.func @f({{.*}}%w: tensor<128x96xbf16, #[[LAYOUT]]>
// FIDELITY: error: --ttir-to-ttmetal-pipeline: the option 'set-math-fidelity' cannot be LoFi
func.func @f(%x: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<128x96xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<64x96xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x128xbf16>, tensor<128x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
