// A product of two square matrices: what docs/ttmetal.md tunes.
func.func @product(
    %a: tensor<1024x1024xbf16> {ttir.name = "a"},
    %b: tensor<1024x1024xbf16> {ttir.name = "b"}
) -> (tensor<1024x1024xbf16> {ttir.name = "c"}) {
  %c = "ttir.matmul"(%a, %b) : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  return %c : tensor<1024x1024xbf16>
}
