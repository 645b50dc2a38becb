// RUN: ttcodegen-opt --ttir-implicit-device %s | filecheck %s
// RUN: ttcodegen-opt --ttir-implicit-device --ttir-implicit-device="mesh-shape=1x1" %s | filecheck %s

// CHECK: ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8
// CHECK-NOT: ttcore.device
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
