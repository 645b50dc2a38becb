// RUN: ttcodegen-opt %s | filecheck %s
// RUN: ttcodegen-opt %s > %t
// RUN: ttcodegen-opt %t | diff - %t
// RUN: ttcodegen-opt --mlir-print-op-generic %s | ttcodegen-opt | diff - %t

!cb = !ttkernel.cb<4, !ttcore.tile<32x32, bf16>>

// CHECK-LABEL: func.func private @rows_sum() attributes {ttkernel.thread = #ttkernel.thread<compute>, ttkernel.dst_tiles = 8 : i64}
func.func private @rows_sum() attributes {ttkernel.thread = #ttkernel.thread<tensix>, ttkernel.dst_tiles = 8 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: ttkernel.get_compile_time_arg_val(0) : () -> !ttkernel.cb<4, !ttcore.tile<32x32, bf16>>
  %in = ttkernel.get_compile_time_arg_val(0) : () -> !cb
  %scale = "ttkernel.get_compile_time_arg_val"() <{arg_index = 1 : i32}> : () -> !cb
  %out = ttkernel.get_named_compile_time_arg_val("cb_out") : () -> !cb
  %tiles = ttkernel.get_arg_val(%zero) : (index) -> index
  // CHECK: ttkernel.reduce_init(%in, %scale, %out, <reduce_sum>, <reduce_dim_row>) : (
  "ttkernel.reduce_init"(%in, %scale, %out) <{reduce_type = #ttkernel.reduce_type<reduce_sum>, reduce_dim = #ttkernel.reduce_dim<reduce_dim_row>}> : (!cb, !cb, !cb) -> ()
  // CHECK: scf.for %tile = %zero to %tiles step %one {
  scf.for %tile = %zero to %tiles step %one {
    ttkernel.cb_wait_front(%in, %one) : (!cb, index) -> ()
    ttkernel.tile_regs_acquire() : () -> ()
    ttkernel.reduce_tile(%in, %scale, %zero, %zero, %zero, <reduce_sum>, <reduce_dim_row>) {enforce_fp32_accumulation = true} : (!cb, !cb, index, index, index) -> ()
    ttkernel.tile_regs_commit() : () -> ()
    ttkernel.tile_regs_wait() : () -> ()
    // CHECK: ttkernel.pack_tile(%zero, %out, %zero) {out_of_order = true} : (
    ttkernel.pack_tile(%zero, %out, %zero, true) : (index, !cb, index) -> ()
    ttkernel.tile_regs_release() : () -> ()
    ttkernel.cb_pop_front(%in, %one) : (!cb, index) -> ()
  }
  return
}

// CHECK-LABEL: func.func private @reader()
func.func private @reader() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %zero = arith.constant 0 : i32
  %size = arith.constant 2048 : i32
  %cb = ttkernel.get_compile_time_arg_val(0) : () -> !cb
  %address = ttkernel.get_arg_val(%zero) : (i32) -> i32
  // CHECK: %args = ttkernel.TensorAccessorArgs(1) : () -> !ttkernel.TensorAccessorArgs
  %args = ttkernel.TensorAccessorArgs() {cta_base = 1 : i32} : () -> !ttkernel.TensorAccessorArgs
  %source = ttkernel.TensorAccessor(%args, %address, %size) : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %l1 = ttkernel.get_write_ptr(%cb) : (!cb) -> i32
  // CHECK: %noc = ttkernel.tensor_accessor.get_noc_addr(%source, %zero) : (!ttkernel.TensorAccessor, i32) -> !ttkernel.noc_addr
  %noc = ttkernel.tensor_accessor.get_noc_addr(%source, %zero) : (!ttkernel.TensorAccessor, i32) -> !ttkernel.noc_addr
  ttkernel.noc_async_read(%noc, %l1, %size) : (!ttkernel.noc_addr, i32, i32) -> ()
  ttkernel.noc_async_read_barrier() : () -> ()
  ttkernel.cb_push_back(%cb, %zero) : (!cb, i32) -> ()
  return
}
