// Kernels become files; host functions stay until --convert-ttmetal-to-emitc.
// RUN: ttcodegen-opt --ttir-to-ttmetal-backend-pipeline --convert-ttkernel-to-emitc="module-name=sum" %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// RUN: ttcodegen-opt --convert-ttmetal-to-emitc="module-name=sum" %t.mlir | filecheck %s --check-prefix=HOST

// CHECK: ttcodegen.kernels = {
// CHECK-SAME: compute_add = "kernels/compute_add.cpp"
// CHECK: ttmetal.run_program
// CHECK: "emitc.file"() <{id = "kernels/compute_add.cpp"}>
// HOST-NOT: ttcodegen.kernels
// HOST: "emitc.file"() <{id = "src/sum.hpp"}>
// HOST-NOT: ttmetal.run_program
// HOST: "emitc.file"() <{id = "kernels/compute_add.cpp"}>
func.func @f(%x: tensor<64x96xbf16>, %y: tensor<64x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.add"(%x, %y) : (tensor<64x96xbf16>, tensor<64x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
