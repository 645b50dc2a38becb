// RUN: ttcodegen-opt %s | filecheck %s
// RUN: ttcodegen-opt %s > %t
// RUN: ttcodegen-opt %t | diff - %t
// RUN: ttcodegen-opt --mlir-print-op-generic %s | ttcodegen-opt | diff - %t

#l1 = #ttcore.memory_space<l1>
#layout = #tt.metal_layout<(d0, d1) -> (d0, d1), undef, <2x4>, memref<32x32xf32, #l1>>

// CHECK: #l1_ = #ttcore.memory_space<l1>
// CHECK: #layout = #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <2x4>, memref<32x32xf32, #l1_>>
// CHECK: module attributes {ttcore.device = #ttcore.device<workerGrid = #ttcore.grid<8x16, (d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0, d1 mod 8)>, meshShape = 1x2, chipIds = [0, 1]>}
module attributes {tt.device = #tt.device<workerGrid = #tt.grid<8x16, (d0, d1) -> ((d0 floordiv 8) * 2 + d1 floordiv 8, d0, d1 mod 8)>, meshShape = 1x2, chipIds = [0, 1]>} {
  // CHECK: func.func @main(%x: tensor<64x128xf32>)
  func.func @main(%x: tensor<64x128xf32>) {
    // CHECK: "ttmetal.create_buffer"() <{{.*}}memory_space = #l1_, {{.*}} -> tensor<64x128xf32, #layout>
    %0 = "ttmetal.create_buffer"() <{address = 1024 : i64, memory_space = #l1, size = 4096 : i64}> : () -> tensor<64x128xf32, #layout>
    %1 = "ttmetal.enqueue_write_buffer"(%x, %0) : (tensor<64x128xf32>, tensor<64x128xf32, #layout>) -> tensor<64x128xf32, #layout>
    // CHECK: kernelConfigs = [#ttmetal.compute_config<@exp, #ttmetal.core_range<0x0, 2x4>, #ttmetal.kernel_args<rt_args = [<buffer_address[0]>] ct_args = [<cb_port[0]>]>, hifi4, false, false, false, [default]>]
    "ttmetal.enqueue_program"(%1) <{kernelConfigs = [#ttmetal.compute_config<@exp, #ttmetal.core_range<0x0, 2x4>, #ttmetal.kernel_args< rt_args = [<buffer_address[0]>] ct_args = [<cb_port[0]>]>, hifi4, false, false, false, [default]>]}> : (tensor<64x128xf32, #layout>) -> ()
    "ttmetal.finish"() : () -> ()
    "ttmetal.deallocate_buffer"(%1) : (tensor<64x128xf32, #layout>) -> ()
    return
  }
  func.func private @exp() attributes {ttkernel.thread = #ttkernel.thread<compute>} {
    return
  }
}
