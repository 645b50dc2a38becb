#pragma once

// The release of tt-metal that the declarations are those of, as a number: 7001 is 0.70.1. Programs
// of another release define it. All of them call one compiled backend, whose tensors are those of
// 0.70.1: parameters that a release added at the end are not declared to programs, which leave them
// out, and where the order changed a program gets a function that forwards.
//
// With TTCODEGEN_EXACT_DECLARATIONS namespaces, types and parameters are exactly those of the
// release, so that names in object files can be looked up in its libraries. Nothing that is
// compiled so runs.

#ifndef TTCODEGEN_TT_METAL
#define TTCODEGEN_TT_METAL 7001
#endif

/// Parameters of functions that have another form since 0.81.1, which programs get as well: those
/// that came, and those that went.
#if TTCODEGEN_TT_METAL >= 8101
#define TTCODEGEN_SINCE_8101(...) __VA_ARGS__
#define TTCODEGEN_BEFORE_8101(...)
#else
#define TTCODEGEN_SINCE_8101(...)
#define TTCODEGEN_BEFORE_8101(...) __VA_ARGS__
#endif

/// The last parameter of functions that refuse or give something else since 0.81.1, although they
/// have the same parameters: it chooses among them.
#if TTCODEGEN_TT_METAL >= 8101 && !defined(TTCODEGEN_EXACT_DECLARATIONS)
#define TTCODEGEN_RULES_8101 , ttcodegen::Since8101 = {}
#else
#define TTCODEGEN_RULES_8101
#endif

namespace ttcodegen {

/// The rules of 0.81.1.
struct Since8101 {};

}  // namespace ttcodegen

/// Set if fields that 0.81.1 added to structures are not there. The one backend has them always, as
/// structures have the same size in all programs.
#if defined(TTCODEGEN_EXACT_DECLARATIONS) && TTCODEGEN_TT_METAL < 8101
#define TTCODEGEN_EXACT_BEFORE_8101 1
#else
#define TTCODEGEN_EXACT_BEFORE_8101 0
#endif

#if defined(TTCODEGEN_EXACT_DECLARATIONS) && TTCODEGEN_TT_METAL >= 8101
#define TTCODEGEN_EXACT_8101 1
/// Parameters that 0.81.1 added, and those that it removed, which programs leave out.
#define TTCODEGEN_ADDED_8101(...) __VA_ARGS__
#define TTCODEGEN_REMOVED_8101(...)
#else
#define TTCODEGEN_EXACT_8101 0
#define TTCODEGEN_ADDED_8101(...)
#define TTCODEGEN_REMOVED_8101(...) __VA_ARGS__
#endif
