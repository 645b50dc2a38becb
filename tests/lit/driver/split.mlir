// RUN: ttcodegen-opt --split-input-file --ttir-canonicalize %s | filecheck %s
// RUN: not ttcodegen-opt --split-input-file --ttir-to-ttnn-backend-pipeline="argument-types=f=input" %s 2>&1 | filecheck %s --check-prefix=ERROR

// CHECK: func.func @f
// CHECK: // -----
// CHECK: func.func @g
// The parts that are right are printed all the same.
// ERROR: error: argument-types: the module has no function 'f'
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
