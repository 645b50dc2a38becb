// RUN: not ttcodegen-opt %s 2>&1 | filecheck %s
// RUN: ttcodegen-opt --allow-unregistered-dialect %s | filecheck %s --check-prefix=KEPT
// RUN: ttcodegen-opt -allow-unregistered-dialect %s > %t
// RUN: ttcodegen-opt -allow-unregistered-dialect %t | diff - %t

// CHECK: unregistered.mlir:10:8: error: unknown operation 'my.op' (2 times)
// CHECK: note: --allow-unregistered-dialect keeps it as it is
// KEPT: "my.op"(%x) <{a = #my.attr<1>}> : (tensor<4xf32>) -> !my.type
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "my.op"(%x) <{a = #my.attr<1>}> : (tensor<4xf32>) -> !my.type
  %1 = "my.op"(%0) : (!my.type) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
