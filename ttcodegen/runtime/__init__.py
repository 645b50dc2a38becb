"""Loading of built programs and flatbuffers, and their execution on arrays and device tensors.

- `backend_reports`: Reports of the CPU backend in this process, to files that environment variables
  name
- `buckets`: Calls of a loaded model with dynamic dimensions, on tensors of any size within their
  ranges
- `built_library`: Shared objects of projects, rebuilt if their sources changed
- `c_api`: Python binding of a built module's C API, device tensors and library descriptions
- `executable`: Common interface of flatbuffers and built shared objects
- `generation`: Token generation by the functions of a loaded project
- `library`: Execution of a built project's shared object on numpy arrays
- `program_inputs`: Inputs of a program: golden values, arrays of files, or generated values
- `state`: State of a loaded module: device tensors that its functions share, and their signatures
- `stitching`: Stitching: runs separately compiled programs in sequence on device tensors
"""
