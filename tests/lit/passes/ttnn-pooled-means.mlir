// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-pooled-means %s | filecheck %s

// Rows of a convolution: 49 pixels end within a tile.
// CHECK-LABEL: @convolution
// CHECK: %[[ROWS:.*]] = "ttnn.conv2d"
// CHECK: %[[MEAN:.*]] = "ttnn.avg_pool2d"(%[[ROWS]]) <{batch_size = 16 : i32, input_height = 7 : i32, input_width = 7 : i32, channels = 512 : i32, kernel_size = array<i32: 7, 7>, stride = array<i32: 1, 1>}>
// CHECK: "ttnn.reshape"(%[[MEAN]]) <{shape = array<i32: 16, 512>}>
// CHECK-NOT: ttnn.mean
func.func @convolution(%x: tensor<16x7x7x64xbf16>, %w: tensor<512x64x1x1xbf16>) -> tensor<16x512xbf16> {
  %0 = "ttir.conv2d"(%x, %w) <{dilation = array<i32: 1, 1>, groups = 1 : i32, padding = array<i32: 0, 0, 0, 0>, stride = array<i32: 1, 1>}> : (tensor<16x7x7x64xbf16>, tensor<512x64x1x1xbf16>) -> tensor<16x7x7x512xbf16>
  %1 = "ttir.mean"(%0) <{dim_arg = [1 : i32, 2 : i32], keep_dim = false}> : (tensor<16x7x7x512xbf16>) -> tensor<16x512xbf16>
  return %1 : tensor<16x512xbf16>
}

// Pooling computes in 16 bits.
// CHECK-LABEL: @float32
// CHECK: ttnn.mean
func.func @float32(%x: tensor<784x512xf32>) -> tensor<16x512xf32> {
  %0 = "ttir.reshape"(%x) <{shape = [16 : i32, 49 : i32, 512 : i32]}> : (tensor<784x512xf32>) -> tensor<16x49x512xf32>
  %1 = "ttir.mean"(%0) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<16x49x512xf32>) -> tensor<16x512xf32>
  return %1 : tensor<16x512xf32>
}

// Images that fill tiles are reduced where they are.
// CHECK-LABEL: @tiles
// CHECK: ttnn.mean
func.func @tiles(%x: tensor<1024x512xbf16>) -> tensor<16x512xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [16 : i32, 64 : i32, 512 : i32]}> : (tensor<1024x512xbf16>) -> tensor<16x64x512xbf16>
  %1 = "ttir.mean"(%0) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<16x64x512xbf16>) -> tensor<16x512xbf16>
  return %1 : tensor<16x512xbf16>
}

// A mean over some of the images, or with channels, is none of images.
// CHECK-LABEL: @channels
// CHECK: ttnn.mean
func.func @channels(%x: tensor<784x512xbf16>) -> tensor<16xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [16 : i32, 49 : i32, 512 : i32]}> : (tensor<784x512xbf16>) -> tensor<16x49x512xbf16>
  %1 = "ttir.mean"(%0) <{dim_arg = [1 : i32, 2 : i32], keep_dim = false}> : (tensor<16x49x512xbf16>) -> tensor<16xbf16>
  return %1 : tensor<16xbf16>
}
