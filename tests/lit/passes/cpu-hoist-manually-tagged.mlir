// RUN: ttcodegen-opt --cpu-hoist-manually-tagged %s | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline %s | filecheck --check-prefix=METAL %s
// RUN: ttcodegen-opt --cpu-hoist-manually-tagged %s | ttcodegen-opt --ttir-to-ttnn-common-pipeline | filecheck --check-prefix=TTNN %s

// Marked ops are hoisted, with their constant operands; the others stay.

// CHECK: func.func @main
// CHECK: func.call @cpu_hoisted_ttir_softmax_{{[0-9a-f]+}}(%x)
// CHECK: func.call @cpu_hoisted_ttir_multiply_{{[0-9a-f]+}}
// CHECK: "ttir.relu"
// CHECK: ttcore.cpu_module
// CHECK: "ttir.softmax"(%input)
// CHECK: "ttir.full"
// CHECK-NEXT: "ttir.multiply"(%lhs,

// METAL: func.call @cpu_hoisted_ttir_softmax
// METAL: "ttmetal.enqueue_write_buffer"
// METAL: "ttmetal.run_program"
// METAL: ttcore.cpu_module
// METAL: "ttir.exp"

// TTNN: "ttnn.softmax"
// TTNN-NOT: call
func.func @main(%x: tensor<4x64xbf16>) -> tensor<4x64xbf16> {
  %two = "ttir.full"() <{shape = array<i32: 4, 64>, fill_value = 2.0 : f32}> : () -> tensor<4x64xbf16>
  %0 = "ttir.softmax"(%x) <{dimension = 1 : si32}> {ttir.should_hoist} : (tensor<4x64xbf16>) -> tensor<4x64xbf16>
  %1 = "ttir.multiply"(%0, %two) {ttir.should_hoist} : (tensor<4x64xbf16>, tensor<4x64xbf16>) -> tensor<4x64xbf16>
  %2 = "ttir.relu"(%1) : (tensor<4x64xbf16>) -> tensor<4x64xbf16>
  return %2 : tensor<4x64xbf16>
}
