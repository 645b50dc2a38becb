// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s -o %t.mlir
// RUN: ttcodegen-opt --ttnn-modify-signatures-for-dylib --convert-ttnn-to-emitc %t.mlir | filecheck %s
// RUN: ttcodegen-opt --ttir-to-emitc-pipeline="target-dylib=true" %s | filecheck %s
// RUN: ttcodegen-opt --ttnn-tuplify-tensors %t.mlir | filecheck %s --check-prefix=MARK

// MARK: ttcodegen.uniform_signature
// CHECK: "emitc.include"() <{include = "vector"
// CHECK: sym_name = "call_forward", function_type = (!emitc.opaque<"const std::vector<ttnn::Tensor>&">, !emitc.opaque<"ttnn::MeshDevice&">) -> !emitc.opaque<"std::vector<ttnn::Tensor>">
// CHECK: "emitc.file"
// CHECK: sym_name = "call_forward"
// CHECK: callee = "ForwardInputs"
// CHECK: callee = "ForwardWeights"
// CHECK: callee = "prepare_forward"
// CHECK: callee = "forward"
func.func @forward(%x: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<32x32xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%w) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.multiply"(%x, %0) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %1 : tensor<32x32xbf16>
}
