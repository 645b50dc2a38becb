// RUN: ttcodegen-opt --ttcore-imply-mesh %s | filecheck %s

// CHECK: #ttcore.meshes<[<"mesh" = 1x4>]>
func.func @f(%x: tensor<32x32xf32>) -> tensor<32x128xf32> {
  %0 = "ttir.all_gather"(%x) <{all_gather_dim = 1 : si32, cluster_axis = 1 : ui32}> : (tensor<32x32xf32>) -> tensor<32x128xf32>
  return %0 : tensor<32x128xf32>
}
