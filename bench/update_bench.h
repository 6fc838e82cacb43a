// The server's arithmetic, measured block after block through the BlockStore, as the server does
// it, beside `y += a x` and plain reading over memory of the same size in the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leeway {

struct UpdateBenchOptions {
  // Parameters of the shard, at least a kilobyte; also about the size of each of the limit's two
  // arrays. So large that nothing is found in a cache.
  uint64_t shard_bytes = 100'000'000;
  uint64_t block_bytes = 1 << 20;
  // The median of so many counts, after one to warm up. In each round the limit is measured before
  // and after every update.
  uint32_t rounds = 5;
  // Some of UpdateBenchRules(); other names are left out.
  std::vector<std::string> rules = {"sgd",  "momentum", "nesterov", "adagrad",
                                    "adam", "adamw",    "elastic"};
  std::vector<uint32_t> contributions = {1, 2, 8};
  std::vector<uint32_t> threads = {1, 2};
  // Contributions as the network leaves them, in two pieces that split a float and begin anywhere;
  // and contiguous ones, as they lie in shared memory.
  std::vector<bool> pieces = {false, true};
  // Updates into another buffer, so that the previous version stays (sync); and in place.
  std::vector<bool> keep_previous = {false, true};
};

struct UpdateResult {
  std::string rule;
  uint32_t contributions = 0;
  bool pieces = false;
  bool keep_previous = false;
  uint32_t threads = 0;
  // Of each contribution.
  double gradient_bytes_per_second = 0;
  // Contributions and state read, state written: every stream counts once for each. Where the
  // previous version stays, the memory of the next one is fetched before it is written, and counts.
  double moved_bytes_per_second = 0;
  // Of `y += a x` on as many threads, two streams read and one written.
  double axpy_bytes_per_second = 0;
  // What the memory allows for the update's streams: those of `y += a x` at its rate, and what is
  // read beyond two streams for one written at the rate of reading alone.
  double limit_bytes_per_second = 0;
  // Median over the rounds of moved / limit.
  double share = 0;
  // One update of one block, all in all: what counts for small blocks.
  double seconds_per_block = 0;
};

// What can be measured: the update rules, and "check", the search for values that are not finite
// that every contribution goes through on arrival.
const std::vector<std::string>& UpdateBenchRules();

// Takes about shard_bytes x 10 of memory and half a second a result. Not to be run twice at once.
std::vector<UpdateResult> BenchUpdates(const UpdateBenchOptions& options);

}  // namespace leeway
