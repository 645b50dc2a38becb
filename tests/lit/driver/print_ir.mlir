// RUN: ttcodegen-opt --cse --ttir-canonicalize --mlir-print-ir-after-all %s -o %t 2>&1 | filecheck %s --check-prefix=ALL
// RUN: ttcodegen-opt --cse --ttir-canonicalize --mlir-print-ir-after-all --mlir-print-ir-after-change %s -o %t 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: ttcodegen-opt --cse --ttir-canonicalize --mlir-print-ir-before-all %s -o %t 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: ttcodegen-opt --cse --ttir-canonicalize --mlir-print-ir-after=cse --mlir-print-ir-before=canonicalize %s -o %t 2>&1 | filecheck %s --check-prefix=ONE

// ALL: // -----// IR Dump After CommonSubexpressionElimination (cse) //----- //
// ALL: ttir.permute
// ALL: // -----// IR Dump After TTIRCanonicalizePass (ttir-canonicalize) //----- //
// ALL-NOT: ttir.permute
// CHANGE-NOT: (cse)
// CHANGE: IR Dump After TTIRCanonicalizePass
// BEFORE: IR Dump Before CommonSubexpressionElimination (cse)
// BEFORE: IR Dump Before TTIRCanonicalizePass (ttir-canonicalize)
// ONE: IR Dump After CommonSubexpressionElimination (cse)
// ONE: IR Dump Before TTIRCanonicalizePass (ttir-canonicalize)
// ONE-NOT: IR Dump
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "ttir.permute"(%0) <{permutation = array<i64: 1, 0>}> : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
