// RUN: ttcodegen-opt --split-input-file --verify-diagnostics --ttir-to-ttnn-backend-pipeline %s

// expected-error @+1 {{the device has the chips 0, 1, the system has 1, counted from 0}}
module attributes {tt.device = #tt.device<#tt.grid<8x8>, [0, 1]>} {
  func.func @attribute(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{the device has the chips 0, 1, the system has 1, counted from 0}}
ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = 1x2, chipIds = [0, 1]>
func.func @op(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  // expected-error @+1 {{the device has a chip twice: 0, 0}}
  ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = 1x2, chipIds = [0, 0]>
}

// -----

module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>} {
  // expected-error @+1 {{the device has the chips -1, 0, the system has 2, counted from 0}}
  ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = 1x2, chipIds = [-1, 0]>
}

// -----

module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 2x2>]>} {
  // expected-error @+1 {{the device is a mesh of 1x2, and the module is for one of 2x2}}
  ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = 1x2, chipIds = [0, 1]>
}

// -----

#l1 = #ttcore.memory_space<l1>
#map = affine_map<(d0, d1) -> (d0, d1)>
#parallel = #ttcore.iterator_type<parallel>
!tile = !ttcore.tile<32x32, f32>
!shard = memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, #l1>
!local = memref<1x1x!ttcore.tile<32x32, f32>, #l1>
func.func @cores(%a: !shard, %b: !shard, %c: !shard, %t: !tile) {
  // expected-error @+1 {{'ttir.generic' has no lowering to TTNN}}
  ttir.generic {grid = #ttcore.grid<2x4>, indexing_maps = [#map, #map, #map], iterator_types = [#parallel, #parallel], threads = [#ttir.thread<compute>]} ins(%a, %b : !shard, !shard) outs(%c : !shard) {
  ^compute(%x: !local, %y: !local, %z: !local):
    // expected-error @+1 {{'ttir.tile_add' has no lowering to TTNN}}
    %sum = "ttir.tile_add"(%t, %t) : (!tile, !tile) -> !tile
    // expected-error @+1 {{'ttir.yield' has no lowering to TTNN}}
    ttir.yield %z : !local
  }
  return
}
