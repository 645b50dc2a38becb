// RUN: ttcodegen-opt %s | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: ttcodegen-opt --mlir-print-op-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: ttcodegen-opt --mlir-print-debuginfo %s | filecheck %s --check-prefix=LOCATIONS
// RUN: ttcodegen-opt -mlir-elide-elementsattrs-if-larger=4 %s | filecheck %s --check-prefix=ELIDED
// Each of them reads back, except for what was elided.
// RUN: ttcodegen-opt %s > %t
// RUN: ttcodegen-opt --mlir-print-op-generic %s | ttcodegen-opt | diff - %t
// RUN: ttcodegen-opt --mlir-print-debuginfo %s | ttcodegen-opt | diff - %t
// RUN: ttcodegen-opt --mlir-print-debuginfo %s > %t.loc
// RUN: ttcodegen-opt --mlir-print-debuginfo %t.loc | diff - %t.loc
// RUN: ttcodegen-opt < %t | diff - %t

// PLAIN-NOT: loc(
// CHECK: func.func @f(%x: tensor<4xf32> {ttir.name = "x"})
// CHECK: dense<[1.000000e+00, 2.500000e+00, 3.000000e+00, 0x7fc00000, 5.000000e+00]>
// GENERIC: "func.func"() <{sym_name = "f"
// GENERIC: "func.return"
// LOCATIONS: loc("layer1"("model.py":3:4))
// LOCATIONS: loc("model.py":7:1)
// ELIDED: dense_resource<__elided__> : tensor<5xf32>
func.func @f(%x: tensor<4xf32> {ttir.name = "x"}) -> (tensor<4xf32>, tensor<5xf32>) {
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("layer1"("model.py":3:4))
  %1 = "ttir.constant"() <{value = dense<[1.0, 2.5, 3.0, 0x7FC00000, 5.0]> : tensor<5xf32>}> : () -> tensor<5xf32> loc("model.py":7:1)
  return %0, %1 : tensor<4xf32>, tensor<5xf32>
}
