// Diagnostics that differ from the expected ones are reported, and the test fails.
// RUN: not ttcodegen-opt --verify-diagnostics --split-input-file %s 2>&1 | filecheck %s

// CHECK: unmet.mlir:9: error: unexpected error: value %1 is not defined
// CHECK: unmet.mlir:8: error: expected error was not produced: value %2 is not defined
// CHECK: unmet.mlir:13: error: expected warning was not produced: too hot
// CHECK-NOT: error
// expected-error @below {{value %2 is not defined}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %1 : tensor<4xf32> }

// -----

// expected-warning @below {{too hot}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
