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

// So have those of integers of 16 bits, which modules of the library sort.
func.func @order_of_integers(%x: tensor<32x64xui16>) -> (tensor<32x64xui16>, tensor<32x64xui16>) {
  // CHECK-LABEL: @order_of_integers
  // CHECK: "ttnn.sort"(%x) {{.*}} -> (tensor<32x64xui16>, tensor<32x64xui32>)
  // OLDEST-LABEL: @order_of_integers
  // OLDEST: "ttnn.sort"(%x) {{.*}} -> (tensor<32x64xui16>, tensor<32x64xui16>)
  %0, %1 = "ttnn.sort"(%x) <{dim = 1 : i32}> : (tensor<32x64xui16>) -> (tensor<32x64xui16>, tensor<32x64xui16>)
  return %0, %1 : tensor<32x64xui16>, tensor<32x64xui16>
}

// As a float of 32 bits the greatest integer is one more.
func.func @select_integers(%condition: tensor<32x64xsi32>, %x: tensor<32x64xsi32>) -> (tensor<32x64xsi32>, tensor<32x64xsi32>) {
  // CHECK-LABEL: @select_integers
  // CHECK: %[[GREATEST:.*]] = "ttnn.full"() <{{.*}}2147483647{{.*}}tensor<1x1xsi32>
  // CHECK: "ttnn.where"(%condition, %x, %[[GREATEST]])
  // CHECK: "ttnn.where"(%condition, %x) <{{.*}}false_value = -1
  // OLDEST-LABEL: @select_integers
  // OLDEST: "ttnn.where"(%condition, %x) <{{.*}}false_value = 2147483647
  %0 = "ttnn.where"(%condition, %x) <{false_value = 2147483647 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x64xsi32>, tensor<32x64xsi32>) -> tensor<32x64xsi32>
  %1 = "ttnn.where"(%condition, %x) <{false_value = -1 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x64xsi32>, tensor<32x64xsi32>) -> tensor<32x64xsi32>
  return %0, %1 : tensor<32x64xsi32>, tensor<32x64xsi32>
}
