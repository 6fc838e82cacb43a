# The tiers of the tests that are scripts. A folder's CMakeLists.txt reads as a table: what stands by itself is of the first
# tier, what is called through nightly() of the second.
#
#   tier     what belongs there                                                     how it runs
#   first    each mechanism once, in the mode where it is hardest; at most 30 s     ./run-tests
#   nightly  the products of modes, seeds and models; rates, and promised seconds   ./run-tests --all runs both
#   long     hours, before a release                                                scripts/ci long
#
# docs/reliability.md says which promise is proved by which test in which tier; tests/house/tiers.py keeps that whole.
include_guard(GLOBAL)

# nightly(FUNCTION ARGUMENT...): declares tests as FUNCTION(ARGUMENT...) does, in the second tier. FUNCTION hands ${tier}
# to its add_test.
function(nightly declare)
  set(tier CONFIGURATIONS nightly)
  cmake_language(CALL ${declare} ${ARGN})
endfunction()

# Tests that compare rates or promise seconds: by themselves, at the end. Of the second tier only.
function(alone)
  set_tests_properties(${ARGN} PROPERTIES RUN_SERIAL ON COST 0)
endfunction()
