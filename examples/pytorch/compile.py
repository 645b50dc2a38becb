"""Compiles a small PyTorch model, checks it against torch and runs it."""

import torch

import ttcodegen
import ttcodegen.torch

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
images = torch.randn(32, 64)
out = ttcodegen.torch.compile(module.eval(), (images,), out="out/pytorch", name="mlp", check=True)
with ttcodegen.load(out) as model:
    difference = abs(model(images.numpy()) - module(images).detach().numpy()).max()
print(f"largest difference from torch: {difference:.2g}")
