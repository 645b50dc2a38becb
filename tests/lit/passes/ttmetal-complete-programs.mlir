// RUN: ttcodegen-opt --ttir-to-ttmetal-backend-pipeline %s -o %t.programs.mlir
// RUN: sed -e 's/, #ttnn_layout>/>/g' -e 's/ attributes {ttmetal.meaning}//' %t.programs.mlir > %t.bare.mlir
// RUN: ttcodegen-opt --ttmetal-complete-programs %t.bare.mlir | filecheck %s

// CHECK: func.func @f(%x: tensor<32x32xf32, #ttnn_layout>)
// CHECK: "ttmetal.run_program"
// CHECK: @exp_meaning{{.*}}ttmetal.meaning
func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.exp"(%x) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}
