# The tiers of the tests that are scripts. A folder's CMakeLists.txt reads like a table: a plain entry is in the first
# tier, and an entry that is called through nightly() is in the second.
#
#   tier     what belongs there                                                     how it runs
#   first    each mechanism once, in the mode where it is hardest; at most 30 s     ./run-tests
#   nightly  the products of modes, seeds and models; rates, and promised seconds   ./run-tests --all runs both
#   long     hours, before a release                                                scripts/ci long
#
# docs/reliability.md says which test in which tier proves each promise; tests/house/tiers.py checks that this is
# complete.
include_guard(GLOBAL)

# nightly(FUNCTION ARGUMENT...): declares tests as FUNCTION(ARGUMENT...) does, but in the second tier. FUNCTION passes
# ${tier} to its add_test.
function(nightly declare)
  set(tier CONFIGURATIONS nightly)
  cmake_language(CALL ${declare} ${ARGN})
endfunction()

# Tests that compare rates or promise seconds run alone, at the end, and only in the second tier.
function(alone)
  set_tests_properties(${ARGN} PROPERTIES RUN_SERIAL ON COST 0)
endfunction()
