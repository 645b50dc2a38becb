// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-fit-release='release=0.81.1' %s | filecheck %s
// RUN: ttcodegen-opt --convert-ttir-to-ttnn --ttnn-fit-release='release=0.70.1' %s | filecheck %s --check-prefix=OLDEST

// A number beside tensors of two data types becomes a tensor of one element.
func.func @select(%condition: tensor<32x64xbf16>, %x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  // CHECK-LABEL: @select
  // CHECK: %[[NUMBER:.*]] = "ttnn.full"() <{{.*}}tensor<1x1xf32>
  // CHECK: "ttnn.where"(%condition, %x, %[[NUMBER]])
  // OLDEST-LABEL: @select
  // OLDEST: "ttnn.where"(%condition, %x) <{{.*}}false_value = 1.5
  %number = "ttir.full"() <{shape = array<i32: 32, 64>, fill_value = 1.500000e+00 : f32}> : () -> tensor<32x64xf32>
  %0 = "ttir.where"(%condition, %x, %number) : (tensor<32x64xbf16>, tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Indices of float32 have 32 bits.
func.func @order(%x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xui16>) {
  // CHECK-LABEL: @order
  // CHECK: "ttnn.sort"(%x) {{.*}} -> (tensor<32x64xf32>, tensor<32x64xui32>)
  // CHECK: "ttnn.typecast"{{.*}} -> tensor<32x64xui16>
  // OLDEST-LABEL: @order
  // OLDEST: "ttnn.sort"(%x) {{.*}} -> (tensor<32x64xf32>, tensor<32x64xui16>)
  // OLDEST-NOT: ttnn.typecast
  %0, %1 = "ttir.sort"(%x) <{dim = 1 : si32}> : (tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xui16>)
  return %0, %1 : tensor<32x64xf32>, tensor<32x64xui16>
}
