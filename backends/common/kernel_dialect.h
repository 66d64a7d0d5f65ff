/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_dialect.h - the language that kernels are written in: C99 without address spaces, qualifiers or built-in names of
 * any one compiler.  Each section gives the same words to another: OpenCL C 1.2; CUDA and HIP; plain C, where one work item
 * runs alone (for checks).  A further one is a further section.
 *
 * The build defines
 *   HAS_F64     1 if the device computes with f64
 *   REAL_IS_F64 1 if `real`, the type that float kernels compute with, is f64
 * and, if it wants a kernel for one case only, KERNEL_OP and KERNEL_FORMAT_0 .. KERNEL_FORMAT_3 as constants, and KERNEL_ONLY with
 * KERNEL_ONLY_<name> for each kernel of the program that the case needs: others take time to compile.
 *
 * A kernel is written as
 *
 *   KERNEL(name)(BUFFER(0, const u8, x) BUFFER(1, u8, y) PARAMETERS(2) WORK_ITEM) {
 *     for (u64 i = GLOBAL_ID; i < P->count; i += GLOBAL_COUNT) ...
 *   }
 *
 * with GLOBAL, SHARED and PRIVATE before every pointer, SHARED_ARRAY at the top of a kernel, and BARRIER where all items of
 * a group pass.  Nothing is fused unless it says FMA.
 */
#ifndef KERNEL_DIALECT_H
#define KERNEL_DIALECT_H

#ifndef HAS_F64
#define HAS_F64 1
#endif
#ifndef REAL_IS_F64
#define REAL_IS_F64 0
#endif

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#if HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define F64_BITS(value) as_ulong(value)
#define F64_FROM(bits) as_double(bits)
#endif

typedef uchar  u8;
typedef ushort u16;
typedef uint   u32;
typedef ulong  u64;
typedef char   i8;
typedef short  i16;
typedef int    i32;
typedef long   i64;
typedef float  f32;

#define FUNCTION static
#define KERNEL(name) __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void name
#define BUFFER(index, type, name) __global type *name,
#define PARAMETERS(index) const kernel_parameters parameters
#define WORK_ITEM
#define P (&parameters)
#define PARAMETERS_POINTER __private const kernel_parameters *
#define GLOBAL __global
#define SHARED __local
#define PRIVATE __private
#define SHARED_ARRAY(type, name, count) __local type name[count]
#define LOCAL_ID ((u32)get_local_id(0))
#define GROUP_ID ((u64)get_group_id(0))
#define GROUP_COUNT ((u64)get_num_groups(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define F32_BITS(value) as_uint(value)
#define F32_FROM(bits) as_float(bits)
#define FMA_F32(a, b, c) fma(a, b, c)
#define FMA_F64(a, b, c) fma(a, b, c)
#define MATH_F32(name) name
#define MATH_F64(name) name
#define LEADING_ZEROS(word) ((u32)clz(word))

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__HIPCC__) || defined(__HIPCC_RTC__)

typedef unsigned char      u8;
typedef unsigned short     u16;
typedef unsigned int       u32;
typedef unsigned long long u64;
typedef signed char        i8;
typedef short              i16;
typedef int                i32;
typedef long long          i64;
typedef float              f32;
typedef double             f64;

#define FUNCTION static __device__ __forceinline__
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(64) name
#define BUFFER(index, type, name) type *name,
#define PARAMETERS(index) const kernel_parameters parameters
#define WORK_ITEM
#define P (&parameters)
#define PARAMETERS_POINTER const kernel_parameters *
#define GLOBAL
#define SHARED
#define PRIVATE
#define SHARED_ARRAY(type, name, count) __shared__ type name[count]
#define LOCAL_ID ((u32)threadIdx.x)
#define GROUP_ID ((u64)blockIdx.x)
#define GROUP_COUNT ((u64)gridDim.x)
#define BARRIER __syncthreads()
#define F32_BITS(value) ((u32)__float_as_uint(value))
#define F32_FROM(bits) __uint_as_float(bits)
#define F64_BITS(value) ((u64)__double_as_longlong(value))
#define F64_FROM(bits) __longlong_as_double((i64)(bits))
#define FMA_F32(a, b, c) fmaf(a, b, c)
#define FMA_F64(a, b, c) fma(a, b, c)
#define MATH_F32(name) name##f
#define MATH_F64(name) name
#define LEADING_ZEROS(word) ((u32)__clzll((i64)(word)))

#else

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t  u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t   i8;
typedef int16_t  i16;
typedef int32_t  i32;
typedef int64_t  i64;
typedef float    f32;
typedef double   f64;

static inline u32 plain_f32_bits(f32 value) { u32 bits; memcpy(&bits, &value, sizeof bits); return bits; }
static inline f32 plain_f32_from(u32 bits) { f32 value; memcpy(&value, &bits, sizeof value); return value; }
static inline u64 plain_f64_bits(f64 value) { u64 bits; memcpy(&bits, &value, sizeof bits); return bits; }
static inline f64 plain_f64_from(u64 bits) { f64 value; memcpy(&value, &bits, sizeof value); return value; }

#define FUNCTION static inline
#define KERNEL(name) void name
#define BUFFER(index, type, name) type *name,
#define PARAMETERS(index) const kernel_parameters *parameters
#define WORK_ITEM
#define P parameters
#define PARAMETERS_POINTER const kernel_parameters *
#define GLOBAL
#define SHARED
#define PRIVATE
#define SHARED_ARRAY(type, name, count) type name[count]
#define LOCAL_ID 0u
#define GROUP_ID ((u64)0)
#define GROUP_COUNT ((u64)1)
#define BARRIER ((void)0)
#define F32_BITS(value) plain_f32_bits(value)
#define F32_FROM(bits) plain_f32_from(bits)
#define F64_BITS(value) plain_f64_bits(value)
#define F64_FROM(bits) plain_f64_from(bits)
#define FMA_F32(a, b, c) fmaf(a, b, c)
#define FMA_F64(a, b, c) fma(a, b, c)
#define MATH_F32(name) name##f
#define MATH_F64(name) name
#define LEADING_ZEROS(word) ((u32)__builtin_clzll(word))

#endif

/* ---- what follows is the same for all ---- */

#if REAL_IS_F64
typedef f64 real;
#define REAL_MATH(name) MATH_F64(name)
#define REAL_FMA(a, b, c) FMA_F64(a, b, c)
#define REAL_EPSILON(p) F64_FROM((p)->f64_bits)
#else
typedef f32 real;
#define REAL_MATH(name) MATH_F32(name)
#define REAL_FMA(a, b, c) FMA_F32(a, b, c)
#define REAL_EPSILON(p) F32_FROM((p)->f32_bits)
#endif

#if defined(KERNEL_OP)
#define OP_OF(p) KERNEL_OP
#else
#define OP_OF(p) ((p)->op)
#endif
#if defined(KERNEL_FORMAT_0)
#define FORMAT_A(p) KERNEL_FORMAT_0
#else
#define FORMAT_A(p) ((p)->formats[0])
#endif
#if defined(KERNEL_FORMAT_1)
#define FORMAT_B(p) KERNEL_FORMAT_1
#else
#define FORMAT_B(p) ((p)->formats[1])
#endif
#if defined(KERNEL_FORMAT_2)
#define FORMAT_C(p) KERNEL_FORMAT_2
#else
#define FORMAT_C(p) ((p)->formats[2])
#endif
#if defined(KERNEL_FORMAT_3)
#define FORMAT_Y(p) KERNEL_FORMAT_3
#else
#define FORMAT_Y(p) ((p)->formats[3])
#endif

#define GLOBAL_ID (GROUP_ID * GROUP_SIZE + LOCAL_ID)
#define GLOBAL_COUNT (GROUP_COUNT * GROUP_SIZE)

#endif
