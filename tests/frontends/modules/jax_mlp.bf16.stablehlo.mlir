module @jit_called attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.bias"}, %arg1: tensor<128x10xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_0.kernel"}, %arg2: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_1.bias"}, %arg3: tensor<64x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "Dense_1.kernel"}, %arg4: tensor<32x64xbf16> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "arg0"}) -> (tensor<32x10xbf16> {ttir.name = "output"}) {
    %0 = stablehlo.dot_general %arg4, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x64xbf16>, tensor<64x128xbf16>) -> tensor<32x128xbf16>
    %1 = stablehlo.reshape %arg2 : (tensor<128xbf16>) -> tensor<1x128xbf16>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x128xbf16>) -> tensor<32x128xbf16>
    %3 = stablehlo.add %0, %2 : tensor<32x128xbf16>
    %4 = call @relu(%3) : (tensor<32x128xbf16>) -> tensor<32x128xbf16>
    %5 = stablehlo.dot_general %4, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x128xbf16>, tensor<128x10xbf16>) -> tensor<32x10xbf16>
    %6 = stablehlo.reshape %arg0 : (tensor<10xbf16>) -> tensor<1x10xbf16>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<1x10xbf16>) -> tensor<32x10xbf16>
    %8 = stablehlo.add %5, %7 : tensor<32x10xbf16>
    return %8 : tensor<32x10xbf16>
  }
  func.func private @relu(%arg0: tensor<32x128xbf16>) -> tensor<32x128xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<32x128xbf16>
    %1 = stablehlo.maximum %arg0, %0 : tensor<32x128xbf16>
    return %1 : tensor<32x128xbf16>
  }
}
