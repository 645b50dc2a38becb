// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s -o %t.mlir
// RUN: ttcodegen-opt --convert-ttnn-to-emitc=module-name=activation %t.mlir | filecheck %s
// RUN: ttcodegen-opt --ttnn-common-to-emitc-pipeline="module-name=activation" %t.mlir | filecheck %s
// RUN: not ttcodegen-opt --convert-ttnn-to-emitc %s 2>&1 | filecheck %s --check-prefix=EARLY
// Printed EmitC reads back as the same EmitC.
// RUN: ttcodegen-opt --convert-ttnn-to-emitc %t.mlir -o %t.emitc.mlir
// RUN: ttcodegen-opt %t.emitc.mlir | diff - %t.emitc.mlir

// CHECK: "emitc.file"() <{id = "src/activation.hpp"}>
// CHECK: "emitc.class"() <{sym_name = "ForwardInputs"
// CHECK: "emitc.file"() <{id = "src/activation.cpp"}>
// CHECK: "emitc.func"() <{sym_name = "forward"
// CHECK: "emitc.call_opaque"(%{{.*}}) <{callee = "ttnn::exp"
// CHECK: "emitc.return"
// EARLY: error: {{.*}}
// EARLY: note: run --convert-ttir-to-ttnn and --ttnn-layout first
func.func @forward(%x: tensor<32x32xbf16> {ttir.name = "x"}) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %0 : tensor<32x32xbf16>
}
