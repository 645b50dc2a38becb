// ttnn does not tilize row-major tensors of bytes.
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s | filecheck %s
// CHECK: #[[BYTES:.*]] = #ttnn.ttnn_layout<{{.*}}!ttcore.tile<32x32, u8>
// CHECK: #[[WORDS:.*]] = #ttnn.ttnn_layout<{{.*}}!ttcore.tile<32x32, u32>
// CHECK: "ttnn.typecast"(%x)
// CHECK: "ttnn.to_layout"({{.*}}) : {{.*}} -> tensor<8x4xui32, #[[WORDS]]>
// CHECK: "ttnn.typecast"({{.*}}) : {{.*}} -> tensor<8x4xui8, #[[BYTES]]>
func.func @bytes_in_tiles(
    %x: tensor<8x4xui8> {drawn.low = 0.0 : f64, drawn.high = 8.0 : f64, drawn.seed = 0 : i64,
                         ttcore.argument_type = #ttcore.argument_type<input>}) -> tensor<4x8xui8> {
  %0 = "ttir.permute"(%x) <{permutation = array<i64: 1, 0>}> : (tensor<8x4xui8>) -> tensor<4x8xui8>
  return %0 : tensor<4x8xui8>
}
