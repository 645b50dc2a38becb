// RUN: ttcodegen-opt --ttir-to-ttir-generic="rows=2 columns=4" %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// Generics read back, and stay what they are.
// RUN: ttcodegen-opt --ttir-generic %t.mlir | diff - %t.mlir

// CHECK: #[[WHOLE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @f
// CHECK: %[[OUT:.*]] = "ttir.empty"()
// CHECK: %e = ttir.generic {grid = #ttcore.grid<2x4>, indexing_maps = [#[[WHOLE]], #[[ROW]], #[[WHOLE]]], iterator_types = [#parallel, #parallel]} ins(%x, %y : {{.*}}) outs(%[[OUT]] :
// CHECK: "ttir.add"
// CHECK: "ttir.exp"
// CHECK: ttir.yield
// CHECK: ttir.generic {grid = #ttcore.grid<2x4>, indexing_maps = [], iterator_types = []} ins(%e :
// CHECK: "ttir.permute"
func.func @f(%x: tensor<64x96xbf16>, %y: tensor<96xbf16>) -> tensor<96x64xbf16> {
  %s = "ttir.add"(%x, %y) : (tensor<64x96xbf16>, tensor<96xbf16>) -> tensor<64x96xbf16>
  %e = "ttir.exp"(%s) : (tensor<64x96xbf16>) -> tensor<64x96xbf16>
  %t = "ttir.permute"(%e) <{permutation = array<i64: 1, 0>}> : (tensor<64x96xbf16>) -> tensor<96x64xbf16>
  return %t : tensor<96x64xbf16>
}
