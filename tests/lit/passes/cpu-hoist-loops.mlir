// RUN: ttcodegen-opt --cpu-hoist-loops %s | filecheck %s
// RUN: ttcodegen-opt --cpu-hoist-loops %s | ttcodegen-opt | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline %s | filecheck --check-prefix=METAL %s
// RUN: not ttcodegen-opt --ttir-to-ttmetal-pipeline="enable-cpu-hoist=false" %s

// The loop becomes a CPU function, with what it starts from if that is a number; its body is one as well.

// CHECK: ttcore.device_module
// CHECK: func.func @main(%going: {{.*}}, %x: tensor<64x64xf32>)
// CHECK: func.call @[[LOOP:cpu_hoisted_ttir_loop_[0-9a-f]+]](%going, %x) {ttir.cpu_hoisted_call}
// CHECK: "ttir.exp"
// CHECK: ttcore.cpu_module
// CHECK: func.func @body({{.*}} attributes {{{.*}}tt.function_type = "forward_cpu"
// CHECK: func.func @[[LOOP]]({{.*}} attributes {tt.function_type = "forward_cpu"}
// CHECK: "ttir.full"
// CHECK: "ttcore.while_loop"
// CHECK-SAME: callee = @body
// CHECK-NEXT: func.return

// METAL: "ttmetal.enqueue_read_buffer"
// METAL: func.call @cpu_hoisted_ttir_loop
// METAL: "ttmetal.run_program"
func.func @main(%going: tensor<1xi1>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %one = "ttir.full"() <{shape = array<i32: 64, 64>, fill_value = 1.0 : f32}> : () -> tensor<64x64xf32>
  %0 = "ttcore.while_loop"(%going, %one, %x) <{callee = @body, operandSegmentSizes = array<i32: 1, 2>}> : (tensor<1xi1>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "ttir.exp"(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
func.func private @body(%y: tensor<64x64xf32>, %x: tensor<64x64xf32>) -> (tensor<1xi1>, tensor<64x64xf32>) attributes {ttcodegen.loop_body = "conditional"} {
  %0 = "ttir.add"(%y, %x) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = "ttir.slice_static"(%0) <{begins = [0 : i32, 0 : i32], ends = [1 : i32, 1 : i32], step = [1 : i32, 1 : i32]}> : (tensor<64x64xf32>) -> tensor<1x1xf32>
  %2 = "ttir.reshape"(%1) <{shape = [1 : i32]}> : (tensor<1x1xf32>) -> tensor<1xf32>
  %3 = "ttir.full"() <{shape = array<i32: 1>, fill_value = 9.0 : f32}> : () -> tensor<1xf32>
  %4 = "ttir.lt"(%2, %3) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
  return %4, %0 : tensor<1xi1>, tensor<64x64xf32>
}
