// RUN: ttcodegen-opt --ttir-load-system-desc="path=blackhole" --ttir-implicit-device %s | filecheck %s
// RUN: ttcodegen-opt --ttir-load-system-desc --ttir-implicit-device %s | filecheck %s --check-prefix=DEFAULT
// RUN: not ttcodegen-opt --ttir-load-system-desc="path=%t.missing" %s 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not ttcodegen-opt --ttir-load-system-desc="path=%s" %s 2>&1 | filecheck %s --check-prefix=KIND

// CHECK: arch = <blackhole>
// CHECK: ttcore.device @default_device
// DEFAULT: arch = <wormhole_b0>
// MISSING: error: cannot read '{{.*}}.missing'
// KIND: this is not a .ttsys file
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
