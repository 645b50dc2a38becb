// RUN: ttcodegen-opt --cse %s | filecheck %s
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline --cse %s 2>&1 | filecheck %s --check-prefix=LATE

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %[[E:.*]] = "ttir.exp"(%x)
// CHECK-NEXT: "ttir.add"(%[[E]], %[[E]])
// LATE: error: equal ops cannot be merged where tensors are deallocated
// LATE: note: run cse before ttnn-deallocate
func.func @f(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %1 = "ttir.exp"(%x) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
  return %2 : tensor<32x32xbf16>
}
