// RUN: ttcodegen-opt --ttnn-layout --ttnn-sliced-pools %s | filecheck %s

// An image that does not fit into L1 is pooled in slices: the result is an image.
// CHECK-LABEL: @large
// CHECK: [[IMAGE:%.*]] = "ttnn.max_pool2d"({{.*}} -> tensor<1x256x256x128xbf16
// CHECK: "ttnn.reshape_row_major"([[IMAGE]]) {{.*}} -> tensor<1x1x65536x128xbf16
func.func @large(%x: tensor<1x1x262144x128xbf16>) -> tensor<1x1x65536x128xbf16> {
  %0 = "ttnn.max_pool2d"(%x) <{batch_size = 1 : i64, input_height = 512 : i64, input_width = 512 : i64, channels = 128 : i64, kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>}> : (tensor<1x1x262144x128xbf16>) -> tensor<1x1x65536x128xbf16>
  return %0 : tensor<1x1x65536x128xbf16>
}

// CHECK-LABEL: @small
// CHECK: "ttnn.max_pool2d"({{.*}} -> tensor<1x1x1024x64xbf16
// CHECK-NOT: ttnn.reshape
func.func @small(%x: tensor<1x1x4096x64xbf16>) -> tensor<1x1x1024x64xbf16> {
  %0 = "ttnn.max_pool2d"(%x) <{batch_size = 1 : i64, input_height = 64 : i64, input_width = 64 : i64, channels = 64 : i64, kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>}> : (tensor<1x1x4096x64xbf16>) -> tensor<1x1x1024x64xbf16>
  return %0 : tensor<1x1x1024x64xbf16>
}
