// RUN: ttcodegen-opt --split-input-file --verify-diagnostics %s

func.func @host(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  // expected-error @+1 {{'ttnn.to_memory_config': a tensor on the host is not interleaved}}
  %0 = "ttnn.to_memory_config"(%x) <{memory_config = #ttnn.memory_config<#ttnn.buffer_type<system_memory>, <interleaved>>}> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

#dram = #ttnn.buffer_type<dram>
func.func @blocks(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  // expected-error @+1 {{a tensor in DRAM is not block_sharded}}
  %0 = "ttnn.to_memory_config"(%x) <{memory_config = #ttnn.memory_config<#dram, <block_sharded>, #ttnn.shard_spec<<[#ttnn.core_range<(0,0), (1,1)>]>, <32x32>, <row_major>>>}> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

#l1 = #ttnn.buffer_type<l1>
func.func @shards(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  // expected-error @+1 {{a tensor that is interleaved has no shards}}
  %0 = "ttnn.to_memory_config"(%x) <{memory_config = #ttnn.memory_config<#l1, <interleaved>, #ttnn.shard_spec<<[#ttnn.core_range<(0,0), (1,1)>]>, <32x32>, <row_major>>>}> : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %0 : tensor<64x64xbf16>
}

// -----

func.func @axis(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{ttnn.mesh_partition: a mesh has the axes 0 and 1, found cluster_axis 3}}
  %0 = "ttnn.mesh_partition"(%x) <{dim = 0 : si32, cluster_axis = 3 : ui32}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @kernel(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{ttir.tt_lang_op: the kernel_id is empty}}
  %0 = "ttir.tt_lang_op"(%x, %y) <{arg_roles = "in,out", kernel_id = "", version_tag = "b"}> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{a tensor that is interleaved has no ranges of cores}}
#cores = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<dram>>, <interleaved>, core_ranges = <[#ttnn.core_range<(0,0), (0,0)>]>>
func.func private @f(tensor<64x64xbf16, #cores>)

// -----

// expected-error @+1 {{two ranges of cores overlap}}
#overlap = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <2x2>, memref<1x1x!ttcore.tile<32x32, bf16>, #ttnn.buffer_type<l1>>, <block_sharded>, core_ranges = <[#ttnn.core_range<(0,0), (1,0)>, #ttnn.core_range<(1,0), (2,0)>]>>
func.func private @f(tensor<64x64xbf16, #overlap>)
