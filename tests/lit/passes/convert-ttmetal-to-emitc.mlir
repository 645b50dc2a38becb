// RUN: ttcodegen-opt --ttir-to-ttmetal-backend-pipeline %s -o %t.mlir
// RUN: ttcodegen-opt --convert-ttmetal-to-emitc="module-name=sum" %t.mlir -o %t.emitc.mlir
// RUN: filecheck %s --input-file=%t.emitc.mlir
// RUN: ttcodegen-opt %t.emitc.mlir | diff - %t.emitc.mlir
// RUN: mkdir %t.cpp && ttcodegen-translate --mlir-to-cpp %t.emitc.mlir -o %t.cpp
// RUN: filecheck %s --check-prefix=HOST --input-file=%t.cpp/src/sum.cpp
// RUN: filecheck %s --check-prefix=KERNEL --input-file=%t.cpp/kernels/compute_add.cpp
// RUN: not ttcodegen-opt --convert-ttmetal-to-emitc %s 2>&1 | filecheck %s --check-prefix=EARLY

// CHECK: "emitc.file"() <{id = "src/sum.hpp"}>
// CHECK: "emitc.file"() <{id = "src/sum.cpp"}>
// CHECK: "emitc.func"() <{sym_name = "f"
// CHECK: "emitc.file"() <{id = "src/programs.cpp"}>
// CHECK: "emitc.file"() <{id = "kernels/compute_add.cpp"}>
// HOST: namespace sum {
// KERNEL: void kernel_main() {
// EARLY: error: 'ttir.add' does not launch a program of the device
// EARLY: note: run --ttir-to-ttmetal-pipeline on the module of TTIR first
func.func @f(%x: tensor<64x96xbf16>, %y: tensor<64x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.add"(%x, %y) : (tensor<64x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
