// RUN: ttcodegen-opt %s | filecheck %s
// RUN: ttcodegen-opt %s > %t
// RUN: ttcodegen-opt %t | diff - %t
// RUN: ttcodegen-opt --mlir-print-op-generic %s | ttcodegen-opt | diff - %t

#l1 = #ttcore.memory_space<l1>
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>
!tile = !ttcore.tile<32x32, f32>
!shard = memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, #l1>
!local = memref<1x1x!ttcore.tile<32x32, f32>, #l1>

func.func @add(%a: !shard, %b: !shard, %c: !shard, %t: !tile) {
  // CHECK: ttir.generic {grid = #ttcore.grid<2x4>, indexing_maps = [
  // CHECK-SAME: iterator_types = [#parallel, #parallel], threads = [#ttir.thread<compute>]}
  // CHECK-SAME: ins(%a, %b : memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>
  ttir.generic {grid = #ttcore.grid<2x4>, indexing_maps = [#map, #map, #map], iterator_types = [#parallel, #parallel], threads = [#ttir.thread<compute>]} ins(%a, %b : !shard, !shard) outs(%c : !shard) {
  ^compute(%x: !local, %y: !local, %z: !local):
    // CHECK: "ttir.tile_add"(%t, %t) : (!ttcore.tile<32x32, f32>, !ttcore.tile<32x32, f32>) -> !ttcore.tile<32x32, f32>
    %sum = "ttir.tile_add"(%t, %t) : (!tile, !tile) -> !tile
    // CHECK: ttir.yield %z : memref<1x1x!ttcore.tile<32x32, f32>
    ttir.yield %z : !local
  }
  return
}
