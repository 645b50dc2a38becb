// RUN: ttcodegen-opt --help | filecheck %s --check-prefix=HELP
// RUN: ttcodegen-opt --list-passes | filecheck %s --check-prefix=LIST
// RUN: ttcodegen-opt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: ttcodegen-opt --version | filecheck %s --check-prefix=VERSION
// RUN: ttcodegen-opt --mlir-timing --cse --mlir-disable-threading %s -o %t 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: not ttcodegen-opt --ttir-fuse-all %s 2>&1 | filecheck %s --check-prefix=CLOSE
// RUN: not ttcodegen-opt --convert-linalg-to-emitc %s 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not ttcodegen-opt --zzz %s 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not ttcodegen-opt --ttnn-workaround %s 2>&1 | filecheck %s --check-prefix=REASON
// RUN: not ttcodegen-opt --emit-bytecode %s 2>&1 | filecheck %s --check-prefix=BYTECODE
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline="row-major-enabled=true" %s 2>&1 | filecheck %s --check-prefix=OPTIMIZER
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline="enable-const-evl" %s 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not ttcodegen-opt --ttir-to-ttnn-backend-pipeline="enable-const-eval=maybe" %s 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not ttcodegen-opt %s %t 2>&1 | filecheck %s --check-prefix=FILES
// RUN: ttcodegen-opt --ttir-to-ttnn-backend-pipeline="optimization-level=0 enable-cpu-hoisted-const-eval=false" %s -o %t

// HELP: usage: ttcodegen-opt [options and passes] [FILE]
// HELP: Options:
// HELP: --verify-diagnostics
// HELP: Passes on TTCore:
// HELP: --ttcore-register-device
// HELP: Passes on TTIR:
// HELP: --ttir-fusing
// HELP: Pipelines on TTNN:
// HELP: --ttir-to-ttnn-common-pipeline
// HELP: enable-const-eval=true
// HELP: Pipelines on EmitC:
// HELP: Passes on all dialects:
// HELP: exit status:
// LIST: convert-ttir-to-ttnn
// LIST: inline
// DIALECTS: Available Dialects: {{.*}}emitc, func, {{.*}}ttcore, ttir, {{.*}}ttnn
// VERSION: ttcodegen-opt {{[0-9]+\.[0-9]+}}
// TIMING: Execution time report
// TIMING: cse {{.*}} ms
// OTHER: error: there is no pass or option --convert-linalg-to-emitc
// OTHER: note: --help lists passes and options
// CLOSE: error: there is no pass or option --ttir-fuse-all
// CLOSE: note: did you mean --ttir-fusing?
// NOTHING: error: there is no pass or option --zzz
// NOTHING: note: --help lists passes and options
// REASON: error: there is no pass --ttnn-workaround: the catalogue has the requirements of the library on operands
// BYTECODE: error: there is no option --emit-bytecode: modules are printed as text only
// OPTIMIZER: error: --ttir-to-ttnn-backend-pipeline: the option 'row-major-enabled' cannot be {{.*}}: 
// OPTION: error: --ttir-to-ttnn-backend-pipeline has no option 'enable-const-evl'
// OPTION: note: did you mean 'enable-const-eval'?
// VALUE: error: --ttir-to-ttnn-backend-pipeline: the option 'enable-const-eval' is true or false, found 'maybe'
// FILES: error: one file is read
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
