// Measures the server's updates, block after block through the BlockStore, as the server makes
// them. In the same run, measures `y += a x` and plain reading over memory of the same size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leeway {

struct UpdateBenchOptions {
  // The size of the shard's parameters, at least a kilobyte. Each of the two arrays for the limit
  // has about the same size. Choose a size far above the caches.
  uint64_t shard_bytes = 100'000'000;
  uint64_t block_bytes = 1 << 20;
  // The number of rounds, after one round to warm up. The result is their median. In each round the
  // limit is measured before and after every update.
  uint32_t rounds = 5;
  // Some of UpdateBenchRules(). Other names are ignored.
  std::vector<std::string> rules = {"sgd",  "momentum", "nesterov", "adagrad",
                                    "adam", "adamw",    "elastic"};
  std::vector<uint32_t> contributions = {1, 2, 8};
  std::vector<uint32_t> threads = {1, 2};
  // Whether contributions are in pieces or contiguous. A network delivers two pieces, which may
  // begin anywhere and split a float. Shared memory is contiguous.
  std::vector<bool> pieces = {false, true};
  // If true, an update writes to another buffer and keeps the previous version, as in sync mode. If
  // false, an update writes in place.
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
  // The bytes that are read and written per second. The contributions count once, because they are
  // read. The state counts twice, because it is read and written. If the update keeps the previous
  // version, the memory of the next version counts once more, because the processor fetches it
  // before it is written.
  double moved_bytes_per_second = 0;
  // The rate of `y += a x` on the same number of threads, with two streams read and one written.
  double axpy_bytes_per_second = 0;
  // The highest rate that the memory allows for the arrays (streams) that the update reads and
  // writes. Each written stream, together with two read streams, counts at the rate of `y += a x`.
  // Further read streams count at the rate of plain reading.
  double limit_bytes_per_second = 0;
  // The median over the rounds of moved / limit.
  double share = 0;
  // The time of one update of one block, with all overhead, which matters most for small blocks.
  double seconds_per_block = 0;
};

// Returns the names of what can be measured: the update rules, and "check". "check" is the search
// for values that are not finite, which the server makes in every contribution when it arrives.
const std::vector<std::string>& UpdateBenchRules();

// Runs the benchmark. Needs about ten times shard_bytes of memory, and half a second for each
// result. Do not run two of these benchmarks at once.
std::vector<UpdateResult> BenchUpdates(const UpdateBenchOptions& options);

}  // namespace leeway
