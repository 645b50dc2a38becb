module attributes {ttcore.meshes = #ttcore.meshes<[<"mesh" = 4294967295x8>]>} {
  func.func @f(%a: tensor<8x32xf32>) -> tensor<8x32xf32> {
    %0 = "ttir.all_reduce"(%a) <{reduce_type = #ttcore.reduce_type<sum>}> : (tensor<8x32xf32>) -> tensor<8x32xf32>
    return %0 : tensor<8x32xf32>
  }
}
