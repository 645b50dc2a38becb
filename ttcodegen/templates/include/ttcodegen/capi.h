/* Types of the C API of a compiled module. Each module's own header declares its functions. */
#ifndef TTCODEGEN_CAPI_H
#define TTCODEGEN_CAPI_H

#include <stdint.h>

/* Goes up when a type below or the meaning of a function changes. */
#define TTCODEGEN_API_VERSION 1u

/* What functions return. After anything but TTCODEGEN_OK, last_error tells what happened. */
enum {
    TTCODEGEN_OK = 0,
    TTCODEGEN_WRONG_ARGUMENT = 1, /* the caller's mistake: nothing has changed */
    TTCODEGEN_FAILED = 2          /* a file, the device or an operation failed */
};

enum {
    TTCODEGEN_INPUT = 0,     /* given anew to each run */
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

/* A module opened on a device. One thread at a time may use it. */
typedef struct ttcodegen_model ttcodegen_model;

/* What is known of an input, a weight or an output; the pointers stay valid. */
typedef struct ttcodegen_tensor {
    const char* name;
    int32_t kind;
    int32_t dtype; /* the type in which its elements are computed; block floats: float32 */
    uint32_t rank;
    const uint64_t* shape;
} ttcodegen_tensor;

/* A caller's buffer of elements in row-major order, without gaps.
   Integers and booleans convert to what can hold them, floats to floats. */
typedef struct ttcodegen_array {
    int32_t dtype;
    uint32_t rank;
    const uint64_t* shape;
    void* data;
    uint64_t bytes; /* size of the buffer: that of the elements */
} ttcodegen_array;

#endif
