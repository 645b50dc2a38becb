"""Compiles a small JAX function, checks it against jax and runs it."""

import jax
import jax.numpy as jnp
import numpy as np

import ttcodegen
import ttcodegen.jax

keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "up": {"kernel": jax.random.normal(keys[0], (64, 128)) / 8, "bias": jnp.zeros(128)},
    "down": {"kernel": jax.random.normal(keys[1], (128, 10)) / 11, "bias": jnp.zeros(10)},
}
images = jax.random.normal(keys[2], (32, 64))


def mlp(params, images):
    hidden = jax.nn.relu(images @ params["up"]["kernel"] + params["up"]["bias"])
    return {"scores": hidden @ params["down"]["kernel"] + params["down"]["bias"]}


out = ttcodegen.jax.compile(mlp, images, params=params, out="out/jax", check=True)
with ttcodegen.load(out) as model:
    difference = abs(model(np.asarray(images))["scores"] - mlp(params, images)["scores"]).max()
print(f"largest difference from jax: {difference:.2g}")
