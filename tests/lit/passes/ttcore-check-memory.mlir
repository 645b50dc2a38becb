// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline="mock-system-desc-arch=blackhole" %s | ttcodegen-opt --ttcore-check-memory | filecheck %s
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline %s 2>&1 | filecheck %s --check-prefix=FULL
// RUN: not ttcodegen-opt --ttir-to-ttmetal-backend-pipeline %s 2>&1 | filecheck %s --check-prefix=FULL

// 8 GiB each: two of them are more than the 12 GiB of a wormhole, less than the 32 of a blackhole.
// CHECK: func.func @f
// FULL: ttcore-check-memory.mlir:12:{{.*}}: error: 'f' does not fit into the DRAM of wormhole_b0: it needs 16.00 GiB here, 12.00 GiB can be used
// FULL: note: inputs: 8.00 GiB
// FULL: note: activations: 8.00 GiB
// FULL: note: narrower data types or a smaller batch take less
func.func @f(%x: tensor<65536x65536xbf16>) -> tensor<65536x65536xbf16> {
  %0 = "ttir.exp"(%x) : (tensor<65536x65536xbf16>) -> tensor<65536x65536xbf16>
  return %0 : tensor<65536x65536xbf16>
}
