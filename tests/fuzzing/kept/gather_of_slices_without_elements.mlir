module {
          func.func public @main(%0: tensor<5x10x4xf32>, %1: tensor<3x5x1xi32>) -> (tensor<3x5x4xf32>) {
            
            %r = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_index_map = [1], start_indices_batching_dims = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 0, 4>}> : (tensor<5x10x4xf32>, tensor<3x5x1xi32>) -> tensor<3x5x4xf32>
            return %r : tensor<3x5x4xf32>
          }
        }