// RUN: ttcodegen-opt --ttir-outline-generics %s | filecheck %s
// The functions are put back by --ttir-to-ttir-generic, and vanish when everything is inlined.
// RUN: ttcodegen-opt --ttir-outline-generics --inline="generics=true" %s | filecheck --check-prefix=INLINED %s

#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>

// CHECK-LABEL: func.func @f
// CHECK: %y = func.call @f_generic(%x) {ttir.generic}
// CHECK: func.func private @f_generic(%a: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {ttir.generic = {grid = #ttcore.grid<1x1>
// CHECK: "ttir.exp"(%a)
// INLINED-LABEL: func.func @f
// INLINED-NEXT: %{{.*}} = "ttir.exp"(%x)
// INLINED-NEXT: func.return
// INLINED-NOT: private
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %out = "ttir.empty"() : () -> tensor<4x4xf32>
  %y = ttir.generic {grid = #ttcore.grid<1x1>, indexing_maps = [#map, #map], iterator_types = [#parallel, #parallel]} ins(%x : tensor<4x4xf32>) outs(%out : tensor<4x4xf32>) {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %0 = "ttir.exp"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    ttir.yield %0 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
