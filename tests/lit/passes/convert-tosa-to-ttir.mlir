// RUN: ttcodegen-opt --convert-tosa-to-ttir %s | filecheck %s

// CHECK-LABEL: func.func @test_mul
// CHECK: "ttir.multiply"
// CHECK-NOT: tosa
module attributes {} {
  func.func @test_mul(%arg0: tensor<13x21x3xf32>, %arg1: tensor<13x21x3xf32>) -> tensor<13x21x3xf32> {
    %0 = tosa.mul %arg0, %arg1 {shift = 0 : i8} : (tensor<13x21x3xf32>, tensor<13x21x3xf32>) -> tensor<13x21x3xf32>
    return %0 : tensor<13x21x3xf32>
  }
}
