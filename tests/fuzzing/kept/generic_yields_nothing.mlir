#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>
builtin.module {
  func.func @f(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %e = "ttir.empty"() : () -> tensor<32x32xf32>
    %0 = ttir.generic {grid = #ttcore.grid<4x4>, indexing_maps = [#map, #map, #map], iterator_types = [#parallel, #parallel]} ins(%x, %y : tensor<32x32xf32>, tensor<32x32xf32>) outs(%e : tensor<32x32xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %1 = arith.addf %a, %b : f32
      ttir.yield
    } : tensor<32x32xf32>
    func.return %0 : tensor<32x32xf32>
  }
}
