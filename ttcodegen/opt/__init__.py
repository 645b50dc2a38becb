"""The driver of `ttcodegen-opt`: runs passes on the text of a module."""
