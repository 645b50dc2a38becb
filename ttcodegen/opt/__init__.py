"""The driver behind `ttcodegen-opt`: runs passes on the text of a module."""
