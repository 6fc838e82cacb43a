// Measures the server's arithmetic, block after block through the BlockStore, as the server does
// it. In the same run it measures `y += a x` and plain reading, over memory of the same size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leeway {

struct UpdateBenchOptions {
  // Bytes of the shard's parameters, at least a kilobyte. This is also about the size of each of
  // the two arrays of the limit. It must be too large for the caches.
  uint64_t shard_bytes = 100'000'000;
  uint64_t block_bytes = 1 << 20;
  // The result is the median of this number of rounds, after one to warm up. In each round the
  // limit is measured before and after every update.
  uint32_t rounds = 5;
  // Some of UpdateBenchRules(). Other names are ignored.
  std::vector<std::string> rules = {"sgd",  "momentum", "nesterov", "adagrad",
                                    "adam", "adamw",    "elastic"};
  std::vector<uint32_t> contributions = {1, 2, 8};
  std::vector<uint32_t> threads = {1, 2};
  // Whether contributions are in pieces. Pieces are as the network leaves them: two pieces that
  // split a float and begin anywhere. Contiguous contributions are as in shared memory.
  std::vector<bool> pieces = {false, true};
  // True: updates go into another buffer, so that the previous version stays (sync). False: in
  // place.
  std::vector<bool> keep_previous = {false, true};
};

struct UpdateResult {
  std::string rule;
  uint32_t contributions = 0;
  bool pieces = false;
  bool keep_previous = false;
  uint32_t threads = 0;
  // Bytes of each contribution.
  double gradient_bytes_per_second = 0;
  // Contributions and state that are read, and state that is written. Every stream counts once for
  // each. If the previous version stays, the memory of the next version is fetched before it is
  // written, and counts too.
  double moved_bytes_per_second = 0;
  // The rate of `y += a x` on the same number of threads, with two streams read and one written.
  double axpy_bytes_per_second = 0;
  // What the memory allows for the update's streams. Two streams read for each one written count at
  // the rate of `y += a x`. Further reads count at the rate of reading alone.
  double limit_bytes_per_second = 0;
  // The median over the rounds of moved / limit.
  double share = 0;
  // One update of one block, with everything. This is what counts for small blocks.
  double seconds_per_block = 0;
};

// What can be measured: the update rules, and "check". "check" is the search for values that are
// not finite, which every contribution goes through on arrival.
const std::vector<std::string>& UpdateBenchRules();

// Takes memory of about shard_bytes x 10, and half a second for each result. Do not run two at
// once.
std::vector<UpdateResult> BenchUpdates(const UpdateBenchOptions& options);

}  // namespace leeway
