// RUN: ttcodegen-opt --ttir-to-ttmetal-fe-pipeline --convert-ttir-to-ttmetal --ttmetal-constants-first %s | filecheck %s

// The sum of two weights is computed once; values that depend on the input are not, and a result
// belongs to the caller.
// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[W:.*]] = "ttmetal.create_buffer"
// CHECK-NEXT: "ttmetal.run_program"(%a, %b, %[[W]])
// CHECK-NEXT: %[[X:.*]] = "ttmetal.create_buffer"
// CHECK-NEXT: "ttmetal.run_program"(%x, %[[X]])
func.func @f(%x: tensor<32x64xbf16>,
             %a: tensor<64x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
             %b: tensor<64x32xbf16> {ttcore.argument_type = #ttcore.argument_type<constant>})
    -> (tensor<32x32xbf16>, tensor<64x32xbf16>) {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : si32}> : (tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = "ttir.add"(%a, %b) : (tensor<64x32xbf16>, tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %2 = "ttir.matmul"(%0, %1) : (tensor<32x64xbf16>, tensor<64x32xbf16>) -> tensor<32x32xbf16>
  %3 = "ttir.exp"(%a) : (tensor<64x32xbf16>) -> tensor<64x32xbf16>
  return %2, %3 : tensor<32x32xbf16>, tensor<64x32xbf16>
}
