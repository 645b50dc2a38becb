// RUN: ttcodegen-opt --split-input-file --verify-diagnostics %s

func.func @compute(%i: index) attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  // expected-error @below {{ttkernel.noc_async_write_barrier runs in kernels of the thread noc or ethernet}}
  ttkernel.noc_async_write_barrier() : () -> ()
  return
}

// -----

func.func @noc(%i: index) attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %c = arith.constant true
  scf.if %c {
    // expected-error @below {{ttkernel.exp_tile runs in kernels of the thread compute}}
    ttkernel.exp_tile(%i) : (index) -> ()
  }
  return
}

// -----

func.func @registers() attributes {ttkernel.thread = #ttkernel.thread<compute>, ttkernel.dst_tiles = 8 : i64} {
  %i = arith.constant 8 : index
  // expected-error @below {{'dst_index' is the destination register 8, but @registers has 8}}
  ttkernel.exp_tile(%i) : (index) -> ()
  return
}

// -----

func.func @operands(%i: i64) {
  // expected-error @below {{operand 'dst_index' should be the index of a destination register}}
  ttkernel.exp_tile(%i) : (i64) -> ()
  return
}

// -----

func.func @words(%i: index, %cb: !ttkernel.cb<1, f32>) {
  // expected-error @below {{#ttkernel.bcast_type is one of none, col, row, scalar, not diagonal}}
  ttkernel.unary_bcast(%cb, %i, %i, <diagonal>) : (!ttkernel.cb<1, f32>, index, index) -> ()
  return
}
