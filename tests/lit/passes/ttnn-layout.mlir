// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout %s | filecheck %s
// RUN: ttcodegen-opt --ttnn-layout %s | filecheck %s --check-prefix=LATER

// LATER: builtin.module attributes {ttcodegen.layouts_wanted}

// Inputs arrive in rows, weights in tiles; the matrix engine takes tiles.
// CHECK: #[[ROWS:.*]] = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<64x128xf32, #dram>, <interleaved>>
// CHECK-NEXT: #[[TILES:.*]] = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x3x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>
// CHECK-LABEL: func.func @f
// CHECK-SAME: %x: tensor<64x128xf32, #[[ROWS]]>
// CHECK-SAME: %w: tensor<128x96xf32, #[[TILES]]>
// CHECK: "ttnn.composite_to_layout"(%x)
// CHECK: "ttnn.matmul"
func.func @f(%x: tensor<64x128xf32> {ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<128x96xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<64x96xf32> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
