// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-layout --ttnn-activation-dtype-conversion='target=bfp_bf8' %s | filecheck %s

// Values between the products are block floats; results and operands of comparisons are not.
// CHECK: #[[NARROW:ttnn_layout[0-9]*]] = {{.*}}bfp_bf8
// CHECK: %[[UP:.*]] = "ttnn.matmul"(%x, %w){{.*}}bfp_bf8{{.*}} -> tensor<64x64xbf16, #[[NARROW]]>
// CHECK: %[[SUM:.*]] = "ttnn.add"(%[[UP]], %x){{.*}}bfp_bf8{{.*}} -> tensor<64x64xbf16, #[[NARROW]]>
// CHECK: "ttnn.matmul"(%[[SUM]], %w) <{dtype = #ttcore.supportedDataTypes<bf16>}>
// CHECK-SAME: -> tensor<64x64xbf16, #ttnn_layout>
func.func @layer(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>}) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %1 = "ttir.add"(%0, %x) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %2 = "ttir.matmul"(%1, %w) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %3 = "ttir.gt"(%2, %x) : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %2, %3 : tensor<64x64xbf16>, tensor<64x64xbf16>
}
