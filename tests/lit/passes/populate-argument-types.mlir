// RUN: ttcodegen-opt --populate-argument-types="argument-types=f=input,parameter" %s | filecheck %s
// RUN: not ttcodegen-opt --populate-argument-types="argument-types=f=input" %s 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not ttcodegen-opt --populate-argument-types="argument-types=g=input" %s 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not ttcodegen-opt --populate-argument-types="argument-types=f=input,weight" %s 2>&1 | filecheck %s --check-prefix=KIND

// CHECK: func.func @f(%x: tensor<4xf32> {ttir.name = "x", ttcore.argument_type = #ttcore.argument_type<input>}, %w: tensor<4xf32> {ttcore.argument_type = #ttcore.argument_type<parameter>})
// COUNT: error: argument-types names 1 arguments, but the function has 2
// NAME: error: argument-types: the module has no function 'g'
// KIND: error: argument-types: there is no kind 'weight'
// KIND: note: there are input, parameter, constant, default
func.func @f(%x: tensor<4xf32> {ttir.name = "x"}, %w: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
