// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-set-compute-kernel-config %s | filecheck %s
// RUN: ttcodegen-opt --ttcore-register-device='mock-system-desc-arch=blackhole' --convert-ttir-to-ttnn --ttnn-set-compute-kernel-config %s | filecheck %s --check-prefix=BLACKHOLE

// Three passes of the multiplier on Wormhole, whose fourth is not to be trusted with sums of 32 bits.
// CHECK-LABEL: @wide
// CHECK: "ttnn.softmax"(%x) <{{.*}}compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi3, math_approx_mode = false, fp32_dest_acc_en = true, packer_l1_acc = false, dst_full_sync_en = false>
// BLACKHOLE-LABEL: @wide
// BLACKHOLE: compute_config = #ttnn.device_compute_kernel_config<math_fidelity = hifi4,
func.func @wide(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : i32}> : (tensor<64x128xf32>) -> tensor<64x128xf32>
  return %0 : tensor<64x128xf32>
}

// Products of integers travel as numbers of 32 bits.
// CHECK-LABEL: @integers
// CHECK: "ttnn.matmul"(%x, %y) <{{.*}}math_fidelity = hifi3
func.func @integers(%x: tensor<64x128xsi32>, %y: tensor<128x32xsi32>) -> tensor<64x32xsi32> {
  %0 = "ttir.matmul"(%x, %y) : (tensor<64x128xsi32>, tensor<128x32xsi32>) -> tensor<64x32xsi32>
  return %0 : tensor<64x32xsi32>
}

// Sixteen bits are left to the library, and so is a call that takes no configuration.
// CHECK-LABEL: @narrow
// CHECK-NOT: compute_config
func.func @narrow(%x: tensor<64x128xbf16>, %y: tensor<4xf32>) -> (tensor<64x128xbf16>, tensor<4xf32>) {
  %0 = "ttir.softmax"(%x) <{dimension = 1 : i32}> : (tensor<64x128xbf16>) -> tensor<64x128xbf16>
  %1 = "ttir.exp"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<64x128xbf16>, tensor<4xf32>
}
