// Loops that vectorise although their output may be their input.
#pragma once

// Before a `for`: no iteration reads what another one writes. True of every elementwise loop, also
// with out == in; without it the compiler's overlap check sends that case down the scalar path.
#if defined(__clang__)
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEEWAY_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
