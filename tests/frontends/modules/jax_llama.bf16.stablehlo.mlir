module @jit_called attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "embed"}, %arg1: tensor<256x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.down_proj"}, %arg2: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.gate_proj"}, %arg3: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.input_norm"}, %arg4: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.k_proj"}, %arg5: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.o_proj"}, %arg6: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.post_norm"}, %arg7: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.q_proj"}, %arg8: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.up_proj"}, %arg9: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.0.v_proj"}, %arg10: tensor<256x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.down_proj"}, %arg11: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.gate_proj"}, %arg12: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.input_norm"}, %arg13: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.k_proj"}, %arg14: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.o_proj"}, %arg15: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.post_norm"}, %arg16: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.q_proj"}, %arg17: tensor<128x256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.up_proj"}, %arg18: tensor<128x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "layers.1.v_proj"}, %arg19: tensor<128x128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "lm_head"}, %arg20: tensor<128xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>, ttir.name = "norm"}, %arg21: tensor<1x32xi32> {ttcore.argument_type = #ttcore.argument_type<input>, ttir.name = "tokens"}) -> (tensor<1x32x128xbf16> {ttir.name = "output"}) {
    %0 = call @_take(%arg0, %arg21) : (tensor<128x128xbf16>, tensor<1x32xi32>) -> tensor<1x32x128xbf16>
    %1 = stablehlo.iota dim = 0 : tensor<32xi32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
    %3 = stablehlo.iota dim = 0 : tensor<16xi32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %5 = stablehlo.multiply %4, %3 : tensor<16xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16xi32>
    %7 = stablehlo.add %6, %5 : tensor<16xi32>
    %8 = stablehlo.negate %7 : tensor<16xi32>
    %9 = stablehlo.convert %8 : (tensor<16xi32>) -> tensor<16xf32>
    %cst = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %11 = stablehlo.divide %9, %10 : tensor<16xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+04> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %13 = stablehlo.power %12, %11 : tensor<16xf32>
    %14 = stablehlo.convert %2 : (tensor<32x1xi32>) -> tensor<32x1xf32>
    %15 = stablehlo.broadcast_in_dim %13, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
    %16 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x16xf32>
    %17 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<1x16xf32>) -> tensor<32x16xf32>
    %18 = stablehlo.multiply %16, %17 : tensor<32x16xf32>
    %19 = stablehlo.concatenate %18, %18, dim = 1 : (tensor<32x16xf32>, tensor<32x16xf32>) -> tensor<32x32xf32>
    %20 = stablehlo.cosine %19 : tensor<32x32xf32>
    %21 = stablehlo.convert %20 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %22 = stablehlo.sine %19 : tensor<32x32xf32>
    %23 = stablehlo.convert %22 : (tensor<32x32xf32>) -> tensor<32x32xbf16>
    %24 = stablehlo.convert %0 : (tensor<1x32x128xbf16>) -> tensor<1x32x128xf32>
    %25 = stablehlo.multiply %24, %24 : tensor<1x32x128xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<1x32x128xf32>, tensor<f32>) -> tensor<1x32xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<1x32x1xf32>
    %cst_3 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %29 = stablehlo.divide %27, %28 : tensor<1x32x1xf32>
    %cst_4 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %31 = stablehlo.add %29, %30 : tensor<1x32x1xf32>
    %32 = stablehlo.rsqrt %31 : tensor<1x32x1xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x128xf32>
    %34 = stablehlo.multiply %24, %33 : tensor<1x32x128xf32>
    %35 = stablehlo.convert %34 : (tensor<1x32x128xf32>) -> tensor<1x32x128xbf16>
    %36 = stablehlo.broadcast_in_dim %arg3, dims = [2] : (tensor<128xbf16>) -> tensor<1x1x128xbf16>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2] : (tensor<1x1x128xbf16>) -> tensor<1x32x128xbf16>
    %38 = stablehlo.multiply %35, %37 : tensor<1x32x128xbf16>
    %39 = stablehlo.dot_general %38, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x128xbf16>) -> tensor<1x32x128xbf16>
    %40 = stablehlo.reshape %39 : (tensor<1x32x128xbf16>) -> tensor<1x32x4x32xbf16>
    %41 = stablehlo.transpose %40, dims = [0, 2, 1, 3] : (tensor<1x32x4x32xbf16>) -> tensor<1x4x32x32xbf16>
    %42 = stablehlo.slice %41 [0:1, 0:4, 0:32, 0:16] : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x16xbf16>
    %43 = stablehlo.slice %41 [0:1, 0:4, 0:32, 16:32] : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x16xbf16>
    %44 = stablehlo.broadcast_in_dim %21, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %46 = stablehlo.multiply %41, %45 : tensor<1x4x32x32xbf16>
    %47 = stablehlo.negate %43 : tensor<1x4x32x16xbf16>
    %48 = stablehlo.concatenate %47, %42, dim = 3 : (tensor<1x4x32x16xbf16>, tensor<1x4x32x16xbf16>) -> tensor<1x4x32x32xbf16>
    %49 = stablehlo.broadcast_in_dim %23, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %51 = stablehlo.multiply %48, %50 : tensor<1x4x32x32xbf16>
    %52 = stablehlo.add %46, %51 : tensor<1x4x32x32xbf16>
    %53 = stablehlo.dot_general %38, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x64xbf16>) -> tensor<1x32x64xbf16>
    %54 = stablehlo.reshape %53 : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
    %55 = stablehlo.transpose %54, dims = [0, 2, 1, 3] : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
    %56 = stablehlo.slice %55 [0:1, 0:2, 0:32, 0:16] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x16xbf16>
    %57 = stablehlo.slice %55 [0:1, 0:2, 0:32, 16:32] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x16xbf16>
    %58 = stablehlo.broadcast_in_dim %21, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %59 = stablehlo.broadcast_in_dim %58, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x2x32x32xbf16>
    %60 = stablehlo.multiply %55, %59 : tensor<1x2x32x32xbf16>
    %61 = stablehlo.negate %57 : tensor<1x2x32x16xbf16>
    %62 = stablehlo.concatenate %61, %56, dim = 3 : (tensor<1x2x32x16xbf16>, tensor<1x2x32x16xbf16>) -> tensor<1x2x32x32xbf16>
    %63 = stablehlo.broadcast_in_dim %23, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x2x32x32xbf16>
    %65 = stablehlo.multiply %62, %64 : tensor<1x2x32x32xbf16>
    %66 = stablehlo.add %60, %65 : tensor<1x2x32x32xbf16>
    %67 = stablehlo.dot_general %38, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x64xbf16>) -> tensor<1x32x64xbf16>
    %68 = stablehlo.reshape %67 : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
    %69 = stablehlo.transpose %68, dims = [0, 2, 1, 3] : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
    %70 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 3, 4] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x2x32x32xbf16>
    %71 = stablehlo.reshape %70 : (tensor<1x2x2x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %72 = stablehlo.broadcast_in_dim %69, dims = [0, 1, 3, 4] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x2x32x32xbf16>
    %73 = stablehlo.reshape %72 : (tensor<1x2x2x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %74 = stablehlo.dot_general %52, %71, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %cst_5 = stablehlo.constant dense<1.767580e-01> : tensor<bf16>
    %75 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<bf16>) -> tensor<1x4x32x32xbf16>
    %76 = stablehlo.multiply %74, %75 : tensor<1x4x32x32xbf16>
    %c_6 = stablehlo.constant dense<true> : tensor<i1>
    %77 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %78 = call @tril(%77) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst_7 = stablehlo.constant dense<-3.389530e+38> : tensor<bf16>
    %79 = call @_where_0(%78, %76, %cst_7) : (tensor<32x32xi1>, tensor<1x4x32x32xbf16>, tensor<bf16>) -> tensor<1x4x32x32xbf16>
    %80 = stablehlo.convert %79 : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xf32>
    %cst_8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %81 = stablehlo.reduce(%80 init: %cst_8) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x32x32xf32>, tensor<f32>) -> tensor<1x4x32xf32>
    %cst_9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<1x4x32xf32>
    %83 = stablehlo.maximum %82, %81 : tensor<1x4x32xf32>
    %84 = stablehlo.broadcast_in_dim %83, dims = [0, 1, 2] : (tensor<1x4x32xf32>) -> tensor<1x4x32x1xf32>
    %85 = stablehlo.broadcast_in_dim %84, dims = [0, 1, 2, 3] : (tensor<1x4x32x1xf32>) -> tensor<1x4x32x32xf32>
    %86 = stablehlo.subtract %80, %85 : tensor<1x4x32x32xf32>
    %87 = stablehlo.exponential %86 : tensor<1x4x32x32xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %88 = stablehlo.reduce(%87 init: %cst_10) applies stablehlo.add across dimensions = [3] : (tensor<1x4x32x32xf32>, tensor<f32>) -> tensor<1x4x32xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2] : (tensor<1x4x32xf32>) -> tensor<1x4x32x1xf32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1, 2, 3] : (tensor<1x4x32x1xf32>) -> tensor<1x4x32x32xf32>
    %91 = stablehlo.divide %87, %90 : tensor<1x4x32x32xf32>
    %92 = stablehlo.convert %91 : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xbf16>
    %93 = stablehlo.dot_general %92, %73, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %94 = stablehlo.transpose %93, dims = [0, 2, 1, 3] : (tensor<1x4x32x32xbf16>) -> tensor<1x32x4x32xbf16>
    %95 = stablehlo.reshape %94 : (tensor<1x32x4x32xbf16>) -> tensor<1x32x128xbf16>
    %96 = stablehlo.dot_general %95, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x128xbf16>) -> tensor<1x32x128xbf16>
    %97 = stablehlo.add %0, %96 : tensor<1x32x128xbf16>
    %98 = stablehlo.convert %97 : (tensor<1x32x128xbf16>) -> tensor<1x32x128xf32>
    %99 = stablehlo.multiply %98, %98 : tensor<1x32x128xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %100 = stablehlo.reduce(%99 init: %cst_11) applies stablehlo.add across dimensions = [2] : (tensor<1x32x128xf32>, tensor<f32>) -> tensor<1x32xf32>
    %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<1x32x1xf32>
    %cst_12 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %103 = stablehlo.divide %101, %102 : tensor<1x32x1xf32>
    %cst_13 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %104 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %105 = stablehlo.add %103, %104 : tensor<1x32x1xf32>
    %106 = stablehlo.rsqrt %105 : tensor<1x32x1xf32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x128xf32>
    %108 = stablehlo.multiply %98, %107 : tensor<1x32x128xf32>
    %109 = stablehlo.convert %108 : (tensor<1x32x128xf32>) -> tensor<1x32x128xbf16>
    %110 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<128xbf16>) -> tensor<1x1x128xbf16>
    %111 = stablehlo.broadcast_in_dim %110, dims = [0, 1, 2] : (tensor<1x1x128xbf16>) -> tensor<1x32x128xbf16>
    %112 = stablehlo.multiply %109, %111 : tensor<1x32x128xbf16>
    %113 = stablehlo.dot_general %112, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x256xbf16>) -> tensor<1x32x256xbf16>
    %114 = call @silu(%113) : (tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
    %115 = stablehlo.dot_general %112, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x256xbf16>) -> tensor<1x32x256xbf16>
    %116 = stablehlo.multiply %114, %115 : tensor<1x32x256xbf16>
    %117 = stablehlo.dot_general %116, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x256xbf16>, tensor<256x128xbf16>) -> tensor<1x32x128xbf16>
    %118 = stablehlo.add %97, %117 : tensor<1x32x128xbf16>
    %119 = stablehlo.convert %118 : (tensor<1x32x128xbf16>) -> tensor<1x32x128xf32>
    %120 = stablehlo.multiply %119, %119 : tensor<1x32x128xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %121 = stablehlo.reduce(%120 init: %cst_14) applies stablehlo.add across dimensions = [2] : (tensor<1x32x128xf32>, tensor<f32>) -> tensor<1x32xf32>
    %122 = stablehlo.broadcast_in_dim %121, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<1x32x1xf32>
    %cst_15 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %124 = stablehlo.divide %122, %123 : tensor<1x32x1xf32>
    %cst_16 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %126 = stablehlo.add %124, %125 : tensor<1x32x1xf32>
    %127 = stablehlo.rsqrt %126 : tensor<1x32x1xf32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x128xf32>
    %129 = stablehlo.multiply %119, %128 : tensor<1x32x128xf32>
    %130 = stablehlo.convert %129 : (tensor<1x32x128xf32>) -> tensor<1x32x128xbf16>
    %131 = stablehlo.broadcast_in_dim %arg12, dims = [2] : (tensor<128xbf16>) -> tensor<1x1x128xbf16>
    %132 = stablehlo.broadcast_in_dim %131, dims = [0, 1, 2] : (tensor<1x1x128xbf16>) -> tensor<1x32x128xbf16>
    %133 = stablehlo.multiply %130, %132 : tensor<1x32x128xbf16>
    %134 = stablehlo.dot_general %133, %arg16, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x128xbf16>) -> tensor<1x32x128xbf16>
    %135 = stablehlo.reshape %134 : (tensor<1x32x128xbf16>) -> tensor<1x32x4x32xbf16>
    %136 = stablehlo.transpose %135, dims = [0, 2, 1, 3] : (tensor<1x32x4x32xbf16>) -> tensor<1x4x32x32xbf16>
    %137 = stablehlo.slice %136 [0:1, 0:4, 0:32, 0:16] : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x16xbf16>
    %138 = stablehlo.slice %136 [0:1, 0:4, 0:32, 16:32] : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x16xbf16>
    %139 = stablehlo.broadcast_in_dim %21, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %140 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %141 = stablehlo.multiply %136, %140 : tensor<1x4x32x32xbf16>
    %142 = stablehlo.negate %138 : tensor<1x4x32x16xbf16>
    %143 = stablehlo.concatenate %142, %137, dim = 3 : (tensor<1x4x32x16xbf16>, tensor<1x4x32x16xbf16>) -> tensor<1x4x32x32xbf16>
    %144 = stablehlo.broadcast_in_dim %23, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %146 = stablehlo.multiply %143, %145 : tensor<1x4x32x32xbf16>
    %147 = stablehlo.add %141, %146 : tensor<1x4x32x32xbf16>
    %148 = stablehlo.dot_general %133, %arg13, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x64xbf16>) -> tensor<1x32x64xbf16>
    %149 = stablehlo.reshape %148 : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
    %150 = stablehlo.transpose %149, dims = [0, 2, 1, 3] : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
    %151 = stablehlo.slice %150 [0:1, 0:2, 0:32, 0:16] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x16xbf16>
    %152 = stablehlo.slice %150 [0:1, 0:2, 0:32, 16:32] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x32x16xbf16>
    %153 = stablehlo.broadcast_in_dim %21, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %154 = stablehlo.broadcast_in_dim %153, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x2x32x32xbf16>
    %155 = stablehlo.multiply %150, %154 : tensor<1x2x32x32xbf16>
    %156 = stablehlo.negate %152 : tensor<1x2x32x16xbf16>
    %157 = stablehlo.concatenate %156, %151, dim = 3 : (tensor<1x2x32x16xbf16>, tensor<1x2x32x16xbf16>) -> tensor<1x2x32x32xbf16>
    %158 = stablehlo.broadcast_in_dim %23, dims = [2, 3] : (tensor<32x32xbf16>) -> tensor<1x1x32x32xbf16>
    %159 = stablehlo.broadcast_in_dim %158, dims = [0, 1, 2, 3] : (tensor<1x1x32x32xbf16>) -> tensor<1x2x32x32xbf16>
    %160 = stablehlo.multiply %157, %159 : tensor<1x2x32x32xbf16>
    %161 = stablehlo.add %155, %160 : tensor<1x2x32x32xbf16>
    %162 = stablehlo.dot_general %133, %arg18, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x64xbf16>) -> tensor<1x32x64xbf16>
    %163 = stablehlo.reshape %162 : (tensor<1x32x64xbf16>) -> tensor<1x32x2x32xbf16>
    %164 = stablehlo.transpose %163, dims = [0, 2, 1, 3] : (tensor<1x32x2x32xbf16>) -> tensor<1x2x32x32xbf16>
    %165 = stablehlo.broadcast_in_dim %161, dims = [0, 1, 3, 4] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x2x32x32xbf16>
    %166 = stablehlo.reshape %165 : (tensor<1x2x2x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %167 = stablehlo.broadcast_in_dim %164, dims = [0, 1, 3, 4] : (tensor<1x2x32x32xbf16>) -> tensor<1x2x2x32x32xbf16>
    %168 = stablehlo.reshape %167 : (tensor<1x2x2x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %169 = stablehlo.dot_general %147, %166, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %cst_17 = stablehlo.constant dense<1.767580e-01> : tensor<bf16>
    %170 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<bf16>) -> tensor<1x4x32x32xbf16>
    %171 = stablehlo.multiply %169, %170 : tensor<1x4x32x32xbf16>
    %c_18 = stablehlo.constant dense<true> : tensor<i1>
    %172 = stablehlo.broadcast_in_dim %c_18, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %173 = call @tril(%172) : (tensor<32x32xi1>) -> tensor<32x32xi1>
    %cst_19 = stablehlo.constant dense<-3.389530e+38> : tensor<bf16>
    %174 = call @_where_0(%173, %171, %cst_19) : (tensor<32x32xi1>, tensor<1x4x32x32xbf16>, tensor<bf16>) -> tensor<1x4x32x32xbf16>
    %175 = stablehlo.convert %174 : (tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xf32>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %176 = stablehlo.reduce(%175 init: %cst_20) applies stablehlo.maximum across dimensions = [3] : (tensor<1x4x32x32xf32>, tensor<f32>) -> tensor<1x4x32xf32>
    %cst_21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %177 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<1x4x32xf32>
    %178 = stablehlo.maximum %177, %176 : tensor<1x4x32xf32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [0, 1, 2] : (tensor<1x4x32xf32>) -> tensor<1x4x32x1xf32>
    %180 = stablehlo.broadcast_in_dim %179, dims = [0, 1, 2, 3] : (tensor<1x4x32x1xf32>) -> tensor<1x4x32x32xf32>
    %181 = stablehlo.subtract %175, %180 : tensor<1x4x32x32xf32>
    %182 = stablehlo.exponential %181 : tensor<1x4x32x32xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %183 = stablehlo.reduce(%182 init: %cst_22) applies stablehlo.add across dimensions = [3] : (tensor<1x4x32x32xf32>, tensor<f32>) -> tensor<1x4x32xf32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [0, 1, 2] : (tensor<1x4x32xf32>) -> tensor<1x4x32x1xf32>
    %185 = stablehlo.broadcast_in_dim %184, dims = [0, 1, 2, 3] : (tensor<1x4x32x1xf32>) -> tensor<1x4x32x32xf32>
    %186 = stablehlo.divide %182, %185 : tensor<1x4x32x32xf32>
    %187 = stablehlo.convert %186 : (tensor<1x4x32x32xf32>) -> tensor<1x4x32x32xbf16>
    %188 = stablehlo.dot_general %187, %168, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x4x32x32xbf16>, tensor<1x4x32x32xbf16>) -> tensor<1x4x32x32xbf16>
    %189 = stablehlo.transpose %188, dims = [0, 2, 1, 3] : (tensor<1x4x32x32xbf16>) -> tensor<1x32x4x32xbf16>
    %190 = stablehlo.reshape %189 : (tensor<1x32x4x32xbf16>) -> tensor<1x32x128xbf16>
    %191 = stablehlo.dot_general %190, %arg14, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x128xbf16>) -> tensor<1x32x128xbf16>
    %192 = stablehlo.add %118, %191 : tensor<1x32x128xbf16>
    %193 = stablehlo.convert %192 : (tensor<1x32x128xbf16>) -> tensor<1x32x128xf32>
    %194 = stablehlo.multiply %193, %193 : tensor<1x32x128xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %195 = stablehlo.reduce(%194 init: %cst_23) applies stablehlo.add across dimensions = [2] : (tensor<1x32x128xf32>, tensor<f32>) -> tensor<1x32xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<1x32x1xf32>
    %cst_24 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %197 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %198 = stablehlo.divide %196, %197 : tensor<1x32x1xf32>
    %cst_25 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %199 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %200 = stablehlo.add %198, %199 : tensor<1x32x1xf32>
    %201 = stablehlo.rsqrt %200 : tensor<1x32x1xf32>
    %202 = stablehlo.broadcast_in_dim %201, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x128xf32>
    %203 = stablehlo.multiply %193, %202 : tensor<1x32x128xf32>
    %204 = stablehlo.convert %203 : (tensor<1x32x128xf32>) -> tensor<1x32x128xbf16>
    %205 = stablehlo.broadcast_in_dim %arg15, dims = [2] : (tensor<128xbf16>) -> tensor<1x1x128xbf16>
    %206 = stablehlo.broadcast_in_dim %205, dims = [0, 1, 2] : (tensor<1x1x128xbf16>) -> tensor<1x32x128xbf16>
    %207 = stablehlo.multiply %204, %206 : tensor<1x32x128xbf16>
    %208 = stablehlo.dot_general %207, %arg11, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x256xbf16>) -> tensor<1x32x256xbf16>
    %209 = call @silu(%208) : (tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16>
    %210 = stablehlo.dot_general %207, %arg17, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x256xbf16>) -> tensor<1x32x256xbf16>
    %211 = stablehlo.multiply %209, %210 : tensor<1x32x256xbf16>
    %212 = stablehlo.dot_general %211, %arg10, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x256xbf16>, tensor<256x128xbf16>) -> tensor<1x32x128xbf16>
    %213 = stablehlo.add %192, %212 : tensor<1x32x128xbf16>
    %214 = stablehlo.convert %213 : (tensor<1x32x128xbf16>) -> tensor<1x32x128xf32>
    %215 = stablehlo.multiply %214, %214 : tensor<1x32x128xf32>
    %cst_26 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %216 = stablehlo.reduce(%215 init: %cst_26) applies stablehlo.add across dimensions = [2] : (tensor<1x32x128xf32>, tensor<f32>) -> tensor<1x32xf32>
    %217 = stablehlo.broadcast_in_dim %216, dims = [0, 1] : (tensor<1x32xf32>) -> tensor<1x32x1xf32>
    %cst_27 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %218 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %219 = stablehlo.divide %217, %218 : tensor<1x32x1xf32>
    %cst_28 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %220 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<1x32x1xf32>
    %221 = stablehlo.add %219, %220 : tensor<1x32x1xf32>
    %222 = stablehlo.rsqrt %221 : tensor<1x32x1xf32>
    %223 = stablehlo.broadcast_in_dim %222, dims = [0, 1, 2] : (tensor<1x32x1xf32>) -> tensor<1x32x128xf32>
    %224 = stablehlo.multiply %214, %223 : tensor<1x32x128xf32>
    %225 = stablehlo.convert %224 : (tensor<1x32x128xf32>) -> tensor<1x32x128xbf16>
    %226 = stablehlo.broadcast_in_dim %arg20, dims = [2] : (tensor<128xbf16>) -> tensor<1x1x128xbf16>
    %227 = stablehlo.broadcast_in_dim %226, dims = [0, 1, 2] : (tensor<1x1x128xbf16>) -> tensor<1x32x128xbf16>
    %228 = stablehlo.multiply %225, %227 : tensor<1x32x128xbf16>
    %229 = stablehlo.dot_general %228, %arg19, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x32x128xbf16>, tensor<128x128xbf16>) -> tensor<1x32x128xbf16>
    return %229 : tensor<1x32x128xbf16>
  }
  func.func private @_take(%arg0: tensor<128x128xbf16>, %arg1: tensor<1x32xi32>) -> tensor<1x32x128xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1x32xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi1>
    %c_0 = stablehlo.constant dense<128> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1x32xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<1x32xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<1x32xi1>, tensor<1x32xi32>, tensor<1x32xi32>) -> tensor<1x32xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<1x32xi32>) -> tensor<1x32x1xi32>
    %c_1 = stablehlo.constant dense<127> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1x32x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<1x32x1xi32>, tensor<1x32x1xi32>) -> tensor<1x32x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<1x32x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<1x32x1xi32>, tensor<1x32x1xi32>) -> tensor<1x32x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<1x32x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<1x32x1xi1>, tensor<i1>) -> tensor<1x32xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 128>}> : (tensor<128x128xbf16>, tensor<1x32x1xi32>) -> tensor<1x32x128xbf16>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x32xi1>) -> tensor<1x32x128xi1>
    %cst = stablehlo.constant dense<0x7FC0> : tensor<bf16>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x32x128xbf16>
    %16 = stablehlo.select %14, %13, %15 : tensor<1x32x128xi1>, tensor<1x32x128xbf16>
    return %16 : tensor<1x32x128xbf16>
  }
  func.func private @_where(%arg0: tensor<1x32xi1>, %arg1: tensor<1x32xi32>, %arg2: tensor<1x32xi32>) -> tensor<1x32xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<1x32xi1>, tensor<1x32xi32>
    return %0 : tensor<1x32xi32>
  }
  func.func private @tril(%arg0: tensor<32x32xi1>) -> tensor<32x32xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<32x32xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<32x32xi32>
    %2 = stablehlo.add %0, %1 : tensor<32x32xi32>
    %3 = stablehlo.iota dim = 1 : tensor<32x32xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<32x32xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<32x32xi1>, tensor<32x32xi1>
    return %6 : tensor<32x32xi1>
  }
  func.func private @_where_0(%arg0: tensor<32x32xi1>, %arg1: tensor<1x4x32x32xbf16>, %arg2: tensor<bf16>) -> tensor<1x4x32x32xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<32x32xi1>) -> tensor<1x4x32x32xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<bf16>) -> tensor<1x4x32x32xbf16>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<1x4x32x32xi1>, tensor<1x4x32x32xbf16>
    return %2 : tensor<1x4x32x32xbf16>
  }
  func.func private @silu(%arg0: tensor<1x32x256xbf16>) -> tensor<1x32x256xbf16> {
    %0 = stablehlo.negate %arg0 : tensor<1x32x256xbf16>
    %1 = stablehlo.exponential %0 : tensor<1x32x256xbf16>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<1x32x256xbf16>
    %3 = stablehlo.add %2, %1 : tensor<1x32x256xbf16>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<1x32x256xbf16>
    %5 = stablehlo.divide %4, %3 : tensor<1x32x256xbf16>
    %6 = stablehlo.multiply %arg0, %5 : tensor<1x32x256xbf16>
    return %6 : tensor<1x32x256xbf16>
  }
}
