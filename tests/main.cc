// The main function of every test program. Its exit code tells ctest the result: 0 passed, 4
// skipped (SKIP_RETURN_CODE in CMakeLists.txt), else failed.
#define CATCH_CONFIG_RUNNER
#include <iostream>

#include "tests/skip.h"

namespace leeway::testing {
namespace {

constexpr int kFailed = 1;
constexpr int kSkipped = 4;

size_t ended = 0, skipped = 0;
// The running case has skipped itself, once for each of its sections and generated values.
bool skips = false;

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

class Ends : public Listener {
 public:
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Listener::testCaseEnded(stats);
    ++ended;
    if (skips) ++skipped;
    skips = false;
  }
};
CATCH_REGISTER_LISTENER(Ends)

// Catch2 2 exits with the number of failed assertions: four of them would count as skipped.
int ExitCode(int code) {
  if (ended == 0) return code;
  if (code != 0) return kFailed;
  if (skipped > 0) std::cout << skipped << " of " << ended << " test cases skipped\n";
  return skipped == ended ? kSkipped : 0;
}

}  // namespace

void Skip(const char* file, int line, const std::string& why) {
  skips = true;
  std::cout << file << ":" << line << ": SKIPPED: " << why << std::endl;
  throw Catch::TestFailureException();
}

}  // namespace leeway::testing

int main(int argc, char** argv) {
  return leeway::testing::ExitCode(Catch::Session().run(argc, argv));
}
