// RUN: ttcodegen-opt --ttir-primitives %s | filecheck %s

// Ops without a kernel loop are decomposed to ops with one.
// CHECK-LABEL: func.func @f
// CHECK-NOT: ttir.softmax
// CHECK: %[[M:.*]] = "ttir.max"(%x)
// CHECK: %[[S:.*]] = "ttir.subtract"(%x, %[[M]])
// A row whose scores are all masked gets equal probabilities.
// CHECK: %[[H:.*]] = "ttir.maximum"(%[[S]], %{{.*}})
// CHECK: %[[E:.*]] = "ttir.exp"(%[[H]])
// CHECK: %[[D:.*]] = "ttir.sum"(%[[E]])
// CHECK: "ttir.div"(%[[E]], %[[D]])
func.func @f(%x: tensor<64x96xbf16>) -> tensor<64x96xbf16> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : si32}> : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  return %0 : tensor<64x96xbf16>
}
