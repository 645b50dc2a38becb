// RUN: not ttcodegen-opt --inline --cse --ttir-to-ttnn-common-pipeline="enable-const-eval=false" --cse --mlir-pass-pipeline-crash-reproducer=%t.mlir %s 2>&1 | filecheck %s
// RUN: filecheck %s --check-prefix=FILE --input-file=%t.mlir
// RUN: not ttcodegen-opt --run-reproducer --mlir-pass-pipeline-crash-reproducer= %t.mlir 2>&1 | filecheck %s --check-prefix=AGAIN
// Without a name it goes to a temporary file.
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline --cse %s 2>&1 | filecheck %s --check-prefix=TEMPORARY
// RUN: not ttcodegen-opt --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE

// CHECK: reproducer.mlir:20:8: error: equal ops cannot be merged where tensors are deallocated
// CHECK: note: what reproduces this is in {{.*}}.mlir: run it with --run-reproducer
// FILE: "ttnn.deallocate"
// FILE: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse)"
// AGAIN: error: equal ops cannot be merged
// AGAIN-NOT: what reproduces
// TEMPORARY: what reproduces this is in {{.*}}ttcodegen-opt-{{.*}}.mlir
// NONE: error: this is no reproducer: it names no pipeline

func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = "ttir.sin"(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
