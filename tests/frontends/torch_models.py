"""Models of PyTorch with weights from a seed: small, but of the shape of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.relu(self.up(x)))


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
            nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).flatten(1))


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return F.relu(y, inplace=True)


class ResNet18(nn.Module):
    """As in torchvision, a quarter as wide."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [width * 2**i for i in range(4)]
        for index, size in enumerate(sizes):
            before = sizes[max(index - 1, 0)]
            layer = nn.Sequential(
                BasicBlock(before, size, 1 if index == 0 else 2), BasicBlock(size, size, 1)
            )
            setattr(self, f"layer{index + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(sizes[-1], 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        for index in range(4):
            x = getattr(self, f"layer{index + 1}")(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Attention(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.output = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        parts = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.output(y.transpose(1, 2).reshape(batch, length, size))


class Block(nn.Module):
    def __init__(self, size: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CachedLayer(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.c_attn, self.c_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.c_fc, self.c_out = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(
        self, x: Tensor, position: Tensor, cache: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        batch, _, size = x.shape
        query, key, value = (
            part.view(batch, 1, self.heads, size // self.heads).transpose(1, 2)
            for part in self.c_attn(self.ln_1(x)).split(size, dim=2)
        )
        keys = cache["key"].index_copy(2, position, key)
        values = cache["value"].index_copy(2, position, value)
        seen = torch.arange(keys.shape[2]) <= position
        y = F.scaled_dot_product_attention(query, keys, values, attn_mask=seen[None, None, None])
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, 1, size))
        x = x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))
        return x, {"key": keys, "value": values}


class Decoder(nn.Module):
    """One step of a decoder like GPT-2, with the caches of keys and values as arguments."""

    def __init__(self, size: int = 64, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(128, size), nn.Embedding(32, size)
        self.h = nn.ModuleList(CachedLayer(size, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(size)
        self.lm_head = nn.Linear(size, 128, bias=False)

    def forward(
        self, token: Tensor, position: Tensor, caches: list[dict[str, Tensor]]
    ) -> dict[str, Any]:
        x = self.wte(token) + self.wpe(position)
        updated: list[dict[str, Tensor]] = []
        for layer, cache in zip(self.h, caches, strict=True):
            x, cache = layer(x, position, cache)
            updated.append(cache)
        return {"logits": self.lm_head(self.ln_f(x)), "caches": updated}


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        self.same = stride == 1 and inputs == outputs
        inner = inputs * factor
        self.conv = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False),
            nn.BatchNorm2d(inner), nn.Hardswish(),
            nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.same else self.conv(x)


class MobileNet(nn.Module):
    """Inverted residuals, as MobileNet has them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()
        )
        self.blocks = nn.Sequential(InvertedResidual(8, 16, 2, 4), InvertedResidual(16, 16, 1, 4))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(self.stem(x)).mean([2, 3]))


class ViT(nn.Module):
    """Patches, a class token, learned positions and the library's own encoder."""

    def __init__(self, size: int = 64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, size, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, size))
        self.positions = nn.Parameter(torch.randn(1, 17, size) * 0.02)
        layer = nn.TransformerEncoderLayer(
            size, 4, 2 * size, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.encoder(x))[:, 0])


def _caches(dtype: torch.dtype) -> list[dict[str, Tensor]]:
    return [
        {name: torch.randn(1, 2, 32, 32, dtype=dtype) for name in ("key", "value")}
        for _ in range(2)
    ]


Example = Callable[[torch.dtype], tuple[Any, ...]]


def _images(size: int) -> Example:
    return lambda dtype: (torch.randn(1, 3, size, size, dtype=dtype),)


MODELS: dict[str, tuple[Callable[[], nn.Module], Example]] = {
    "mlp": (MLP, lambda dtype: (torch.randn(32, 64, dtype=dtype),)),
    "cnn": (CNN, _images(32)),
    "resnet18": (ResNet18, _images(64)),
    "block": (Block, lambda dtype: (torch.randn(1, 32, 64, dtype=dtype),)),
    "decoder": (
        Decoder,
        lambda dtype: (torch.tensor([[5]]), torch.tensor([7]), _caches(dtype)),
    ),
    "mobilenet": (MobileNet, _images(32)),
    "vit": (ViT, _images(32)),
}
"""By name: what makes the model, and what gives example arguments for a type of elements."""


def model(name: str, dtype: torch.dtype) -> tuple[nn.Module, tuple[Any, ...]]:
    """A model with weights from a seed, in evaluation mode, and arguments for it. The statistics of
    batch norms are those of some input, as after training."""
    make, example = MODELS[name]
    torch.manual_seed(0)
    made = make()
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 1.5)
    return made.to(dtype).eval(), example(dtype)
