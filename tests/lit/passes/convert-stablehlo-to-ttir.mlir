// RUN: ttcodegen-opt --convert-stablehlo-to-ttir %s | filecheck %s
// RUN: ttmlir-opt --stablehlo-to-ttir-pipeline %s | filecheck %s

// CHECK-LABEL: func.func @sum
// CHECK: "ttir.add"
// CHECK-NOT: stablehlo
module attributes {} {
  func.func @sum(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
    %0 = stablehlo.add %x, %y : tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }
}
