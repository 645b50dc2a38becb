// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-divide-wide-products %s | filecheck %s

// A third of the columns is what cores next to the banks have room for.
// CHECK-LABEL: @logits
// CHECK-COUNT-3: "ttnn.matmul"({{.*}}) : (tensor<32x2048xbf16>, tensor<2048x42752xbf16>) -> tensor<32x42752xbf16>
// CHECK: "ttnn.concat"({{.*}}) <{dim = 1 : i32}> : ({{.*}}) -> tensor<32x128256xbf16>
// CHECK: return
func.func @logits(%x: tensor<32x2048xbf16>, %w: tensor<2048x128256xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x128256xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x2048xbf16>, tensor<2048x128256xbf16>) -> tensor<32x128256xbf16>
  return %0 : tensor<32x128256xbf16>
}

// Weights that differ from run to run would be divided in each.
// CHECK-LABEL: @given
// CHECK-NOT: ttnn.slice_static
// CHECK: return
func.func @given(%x: tensor<32x2048xbf16>, %w: tensor<2048x128256xbf16> {ttcore.argument_type = #ttcore.argument_type<input>}) -> tensor<32x128256xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x2048xbf16>, tensor<2048x128256xbf16>) -> tensor<32x128256xbf16>
  return %0 : tensor<32x128256xbf16>
}

// Narrow weights fit as they are.
// CHECK-LABEL: @narrow
// CHECK-NOT: ttnn.concat
// CHECK: return
func.func @narrow(%x: tensor<32x2048xbf16>, %w: tensor<2048x8192xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> tensor<32x8192xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<32x2048xbf16>, tensor<2048x8192xbf16>) -> tensor<32x8192xbf16>
  return %0 : tensor<32x8192xbf16>
}
