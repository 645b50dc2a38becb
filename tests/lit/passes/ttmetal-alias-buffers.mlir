// RUN: ttcodegen-opt --ttir-to-ttmetal-fe-pipeline --convert-ttir-to-ttmetal --ttmetal-place-in-l1 %s -o %t.placed.mlir
// RUN: filecheck %s --check-prefix=BEFORE --input-file=%t.placed.mlir
// RUN: ttcodegen-opt --ttmetal-alias-buffers %t.placed.mlir | filecheck %s

// The row of tiles that a core's softmax reads is already in its L1.
// BEFORE-LABEL: func.func @read_max_subtract_div
// BEFORE: ttkernel.noc_async_read_page
// CHECK-LABEL: func.func @rows
// CHECK: name = "scores_tiles", data_type = bfloat16, pages = 16, page_size = 2048, operand = 0
// CHECK-LABEL: func.func @read_max_subtract_div
// CHECK: %[[COUNT:.*]] = ttkernel.get_arg_val
// CHECK: %[[TILES:.*]] = arith.muli %[[COUNT]]
// CHECK-NOT: ttkernel.noc_async_read_page
// CHECK: ttkernel.cb_push_back(%cb_scores_tiles, %[[TILES]])
// CHECK: func.return
func.func @rows(%x: tensor<512x512xbf16>, %w: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %0 = "ttir.matmul"(%x, %w) : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  %1 = "ttir.softmax"(%0) <{dimension = 1 : si32}> : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %1 : tensor<512x512xbf16>
}
