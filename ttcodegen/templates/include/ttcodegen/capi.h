/* Types of the C API of a compiled module. Each module's own header declares its functions. */
#ifndef TTCODEGEN_CAPI_H
#define TTCODEGEN_CAPI_H

#include <stdint.h>

/* Incremented when a type below or the meaning of a function changes. */
#define TTCODEGEN_API_VERSION 2u

/* Returned by functions. After anything but TTCODEGEN_OK, last_error describes what happened. */
enum {
    TTCODEGEN_OK = 0,
    TTCODEGEN_WRONG_ARGUMENT = 1, /* the caller's mistake: nothing has changed */
    TTCODEGEN_FAILED = 2          /* a file, the device or an operation failed */
};

enum {
    TTCODEGEN_INPUT = 0,     /* given with each run */
    TTCODEGEN_PARAMETER = 1, /* a weight: read from the data folder, or set */
    TTCODEGEN_CONSTANT = 2,  /* as a parameter */
    TTCODEGEN_OUTPUT = 3
};

enum {
    TTCODEGEN_BOOL = 0,
    TTCODEGEN_INT8 = 1,
    TTCODEGEN_INT16 = 2,
    TTCODEGEN_INT32 = 3,
    TTCODEGEN_INT64 = 4,
    TTCODEGEN_UINT8 = 5,
    TTCODEGEN_UINT16 = 6,
    TTCODEGEN_UINT32 = 7,
    TTCODEGEN_UINT64 = 8,
    TTCODEGEN_FLOAT16 = 9,
    TTCODEGEN_BFLOAT16 = 10,
    TTCODEGEN_FLOAT32 = 11,
    TTCODEGEN_FLOAT64 = 12
};

enum { TTCODEGEN_ROW_MAJOR = 0, TTCODEGEN_TILE = 1 };

enum { TTCODEGEN_HOST = 0, TTCODEGEN_DRAM = 1, TTCODEGEN_L1 = 2 };

/* A module opened on a device, to be used by one thread at a time. */
typedef struct ttcodegen_model ttcodegen_model;

/* An input or output of a run, usually on the device. It can be used by models of any module that
   were opened on the same device and built against the same library. */
typedef struct ttcodegen_device_tensor ttcodegen_device_tensor;

/* The description of an input, a weight or an output. The pointers stay valid. */
typedef struct ttcodegen_tensor {
    const char* name;
    int32_t kind;
    int32_t dtype; /* the type in which its elements are computed; block floats: float32 */
    uint32_t rank;
    const uint64_t* shape;
    const char* field;     /* its name as an identifier */
    const char* data_type; /* on the device: "bfloat16", "bfloat8_b", ... */
    int32_t layout;        /* TTCODEGEN_TILE, ... */
    int32_t memory;        /* TTCODEGEN_DRAM, ... */
} ttcodegen_tensor;

/* A buffer of the caller with contiguous elements in row-major order.
   Integers and booleans are converted to types that can hold them, floats to floats. */
typedef struct ttcodegen_array {
    int32_t dtype;
    uint32_t rank;
    const uint64_t* shape;
    void* data;
    uint64_t bytes; /* size of the buffer: that of the elements */
} ttcodegen_array;

#endif
