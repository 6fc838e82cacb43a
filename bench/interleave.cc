#include "bench/interleave.h"

#include "bench/base/statistics.h"
#include "common/status.h"

namespace leeway {

absl::StatusOr<std::vector<std::vector<TransferRound>>> RunInterleaved(
    const std::vector<BenchPair*>& subjects, const RoundOptions& options) {
  std::vector<std::vector<TransferRound>> rounds(subjects.size());
  for (BenchPair* subject : subjects) {
    RETURN_IF_ERROR(subject->Run(options.seconds / 2).status());
  }
  for (uint32_t round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      const size_t subject = round % 2 == 0 ? i : subjects.size() - 1 - i;
      ASSIGN_OR_RETURN(TransferRound result, subjects[subject]->Run(options.seconds));
      rounds[subject].push_back(std::move(result));
    }
  }
  return rounds;
}

TransferFigures FiguresOf(const std::vector<TransferRound>& rounds, uint64_t bytes_a_message) {
  TransferFigures figures;
  std::vector<Percentiles> latency;
  for (const TransferRound& round : rounds) {
    const auto messages = static_cast<double>(round.messages);
    const double gigabytes = 1e-9 * messages * static_cast<double>(bytes_a_message);
    figures.rates.push_back(round.seconds > 0 ? messages / round.seconds : 0);
    figures.cpu.push_back(gigabytes > 0 ? round.cpu_seconds / gigabytes : 0);
    if (round.latency.has_value()) latency.push_back(*round.latency);
  }
  figures.messages_per_second = Median(figures.rates);
  figures.gigabytes_per_second =
      1e-9 * figures.messages_per_second * static_cast<double>(bytes_a_message);
  figures.cpu_seconds_per_gigabyte = Median(figures.cpu);
  if (!latency.empty()) figures.latency = MedianOf(latency);
  return figures;
}

}  // namespace leeway
