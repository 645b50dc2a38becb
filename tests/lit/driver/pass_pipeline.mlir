// RUN: ttcodegen-opt --pass-pipeline='builtin.module(func.func(cse),ttir-to-emitc-pipeline{module-name=exp enable-const-eval=false})' --dump-pass-pipeline %s -o %t 2>&1 | filecheck %s
// RUN: ttcodegen-opt --ttir-to-emitc-pipeline='{module-name="exp"}' %s | filecheck %s --check-prefix=CODE
// RUN: not ttcodegen-opt --pass-pipeline='builtin.module(cse' %s 2>&1 | filecheck %s --check-prefix=OPEN
// RUN: not ttcodegen-opt --pass-pipeline='linalg.generic(cse)' %s 2>&1 | filecheck %s --check-prefix=ANCHOR

// CHECK: Pass Manager: builtin.module(cse,ttcore-imply-mesh,ttcore-register-device,ttmetal-lift-programs,ttir-outline-generics,inline{cpu-functions=true generics=true},
// CHECK-SAME: ttnn-layout,ttnn-fit-attention,ttnn-sliced-pools,ttnn-decompose-layouts
// CHECK-SAME: convert-ttnn-to-emitc{module-name=exp})
// CODE: id = "src/exp.hpp"
// OPEN: error: ')' is missing in the pipeline
// ANCHOR: error: 'linalg.generic' in the pipeline 'linalg.generic(cse)' is no operation that passes run on
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
