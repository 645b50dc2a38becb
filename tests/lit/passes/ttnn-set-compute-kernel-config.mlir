// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-set-compute-kernel-config %s | filecheck %s
// RUN: ttcodegen-opt --ttcore-register-device='mock-system-desc-arch=blackhole' --convert-ttir-to-ttnn --ttnn-set-compute-kernel-config %s | filecheck %s --check-prefix=BLACKHOLE

// HiFi3 on Wormhole, whose HiFi4 is unreliable with 32-bit accumulation.
// CHECK-LABEL: @wide
// CHECK: "ttnn.softmax"(%x) <{{.*}}compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi3, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = false, dst_full_sync_en = false>
// BLACKHOLE-LABEL: @wide
// BLACKHOLE: compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4,
func.func @wide(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : i32}> : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// Matmuls of integers accumulate in 32 bits.
// CHECK-LABEL: @integers
// CHECK: "ttnn.matmul"(%x, %y) <{{.*}}math_fidelity = hifi3
func.func @integers(%x: tensor<64x128xsi32>, %y: tensor<128x32xsi32>) -> tensor<64x32xsi32> {
  %0 = "ttir.matmul"(%x, %y) : (tensor<64x128xsi32>, tensor<128x32xsi32>) -> tensor<64x32xsi32>
  return %0 : tensor<64x32xsi32>
}

// Softmax of bf16 divides exactly; its other fields keep the library's defaults.
// CHECK-LABEL: @probabilities
// CHECK: "ttnn.softmax"(%x) <{{.*}}compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4, math_approx_mode = false, fp32_dest_acc_en = false,
func.func @probabilities(%x: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : i32}> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  return %0 : tensor<64x128xbf16>
}

// A convolution of bf16 whose elements are sums of 65,536 products.
// CHECK-LABEL: @long_sums
// CHECK: "ttnn.conv2d"({{.*}}math_fidelity = hifi3, math_approx_mode = false, fp32_dest_acc_en = true
func.func @long_sums(%x: tensor<1x16x16x256xbf16>, %w: tensor<32x256x16x16xbf16>) -> tensor<1x1x1x32xbf16> {
  %0 = "ttir.conv2d"(%x, %w) <{stride = 1 : i32, padding = 0 : i32, dilation = 1 : i32, groups = 1 : i32}> : (tensor<1x16x16x256xbf16>, tensor<32x256x16x16xbf16>) -> tensor<1x1x1x32xbf16>
  return %0 : tensor<1x1x1x32xbf16>
}

// Other calls of bf16 keep the library's defaults, as does a call that takes no compute config.
// CHECK-LABEL: @narrow
// CHECK-NOT: compute_config
func.func @narrow(%x: tensor<64x128xbf16>, %w: tensor<128x32xbf16>, %y: tensor<4xf32>) -> (tensor<64x32xbf16>, tensor<4xf32>) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x128xbf16>, tensor<128x32xbf16>) -> tensor<64x32xbf16>
  %1 = "ttir.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<64x32xbf16>, tensor<4xf32>
}
