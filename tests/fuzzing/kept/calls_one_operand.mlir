builtin.module {
  func.func @cases_le(%cases_le_x0: tensor<33x5xi1> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<parameter>}, %cases_le_x1: tensor<1xf32> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 1 : i64, ttcore.argument_type = #ttcore.argument_type<parameter>}, %cases_le_x2: tensor<1x32x64xbf16> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 0 : i64, ttcore.argument_type = #ttcore.argument_type<parameter>}, %cases_le_x3: tensor<1x64xbf16> {drawn.low = -2.000000e+00 : f64, drawn.high = 2.000000e+00 : f64, drawn.seed = 1 : i64, ttcore.argument_type = #ttcore.argument_type<input>}) -> (tensor<33x5xbf16>, tensor<1x32x64xbf16>) attributes {ttcodegen.source_types = (tensor<33x5xf32>, tensor<1xf32>, tensor<1x32x64xbf16>, tensor<1x64xbf16>) -> (tensor<33x5xi1>, tensor<1x32x64xi1>)} {
    %0 = "ttnn.le"(%cases_le_x0) : (tensor<33x5xi1>) -> tensor<33x5xbf16>
    %1 = "ttnn.le"(%cases_le_x2, %cases_le_x3) : (tensor<1x32x64xbf16>, tensor<1x64xbf16>) -> tensor<1x32x64xbf16>
    func.return %0, %1 : tensor<33x5xbf16>, tensor<1x32x64xbf16>
  }
}
