// RUN: ttcodegen-opt --cpu-hoist %s | filecheck %s
// RUN: ttcodegen-opt --cpu-hoist %s | ttcodegen-opt | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline %s | filecheck --check-prefix=METAL %s
// RUN: not ttcodegen-opt --ttir-to-ttmetal-pipeline="enable-cpu-hoist=false" %s

// Ops with device programs stay; equal ops share a function; the function of a cache updates it in place.

// CHECK: ttcore.device_module
// CHECK: func.func @main
// CHECK: "ttir.add"
// CHECK: func.call @[[POWER:cpu_hoisted_ttir_pow_[0-9a-f]+]](%{{.*}}) {ttir.cpu_hoisted_call}
// CHECK: func.call @[[POWER]]
// CHECK: func.call @cpu_hoisted_ttir_paged_update_cache_{{.*}} -> ()
// CHECK: func.func private @[[POWER]]({{.*}} attributes {tt.function_type = "forward_cpu_declaration"}
// CHECK: ttcore.cpu_module
// CHECK: func.func @[[POWER]](%lhs: {{.*}} attributes {tt.function_type = "forward_cpu"}
// CHECK-NEXT: "ttir.pow"(%
// CHECK-NEXT: func.return

// METAL: "ttmetal.run_program"
// METAL: "ttmetal.enqueue_read_buffer"
// METAL: func.call @cpu_hoisted_ttir_pow
// METAL: func.call @cpu_hoisted_ttir_pow
// METAL: "ttmetal.enqueue_read_buffer"(%cache)
// METAL: func.call @cpu_hoisted_ttir_paged_update_cache
// METAL-NEXT: "ttmetal.enqueue_write_buffer"(%{{.*}}, %cache)
func.func @main(%x: tensor<4x64xsi32>, %cache: tensor<1x8x32x64xbf16>, %entry: tensor<1x2x8x64xbf16>, %at: tensor<2xsi32>) -> (tensor<4x64xsi32>, tensor<1x8x32x64xbf16>) {
  %0 = "ttir.add"(%x, %x) : (tensor<4x64xsi32>, tensor<4x64xsi32>) -> tensor<4x64xsi32>
  %1 = "ttir.pow"(%0, %0) : (tensor<4x64xsi32>, tensor<4x64xsi32>) -> tensor<4x64xsi32>
  %2 = "ttir.pow"(%1, %1) : (tensor<4x64xsi32>, tensor<4x64xsi32>) -> tensor<4x64xsi32>
  "ttir.paged_update_cache"(%cache, %entry, %at) <{share_cache = true, operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (tensor<1x8x32x64xbf16>, tensor<1x2x8x64xbf16>, tensor<2xsi32>) -> ()
  return %2, %cache : tensor<4x64xsi32>, tensor<1x8x32x64xbf16>
}
