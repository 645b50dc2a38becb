// RUN: ttcodegen-opt --split-input-file --verify-diagnostics %s

func.func @element(%t: tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32> {
  // expected-error @+1 {{element -1 of tuple<tensor<2xf32>, tensor<3xf32>> is not of type tensor<3xf32>}}
  %0 = "ttcore.get_tuple_element"(%t) <{index = -1 : i32}> : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @element(%t: tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32> {
  // expected-error @+1 {{element 5 of tuple<tensor<2xf32>, tensor<3xf32>> is not of type tensor<3xf32>}}
  %0 = "ttcore.get_tuple_element"(%t) <{index = 5 : i32}> : (tuple<tensor<2xf32>, tensor<3xf32>>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @tuple(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{the elements are not those of tuple<tensor<3xf32>>}}
  %0 = "ttcore.tuple"(%x) : (tensor<2xf32>) -> tuple<tensor<3xf32>>
  %1 = "ttcore.get_tuple_element"(%0) <{index = 0 : i32}> : (tuple<tensor<3xf32>>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

func.func @none(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{the called function '@cached' is not in the module}}
  %0 = ttcore.load_cached(@cached, [%x]) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @cached(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @count(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{function @cached takes 2 arguments, but the call has 1}}
  %0 = ttcore.load_cached(@cached, [%x]) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @cached(%x: tensor<3xf32>) -> tensor<2xf32> {
  %0 = "ttir.zeros"() <{shape = array<i32: 2>}> : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func @type(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{function @cached takes tensor<3xf32> as argument 0, but the call has tensor<2xf32>}}
  %0 = ttcore.load_cached(@cached, [%x]) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// expected-error @+1 {{a layout of rank 2 has 1 alignments}}
#layout = #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 32, collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>
func.func private @f(tensor<1x1x32x32xf32, #layout>)

// -----

// expected-error @+1 {{alignments are positive, found 0x32}}
#layout = #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 0x32, collapsed_intervals = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>, l1, sharded>
func.func private @f(tensor<1x1x32x32xf32, #layout>)

// -----

// expected-error @+1 {{collapsed intervals are pairs, found a tensor of 2x3}}
#layout = #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 32x32, collapsed_intervals = dense<[[0, 1, 2], [1, 2, 3]]> : tensor<2x3xi64>, l1, sharded>
func.func private @f(tensor<1x1x32x32xf32, #layout>)

// -----

// expected-error @+1 {{collapsed intervals of a layout of rank 2 lie in its dimensions, found 1 to 3}}
#layout = #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 32x32, collapsed_intervals = dense<[[0, 1], [1, 3]]> : tensor<2x2xi64>, l1, sharded>
func.func private @f(tensor<1x1x32x32xf32, #layout>)

// -----

// expected-error @+1 {{collapsed intervals of a layout of rank 2 lie in its dimensions, found 1 to 0}}
#layout = #ttcore.metal_layout<logical_shape = 32x32, dim_alignments = 32x32, collapsed_intervals = dense<[[1, 0], [1, 2]]> : tensor<2x2xi64>, l1, sharded>
func.func private @f(tensor<1x1x32x32xf32, #layout>)

// -----

// expected-error @+1 {{a grid has cores, found 0x8}}
ttcore.device @d = <workerGrid = #ttcore.grid<0x8, (d0, d1) -> (0, d0, d1)>, meshShape = 1x1, chipIds = [0]>

// -----

// expected-error @+1 {{the grid of DRAM has two dimensions, found 1x12x1}}
ttcore.device @d = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, dramGrid = #ttcore.grid<1x12x1>, meshShape = 1x1, chipIds = [0]>

// -----

// expected-error @+1 {{a mesh of 2 dimensions has 1 topologies}}
ttcore.device @d = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, meshShape = 1x2, chipIds = [0, 1], meshTopology = [ring]>
