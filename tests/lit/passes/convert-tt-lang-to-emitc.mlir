// An operation that the functions call becomes files of its own; the calls name its function.
// RUN: ttcodegen-opt --tt-lang=%S/../../lang/programs/called/operations.py --ttir-to-ttnn-backend-pipeline --convert-tt-lang-to-emitc="module-name=calls" %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// RUN: ttcodegen-opt --convert-ttnn-to-emitc="module-name=calls" %t.mlir | filecheck %s --check-prefix=CPP

// CHECK: "ttnn.tt_lang_op"
// CHECK-SAME: function = "run_rotated"
// CHECK: "emitc.file"() <{id = "kernels/rotated_exchange.cpp"}>
// CHECK: "emitc.file"() <{id = "src/programs.hpp"}>
// CHECK: "emitc.file"() <{id = "src/programs.cpp"}>
// CPP-NOT: ttnn.tt_lang_op
// CPP: "emitc.file"() <{id = "src/calls.cpp"}>
// CPP: run_rotated
// CPP: "emitc.file"() <{id = "src/programs.cpp"}>
func.func @f(%x: tensor<96x64xf32>) -> tensor<96x64xf32> {
  %0 = "ttir.tt_lang_op"(%x) <{kernel_id = "rotated", version_tag = "1", arg_roles = "in,out"}> : (tensor<96x64xf32>) -> tensor<96x64xf32>
  return %0 : tensor<96x64xf32>
}
