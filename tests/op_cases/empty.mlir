// Tensors without elements.

func.func @elementwise(%x: tensor<3x0x5xf32>, %y: tensor<5xf32>, %c: tensor<3x1x5xi1>) -> (tensor<3x0x5xf32>, tensor<3x0x5xi1>, tensor<3x0x5xf32>) {
  %0 = "ttir.add"(%x, %y) : (tensor<3x0x5xf32>, tensor<5xf32>) -> tensor<3x0x5xf32>
  %1 = "ttir.exp"(%0) : (tensor<3x0x5xf32>) -> tensor<3x0x5xf32>
  %2 = "ttir.ge"(%1, %y) : (tensor<3x0x5xf32>, tensor<5xf32>) -> tensor<3x0x5xi1>
  %3 = "ttir.where"(%c, %1, %y) : (tensor<3x1x5xi1>, tensor<3x0x5xf32>, tensor<5xf32>) -> tensor<3x0x5xf32>
  return %1, %2, %3 : tensor<3x0x5xf32>, tensor<3x0x5xi1>, tensor<3x0x5xf32>
}

func.func @movement(%x: tensor<3x0x5xbf16>, %y: tensor<2x3xi32>) -> (tensor<5x0x3xbf16>, tensor<0x7xbf16>, tensor<2x0xi32>, tensor<3x2x5xbf16>) {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 2, 1, 0>}> : (tensor<3x0x5xbf16>) -> tensor<5x0x3xbf16>
  %1 = "ttir.reshape"(%x) <{shape = [0 : i32, 7 : i32]}> : (tensor<3x0x5xbf16>) -> tensor<0x7xbf16>
  %2 = "ttir.slice_static"(%y) <{begins = [0 : i32, 1 : i32], ends = [2 : i32, 1 : i32], step = [1 : i32, 1 : i32]}> : (tensor<2x3xi32>) -> tensor<2x0xi32>
  %3 = "ttir.pad"(%x) <{padding = array<i32: 0, 0, 1, 1, 0, 0>, value = 2.5 : f32}> : (tensor<3x0x5xbf16>) -> tensor<3x2x5xbf16>
  return %0, %1, %2, %3 : tensor<5x0x3xbf16>, tensor<0x7xbf16>, tensor<2x0xi32>, tensor<3x2x5xbf16>
}

func.func @sums(%x: tensor<3x0x5xf32>, %b: tensor<0x4xi1>) -> (tensor<3x5xf32>, tensor<3x1x5xf32>, tensor<3x5xf32>, tensor<4xi1>, tensor<4xi1>) {
  %0 = "ttir.sum"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<3x0x5xf32>) -> tensor<3x5xf32>
  %1 = "ttir.prod"(%x) <{dim_arg = [1 : i32], keep_dim = true}> : (tensor<3x0x5xf32>) -> tensor<3x1x5xf32>
  %2 = "ttir.mean"(%x) <{dim_arg = [1 : i32], keep_dim = false}> : (tensor<3x0x5xf32>) -> tensor<3x5xf32>
  %3 = "ttir.reduce_and"(%b) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<0x4xi1>) -> tensor<4xi1>
  %4 = "ttir.reduce_or"(%b) <{dim_arg = [0 : i32], keep_dim = false}> : (tensor<0x4xi1>) -> tensor<4xi1>
  return %0, %1, %2, %3, %4 : tensor<3x5xf32>, tensor<3x1x5xf32>, tensor<3x5xf32>, tensor<4xi1>, tensor<4xi1>
}

func.func @products(%x: tensor<3x0xbf16>, %y: tensor<0x5xbf16>, %bias: tensor<5xbf16>, %z: tensor<3x5xbf16>) -> (tensor<3x5xbf16>, tensor<3x5xbf16>, tensor<3x5xbf16>) {
  %0 = "ttir.matmul"(%x, %y) : (tensor<3x0xbf16>, tensor<0x5xbf16>) -> tensor<3x5xbf16>
  %1 = "ttir.linear"(%x, %y, %bias) : (tensor<3x0xbf16>, tensor<0x5xbf16>, tensor<5xbf16>) -> tensor<3x5xbf16>
  %2 = "ttir.concat"(%y, %z) <{dim = 0 : si32}> : (tensor<0x5xbf16>, tensor<3x5xbf16>) -> tensor<3x5xbf16>
  return %0, %1, %2 : tensor<3x5xbf16>, tensor<3x5xbf16>, tensor<3x5xbf16>
}
