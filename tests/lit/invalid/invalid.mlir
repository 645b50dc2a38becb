// RUN: ttcodegen-opt --split-input-file --verify-diagnostics --ttir-to-ttnn-backend-pipeline %s

// expected-error @below {{value %1 is not defined}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %1 : tensor<4xf32> }

// -----

func.func @f(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  // expected-error @below {{ttir.matmul}}
  %0 = "ttir.matmul"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+2 {{unknown operation 'd2m.add'}}
  // expected-note @unknown {{before its lowering to D2M}}
  %0 = "d2m.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error-re @+1 {{'@{{[a-z]+}}' is not in the module}}
  %0 = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+3 {{%x is used with type tensor<8xf32>, but its type is tensor<4xf32>}}
// expected-note @+1 {{defined here}}
func.func @f(%x: tensor<4xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
