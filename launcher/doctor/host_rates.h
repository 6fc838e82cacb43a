// What this machine can do, measured in a few seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "launcher/doctor/step_model.h"

namespace leeway {

struct HostRates {
  // That a container leaves (common/machine.h).
  uint32_t processors = 0;
  uint64_t memory_bytes = 0;
  // One thread, far beyond the caches; 1e9 bytes of x a second.
  double copy_gigabytes_per_second = 0;
  double add_scaled_gigabytes_per_second = 0;
  // A server's update of 16 MiB, 1e9 bytes of gradient a second, one thread; by rule as
  // `leeway bench update` names them: sgd, momentum, adagrad, adam, elastic.
  std::map<std::string, double> updates;
  // One TCP connection to this machine itself, there and back at once, added.
  double loopback_gigabytes_per_second = 0;
  // Leeway's push_pull, both directions added, between two processes of this machine, by block
  // size.
  std::vector<BlockRate> exchange;
  // One processor, AES-256-GCM (bench/raw/cipher_rate.h).
  double cipher_gigabytes_per_second = 0;
  // Leeway's push_pull over TCP in blocks of 1 MiB, both directions added, without and with mutual
  // TLS. All three are 0 where that could not be measured.
  double tcp_gigabytes_per_second = 0;
  double tls_gigabytes_per_second = 0;
  // Of one 4 KiB exchange.
  double round_trip_seconds = 0;
};

absl::StatusOr<HostRates> MeasureHost(double seconds_each);

Json HostRatesJson(const HostRates& rates);
std::string HostRatesText(const HostRates& rates);

}  // namespace leeway
