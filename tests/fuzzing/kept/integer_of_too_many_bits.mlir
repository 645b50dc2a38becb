builtin.module {
  func.func @cases_requantize(%cases_requantize_x0: tensor<1x1x1x1xi32> {drawn.low = -8.000000e+00 : f64, drawn.high = 8.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<parameter>}, %cases_requantize_x1: tensor<3x2x33x5xi8> {drawn.low = -8.000000e+00 : f64, drawn.high = 8.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<parameter>}) -> (tensor<1x1x1x1xi8>, tensor<3x2x33x5xi32>) {
    %0 = "ttir.requantize"(%cases_requantize_x0) <{in_scale = [2.500000e-01 : f32], in_zero_point = array<i32: -2>, out_scale = [5.000000e-01 : f32], out_zero_point = array<i32: -1>, storage_min = -128 : i32, storage_max = 127 : i32}> : (tensor<1x1x1x1xi32>) -> tensor<1x1x1x1xi8>
    %1 = "ttir.requantize"(%0) <{axis = 0 : i32, in_scale = [5.000000e-01 : f32, 1.250000e-01 : f32, 1.000000e+00 : f32], in_zero_point = array<i32: -1, 2, -2>, out_scale = [5.000000e-01 : f32, 1.250000e-01 : f32, 1.000000e+00 : f32], out_zero_point = array<i32: -1, 2, -2>, storage_min = -2147483648 : i32, storage_max = 2147483647 : i322147483647 : i32}> : (tensor<3x2x33x5xi8>) -> tensor<3x2x33x5xi32>
    func.return %0, %1 : tensor<1x1x1x1xi8>, tensor<3x2x33x5xi32>
  }
}
