#dram = #ttnn.buffer_type<dram>
#ttnn_layout = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x2x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout1 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout2 = #ttnn.ttnn_layout<(d0) -> (0, d0), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
#ttnn_layout3 = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<1x1x!ttcore.tile<32x32, bf16>, #dram>, <interleaved>>
builtin.module {
  func.func @layer(%x: tensor<32x64xbf16, #ttnn_layout>, %arg1: tensor<64x32x!quant.uniform<i8:f32, 0.1>, #ttnn_layout1> {ttir.name = "fc.weight"}, %arg2: tensor<32xbf16, #ttnn_layout2> {ttir.name = "input_0_add_3"}) -> tensor<32x32xbf16, #ttnn_layout3> attributes {ttcodegen.source_types = (tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32xbf16>) -> tensor<32x32xbf16>} {
    %0 = "ttnn.linear"(%x, %arg1, %arg2) : (tensor<32x64xbf16, #ttnn_layout>, tensor<64x32x!quant.uniform<i8:f32, 0.1>, #ttnn_layout1>, tensor<32xbf16, #ttnn_layout2>) -> tensor<32x32xbf16, #ttnn_layout3>
    func.return %0 : tensor<32x32xbf16, #ttnn_layout3>
  }
}
