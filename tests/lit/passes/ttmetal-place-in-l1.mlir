// RUN: ttcodegen-opt --ttir-to-ttmetal-pipeline="tensors-in-l1=false" %s -o %t.dram.mlir
// RUN: filecheck %s --check-prefix=WITHOUT --input-file=%t.dram.mlir
// RUN: ttcodegen-opt --ttmetal-place-in-l1 %t.dram.mlir | filecheck %s

// The first matmul is read by the second program alone; the result is read by the host.
// WITHOUT-NOT: #l1
// WITHOUT: ttmetal.run_program
// CHECK: #[[GLOBAL:.*]] = #ttnn.ttnn_layout<{{.*}}#dram>
// CHECK: #[[LOCAL:.*]] = #ttnn.ttnn_layout<{{.*}}#l1
// CHECK-LABEL: func.func @products
// CHECK: %[[FIRST:.*]] = "ttmetal.create_buffer"() : () -> tensor<512x512xbf16, #[[LOCAL]]>
// CHECK: "ttmetal.run_program"(%x, %w, %[[FIRST]])
// CHECK: %[[SECOND:.*]] = "ttmetal.create_buffer"() : () -> tensor<512x512xbf16, #[[GLOBAL]]>
// CHECK: "ttmetal.run_program"(%[[FIRST]], %w, %[[SECOND]])
// CHECK: "ttmetal.deallocate_buffer"(%[[FIRST]])
func.func @products(%x: tensor<512x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %1 = "ttir.matmul"(%0, %w) : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %1 : tensor<512x512xbf16>
}
