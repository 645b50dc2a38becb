// RUN: ttcodegen-opt --split-input-file --verify-diagnostics --ttcore-check-sizes %s | FileCheck %s

// CHECK-LABEL: func.func @fits
func.func @fits(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  return %x : tensor<4096x4096xf32>
}

// -----

// expected-error @+1 {{a tensor of type tensor<2147483648x4096xbf16> does not fit into the DRAM of wormhole_b0}}
func.func @argument(%x: tensor<2147483648x4096xbf16>) -> tensor<4xbf16> {
  // expected-error @+1 {{a tensor of type tensor<300000000xf32> does not fit into the DRAM of wormhole_b0}}
  %0 = "ttir.arange"() <{start = 0 : si64, end = 300000000 : si64, step = 1 : si64, arange_dimension = 0 : i64}> : () -> tensor<300000000xf32>
  %1 = "ttir.constant"() <{value = dense<1.0> : tensor<4xbf16>}> : () -> tensor<4xbf16>
  return %1 : tensor<4xbf16>
}
