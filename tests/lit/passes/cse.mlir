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

// Caches that are written keep buffers of their own, though they begin with equal elements.
// CHECK-LABEL: func.func @caches
// CHECK: %[[K:.*]] = "ttir.zeros"
// CHECK: %[[V:.*]] = "ttir.zeros"
// CHECK: "ttir.update_cache"(%[[K]]
// CHECK: "ttir.update_cache"(%[[V]]
func.func @caches(%k: tensor<1x4x1x32xbf16>, %v: tensor<1x4x1x32xbf16>, %i: tensor<1xi32>) -> (tensor<1x4x64x32xbf16>, tensor<1x4x64x32xbf16>) {
  %0 = "ttir.zeros"() <{shape = array<i32: 1, 4, 64, 32>}> : () -> tensor<1x4x64x32xbf16>
  %1 = "ttir.zeros"() <{shape = array<i32: 1, 4, 64, 32>}> : () -> tensor<1x4x64x32xbf16>
  %2 = "ttir.update_cache"(%0, %k, %i) <{batch_offset = 0 : i32}> : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>, tensor<1xi32>) -> tensor<1x4x64x32xbf16>
  %3 = "ttir.update_cache"(%1, %v, %i) <{batch_offset = 0 : i32}> : (tensor<1x4x64x32xbf16>, tensor<1x4x1x32xbf16>, tensor<1xi32>) -> tensor<1x4x64x32xbf16>
  return %2, %3 : tensor<1x4x64x32xbf16>, tensor<1x4x64x32xbf16>
}
