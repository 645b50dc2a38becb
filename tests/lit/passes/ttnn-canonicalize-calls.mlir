// RUN: ttcodegen-opt --ttnn-canonicalize-calls %s | filecheck %s
// RUN: ttcodegen-opt --ttnn-to-ttnn-pipeline="enable-const-eval=false" %s | filecheck %s --check-prefix=LEGAL
// RUN: ttcodegen-opt --ttnn-to-ttnn-pipeline %s | filecheck %s --check-prefix=CACHED
// RUN: ttcodegen-opt --convert-ttnn-to-emitc="module-name=calls" %s | filecheck %s --check-prefix=CALL
// RUN: ttcodegen-translate --ttnn-to-flatbuffer %s -o %t.ttnn

// CHECK-NOT: get_device
// CHECK: "ttnn.full"()
// CHECK: "ttnn.add"
// CHECK-NOT: deallocate
// LEGAL: "ttnn.add"
// LEGAL: "ttnn.deallocate"
// Constants are evaluated once and cached for the next call.
// CACHED: "ttnn.full"()
// CACHED: "ttcore.load_cached"()
// CACHED: "ttnn.add"
// CACHED-NOT: deallocate
// CALL: ttnn::add
#dram = #ttnn.buffer_type<dram>
#layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
func.func @f(%x: tensor<32x32xf32, #layout>) -> tensor<32x32xf32, #layout> {
  %0 = "ttnn.get_device"() <{mesh_shape = #ttnn<mesh_shape 1x1>}> : () -> !ttnn.device
  %1 = "ttnn.ones"(%0) <{shape = #ttnn.shape<32x32>}> : (!ttnn.device) -> tensor<32x32xf32, #layout>
  %2 = "ttnn.add"(%x, %1) : (tensor<32x32xf32, #layout>, tensor<32x32xf32, #layout>) -> tensor<32x32xf32, #layout>
  "ttnn.deallocate"(%1) <{force = false}> : (tensor<32x32xf32, #layout>) -> ()
  return %2 : tensor<32x32xf32, #layout>
}
