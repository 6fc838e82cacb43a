// Measures the server's updates, block after block through the BlockStore, as the server makes
// them. In the same run, measures `y += a x` and plain reading over memory of the same size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leeway {

struct UpdateBenchOptions {
  // The size of the shard's parameters, at least a kilobyte. Each of the two arrays for the limit
  // has about the same size. It must be too large for the caches.
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
  // Whether contributions are in pieces, as after a network: two pieces that split a float and
  // begin anywhere. Contiguous contributions are as in shared memory.
  std::vector<bool> pieces = {false, true};
  // If true, an update writes to another buffer, so that the previous version stays (sync). If
  // false, it writes in place.
  std::vector<bool> keep_previous = {false, true};
};

struct UpdateResult {
  std::string rule;
  uint32_t contributions = 0;
  bool pieces = false;
  bool keep_previous = false;
  uint32_t threads = 0;
  // The bytes of all contributions that are applied in a second.
  double gradient_bytes_per_second = 0;
  // The bytes that are read and written in a second. The contributions count once, because they are
  // read, and the state counts twice, because it is read and written. If the previous version
  // stays, the memory of the next version counts once more, because it is fetched before it is
  // written.
  double moved_bytes_per_second = 0;
  // The rate of `y += a x` on the same number of threads, with two streams read and one written.
  double axpy_bytes_per_second = 0;
  // The rate that the memory allows for the update's streams. Each written stream and two read
  // streams count at the rate of `y += a x`. Further read streams count at the rate of reading
  // alone.
  double limit_bytes_per_second = 0;
  // The median over the rounds of moved / limit.
  double share = 0;
  // The time of one update of one block, with all overhead, which matters most for small blocks.
  double seconds_per_block = 0;
};

// The names of what can be measured: the update rules, and "check". "check" is the search for
// values that are not finite, which the server makes in every contribution on arrival.
const std::vector<std::string>& UpdateBenchRules();

// Needs memory of about shard_bytes x 10, and half a second for each result. Do not run two of
// these benchmarks at once.
std::vector<UpdateResult> BenchUpdates(const UpdateBenchOptions& options);

}  // namespace leeway
