// RUN: ttcodegen-opt --ttcore-register-device %s | filecheck %s --check-prefix=WORMHOLE
// RUN: ttcodegen-opt --ttcore-register-device="mock-system-desc-arch=blackhole" %s > %t.mlir
// RUN: filecheck %s --check-prefix=BLACKHOLE --input-file=%t.mlir
// A system description in the module is kept unless an option names another one.
// RUN: ttcodegen-opt --tt-register-device %t.mlir | diff - %t.mlir
// RUN: ttcodegen-opt --ttcore-register-device="mock-system-desc-arch=wormhole_b0" %t.mlir | filecheck %s --check-prefix=WORMHOLE
// RUN: ttcodegen-opt --ttcore-register-device="mesh-shape=1,2" %s | filecheck %s --check-prefix=MESH
// RUN: not ttcodegen-opt --ttcore-register-device="mesh-shape=2,2,2" %s 2>&1 | filecheck %s --check-prefix=THREE
// RUN: not ttcodegen-opt --ttcore-register-device="mesh-shape=-1,2" %s 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not ttcodegen-opt --ttcore-register-device="mesh-shape=1000,2" %s 2>&1 | filecheck %s --check-prefix=LARGE
// RUN: not ttcodegen-opt --ttcore-register-device="mock-system-desc-arch=quasar" %s 2>&1 | filecheck %s --check-prefix=ARCH

// WORMHOLE: #system_desc = #ttcore.system_desc<[{role = host
// WORMHOLE-SAME: arch = <wormhole_b0>, grid = 8x8
// WORMHOLE: ttcore.system_desc = #system_desc
// WORMHOLE: ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8
// WORMHOLE-NOT: ttcore.device
// BLACKHOLE: arch = <blackhole>, grid = 10x11
// BLACKHOLE: ttcore.device @default_device = <workerGrid = #ttcore.grid<10x11
// MESH: ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x2>]>
// MESH: ttcore.device @default_device = <workerGrid = #ttcore.grid<8x16
// MESH-SAME: meshShape = 1x2, chipIds = [0, 1]
// THREE: error: a mesh of 2x2x2 chips is not supported
// NEGATIVE: error: '-1,2' is no mesh of chips
// LARGE: error: a mesh of 1000x2 has more chips than any system
// ARCH: error: --ttcore-register-device: the option 'mock-system-desc-arch' is one of {{.*}}wormhole_b0, blackhole
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
