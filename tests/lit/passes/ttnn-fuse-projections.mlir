// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-fuse-projections %s | filecheck %s

// CHECK: "ttnn.concat"(%q, %k, %v) <{dim = 1 : i32}> : {{.*}} -> tensor<64x384xbf16>
// CHECK: "ttnn.matmul"({{.*}}) : {{.*}} -> tensor<128x384xbf16>
// CHECK: "ttnn.split_query_key_value_and_split_heads"({{.*}}num_heads = 4
// CHECK-NOT: ttnn.permute
#weight = #ttcore.argument_type<parameter>
func.func @attention(%x: tensor<128x64xbf16>, %q: tensor<64x128xbf16> {ttcore.argument_type = #weight}, %k: tensor<64x128xbf16> {ttcore.argument_type = #weight}, %v: tensor<64x128xbf16> {ttcore.argument_type = #weight}) -> (tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>) {
  %0 = "ttir.matmul"(%x, %q) : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %1 = "ttir.reshape"(%0) <{shape = [2 : i32, 64 : i32, 4 : i32, 32 : i32]}> : (tensor<128x128xbf16>) -> tensor<2x64x4x32xbf16>
  %2 = "ttir.permute"(%1) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x64x4x32xbf16>) -> tensor<2x4x64x32xbf16>
  %3 = "ttir.matmul"(%x, %k) : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %4 = "ttir.reshape"(%3) <{shape = [2 : i32, 64 : i32, 4 : i32, 32 : i32]}> : (tensor<128x128xbf16>) -> tensor<2x64x4x32xbf16>
  %5 = "ttir.permute"(%4) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x64x4x32xbf16>) -> tensor<2x4x64x32xbf16>
  %6 = "ttir.matmul"(%x, %v) : (tensor<128x64xbf16>, tensor<64x128xbf16>) -> tensor<128x128xbf16>
  %7 = "ttir.reshape"(%6) <{shape = [2 : i32, 64 : i32, 4 : i32, 32 : i32]}> : (tensor<128x128xbf16>) -> tensor<2x64x4x32xbf16>
  %8 = "ttir.permute"(%7) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<2x64x4x32xbf16>) -> tensor<2x4x64x32xbf16>
  return %2, %5, %8 : tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>, tensor<2x4x64x32xbf16>
}

// A number that is reshaped has no rows.
// CHECK-LABEL: @number
// CHECK: "ttnn.reshape"
func.func @number(%x: tensor<bf16>) -> tensor<1x1x1xbf16> {
  %0 = "ttir.reshape"(%x) <{shape = [1 : i32, 1 : i32, 1 : i32]}> : (tensor<bf16>) -> tensor<1x1x1xbf16>
  return %0 : tensor<1x1x1xbf16>
}
