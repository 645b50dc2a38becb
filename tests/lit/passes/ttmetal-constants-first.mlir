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

// A view of a weight that is needed in each call is made in each call, and so is what reads it.
// CHECK-LABEL: func.func @view
// CHECK: %[[VIEW:.*]] = "ttmetal.view"(%w)
// CHECK: "ttmetal.run_program"(%[[VIEW]], %a,
// CHECK: "ttmetal.run_program"(%[[VIEW]], %probabilities,
func.func @view(%x: tensor<64x64xbf16>,
                %w: tensor<32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>},
                %a: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> tensor<1x32x64xbf16> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : si32}> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %1 = "ttir.reshape"(%w) <{shape = [1 : i32, 32 : i32, 64 : i32]}> : (tensor<32x64xbf16>) -> tensor<1x32x64xbf16>
  %2 = "ttir.matmul"(%1, %a) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
  %3 = "ttir.softmax"(%2) <{dimension = 2 : si32}> : (tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
  %4 = "ttir.matmul"(%1, %0) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>) -> tensor<1x32x64xbf16>
  %5 = "ttir.multiply"(%4, %3) : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> tensor<1x32x64xbf16>
  return %5 : tensor<1x32x64xbf16>
}
