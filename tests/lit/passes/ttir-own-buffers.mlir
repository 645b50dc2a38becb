// RUN: ttcodegen-opt --ttir-own-buffers %s | filecheck %s

// Of a view that is overwritten there is a clone.

// CHECK-LABEL: func.func @view
// CHECK: %[[VIEW:.*]] = "ttir.reshape"(%cache)
// CHECK: %[[CLONE:.*]] = "ttir.clone"(%[[VIEW]])
// CHECK: "ttir.fill_cache"(%[[CLONE]], %rows)
// CHECK: return %[[CLONE]]
func.func @view(%cache: tensor<1x2x64x32xf32>, %rows: tensor<1x1x32x32xf32>) -> tensor<2x1x64x32xf32> {
  %0 = "ttir.reshape"(%cache) <{shape = [2 : i32, 1 : i32, 64 : i32, 32 : i32]}> : (tensor<1x2x64x32xf32>) -> tensor<2x1x64x32xf32>
  "ttir.fill_cache"(%0, %rows) <{batch_offset = 0 : i32}> : (tensor<2x1x64x32xf32>, tensor<1x1x32x32xf32>) -> ()
  return %0 : tensor<2x1x64x32xf32>
}

// CHECK-LABEL: func.func @argument
// CHECK-NOT: "ttir.clone"
func.func @argument(%cache: tensor<1x2x64x32xf32>, %rows: tensor<1x2x32x32xf32>) -> tensor<1x2x64x32xf32> {
  "ttir.fill_cache"(%cache, %rows) <{batch_offset = 0 : i32}> : (tensor<1x2x64x32xf32>, tensor<1x2x32x32xf32>) -> ()
  return %cache : tensor<1x2x64x32xf32>
}
