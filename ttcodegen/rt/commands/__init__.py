"""The sub-commands of `ttcodegen-rt`, classes that can be called from anywhere."""
