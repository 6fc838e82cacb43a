#include "server/node/cut_writer.h"

#include <algorithm>
#include <utility>

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/shard_file.h"

namespace leeway {
namespace {

BlockContents ContentsOf(const HeldBlock& held, const BlockLayout& layout,
                         const std::vector<std::string>& slot_names) {
  BlockContents contents;
  contents.range = layout.Range(held.block);
  contents.version = held.progress.version;
  contents.clocks = held.progress.clocks;
  contents.updates = held.progress.updates;
  contents.values.emplace_back(kWeightsKey, held.values.weights.span());
  for (size_t slot = 0; slot < slot_names.size(); ++slot) {
    contents.values.emplace_back(slot_names[slot], held.values.slots[slot].span());
  }
  if (held.values.shadow) contents.values.emplace_back(kShadowKey, held.values.shadow.span());
  return contents;
}

// Sets each rank's clock: every block has the rank's contributions of all lower clocks.
void AddClocks(const std::vector<BlockContents>& blocks, v1::SavedShard& saved) {
  for (const BlockContents& block : blocks) {
    for (size_t rank = 0; rank < block.clocks.size(); ++rank) {
      const int at = static_cast<int>(rank);
      if (at == saved.clocks_size()) saved.add_clocks(block.clocks[rank]);
      saved.set_clocks(at, std::min<uint64_t>(saved.clocks(at), block.clocks[rank]));
    }
  }
}

absl::Status Overtaken(uint64_t clock) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the cut at clock ", clock,
      " was not written, because writing the cut before it took longer than checkpoint.every"));
}

// The nice value of the writing thread. With it the thread has about a tenth of the scheduling
// weight of a training thread.
constexpr int kNice = 10;

}  // namespace

CutWriter::CutWriter(Options options, Report report)
    : options_(std::move(options)), report_(std::move(report)), thread_([this] { Loop(); }) {}

CutWriter::~CutWriter() { Close(); }

void CutWriter::Close() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void CutWriter::OnHeld(uint64_t cut, HeldBlock block) {
  MutexLock lock(mutex_);
  if (stop_) return;
  std::vector<HeldBlock>& blocks = open_[cut];
  blocks.push_back(std::move(block));
  if (blocks.size() < options_.layout.BlocksOn(options_.server)) return;
  for (Cut& waiting : complete_) {
    waiting.overtaken = true;
    waiting.blocks.clear();
  }
  complete_.push_back({cut, std::move(blocks)});
  // A slow worker was lost, so this block skipped the older cuts, and they will never be complete.
  open_.erase(open_.begin(), open_.upper_bound(cut));
  changed_.NotifyAll();
}

absl::StatusOr<v1::SavedShard> CutWriter::Write(uint64_t cut, std::vector<HeldBlock> blocks) const {
  std::sort(blocks.begin(), blocks.end(),
            [](const HeldBlock& a, const HeldBlock& b) { return a.block < b.block; });
  ShardContents contents;
  contents.job_id = options_.job_id;
  contents.clock = cut;
  contents.index = options_.server;
  contents.servers = options_.layout.ShardsWithBlocks();
  for (const HeldBlock& held : blocks) {
    contents.blocks.push_back(ContentsOf(held, options_.layout, options_.slot_names));
  }
  const std::string folder = CheckpointFolder(options_.run_dir, cut);
  RETURN_IF_ERROR(CheckInRunFolder(options_.run_dir, folder));
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(folder));
  RETURN_IF_ERROR(storage->MakeFolder(folder));
  ASSIGN_OR_RETURN(v1::SavedShard saved,
                   WriteShardFile(absl::StrCat(folder, "/",
                                               ShardFileName(options_.server, contents.servers,
                                                             options_.epoch, options_.generation)),
                                  contents));
  if (options_.clocks) AddClocks(contents.blocks, saved);
  return saved;
}

absl::StatusOr<v1::SavedShard> CutWriter::WriteLast(uint64_t cut, std::vector<HeldBlock> blocks) {
  {
    MutexLock lock(mutex_);
    while (writing_ || !complete_.empty()) changed_.Wait(mutex_);
  }
  return Write(cut, std::move(blocks));
}

void CutWriter::Loop() {
  // On Linux, 0 means the calling thread. Checksums and digests then use mostly processor time that
  // training leaves idle. It does no harm if a cut is written slightly later.
  setpriority(PRIO_PROCESS, 0, kNice);
  while (true) {
    Cut cut;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      changed_.NotifyAll();
      while (complete_.empty() && !stop_) changed_.Wait(mutex_);
      if (complete_.empty()) return;
      cut = std::move(complete_.front());
      complete_.pop_front();
      writing_ = true;
    }
    report_(cut.clock, cut.overtaken ? absl::StatusOr<v1::SavedShard>(Overtaken(cut.clock))
                                     : Write(cut.clock, std::move(cut.blocks)));
  }
}

}  // namespace leeway
