"""The `.ttnn` file: a lowered program as a flatbuffer, by the schema `ttnn.fbs`."""
