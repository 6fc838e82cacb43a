// Hides the difference between Catch2 2 (Debian 12) and 3.
#pragma once

// Test cases catch exceptions, but assertions do not: less code to compile.
#define CATCH_CONFIG_FAST_COMPILE

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
