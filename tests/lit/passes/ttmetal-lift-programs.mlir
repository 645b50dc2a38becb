// RUN: ttcodegen-opt --ttmetal-lift-programs %s | filecheck %s
// RUN: ttcodegen-opt --ttir-to-ttmetal-backend-pipeline %s | filecheck %s --check-prefix=PROGRAM
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s --check-prefix=CALL
// RUN: ttcodegen-opt --convert-ttmetal-to-emitc="module-name=listing" %s -o %t.emitc.mlir
// RUN: mkdir %t.cpp && ttcodegen-translate --mlir-to-cpp %t.emitc.mlir -o %t.cpp
// RUN: filecheck %s --check-prefix=HOST --input-file=%t.cpp/src/listing.cpp
// RUN: filecheck %s --check-prefix=KERNEL --input-file=%t.cpp/kernels/compute_multiply.cpp
// RUN: ttcodegen-translate --ttmetal-to-flatbuffer %s -o %t.ttm

// CHECK: func.func @forward(%x: tensor<64x128xf32>, %y: tensor<64x128xf32>) -> tensor<64x128xf32> attributes
// CHECK-NEXT: "ttir.multiply"(%x, %y)
// CHECK-NEXT: func.return
// PROGRAM: "ttmetal.run_program"
// CALL: "ttnn.multiply"
// HOST: namespace listing {
// KERNEL: void kernel_main() {
#l1_ = #tt.memory_space<l1>
#system = #tt.memory_space<system>
#layout = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #system>>
#layout1 = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #l1_>>
func.func @forward(%x: tensor<64x128xf32, #layout>, %y: tensor<64x128xf32, #layout>) -> tensor<64x128xf32, #layout> attributes {tt.arg_alloc = [#tt.arg_alloc<0, 32768, system>, #tt.arg_alloc<0, 32768, system>]} {
  %0 = "ttmetal.alloc"() <{address = 262144 : i64, memory_space = #l1_, size = 32768 : i64}> : () -> tensor<64x128xf32, #layout1>
  %1 = "ttmetal.host_write"(%x, %0) : (tensor<64x128xf32, #layout>, tensor<64x128xf32, #layout1>) -> tensor<64x128xf32, #layout1>
  %2 = "ttmetal.alloc"() <{address = 294912 : i64, memory_space = #l1_, size = 32768 : i64}> : () -> tensor<64x128xf32, #layout1>
  %3 = "ttmetal.host_write"(%y, %2) : (tensor<64x128xf32, #layout>, tensor<64x128xf32, #layout1>) -> tensor<64x128xf32, #layout1>
  %4 = "ttmetal.alloc"() <{address = 327680 : i64, memory_space = #l1_, size = 32768 : i64}> : () -> tensor<64x128xf32, #layout1>
  %5 = "ttmetal.dispatch"(%1, %3, %4) <{core_ranges = [#ttmetal.core_range<0x0, 1x1>, #ttmetal.core_range<0x0, 1x1>], operandSegmentSizes = array<i32: 2, 1>, operand_cb_port_mapping = [0, 1, 2], threadTypes = [#ttkernel.thread<noc0>, #ttkernel.thread<tensix>]}> ({
  ^bb0(%a: !ttkernel.cb<0, 0, memref<64x128xf32, #l1_>>, %b: !ttkernel.cb<0, 1, memref<64x128xf32, #l1_>>, %c: !ttkernel.cb<0, 2, memref<64x128xf32, #l1_>>):
    "ttkernel.cb_push_back"(%a) : (!ttkernel.cb<0, 0, memref<64x128xf32, #l1_>>) -> ()
    "ttkernel.return"() : () -> ()
  }, {
  ^bb0(%a: !ttkernel.cb<0, 0, memref<64x128xf32, #l1_>>, %b: !ttkernel.cb<0, 1, memref<64x128xf32, #l1_>>, %c: !ttkernel.cb<0, 2, memref<64x128xf32, #l1_>>):
    "ttkernel.builtin"(%a, %b, %c) <{kind = @eltwise, op = @mulitply}> : (!ttkernel.cb<0, 0, memref<64x128xf32, #l1_>>, !ttkernel.cb<0, 1, memref<64x128xf32, #l1_>>, !ttkernel.cb<0, 2, memref<64x128xf32, #l1_>>) -> ()
    "ttkernel.return"() : () -> ()
  }) : (tensor<64x128xf32, #layout1>, tensor<64x128xf32, #layout1>, tensor<64x128xf32, #layout1>) -> tensor<64x128xf32, #layout1>
  "ttmetal.dealloc"(%2) : (tensor<64x128xf32, #layout1>) -> ()
  "ttmetal.dealloc"(%0) : (tensor<64x128xf32, #layout1>) -> ()
  %6 = "ttmetal.alloc"() <{address = 0 : i64, memory_space = #system, size = 32768 : i64}> : () -> tensor<64x128xf32, #layout>
  %7 = "ttmetal.host_read"(%5, %6) : (tensor<64x128xf32, #layout1>, tensor<64x128xf32, #layout>) -> tensor<64x128xf32, #layout>
  "ttmetal.dealloc"(%4) : (tensor<64x128xf32, #layout1>) -> ()
  return %7 : tensor<64x128xf32, #layout>
}
