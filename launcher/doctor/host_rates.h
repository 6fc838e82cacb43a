// Measures in a few seconds what this machine can do.
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
  // The number of processors and the memory that the limits of a container allow
  // (common/machine.h).
  uint32_t processors = 0;
  uint64_t memory_bytes = 0;
  // The rates of copying x and of y += a x, with one thread and vectors far larger than the caches,
  // in 1e9 bytes of x a second.
  double copy_gigabytes_per_second = 0;
  double add_scaled_gigabytes_per_second = 0;
  // The rates of a server's update of 16 MiB with one thread, in 1e9 bytes of gradient a second, by
  // the rule's name in `leeway bench update`: sgd, momentum, adagrad, adam, elastic.
  std::map<std::string, double> updates;
  // The rate of one TCP connection from this machine to itself: the sum of both directions at once.
  double loopback_gigabytes_per_second = 0;
  // The rates of Leeway's push_pull between two processes of this machine, by block size. Each rate
  // is the sum of both directions.
  std::vector<BlockRate> exchange;
  // The rate of AES-256-GCM on one processor (bench/raw/cipher_rate.h).
  double cipher_gigabytes_per_second = 0;
  // The rates of Leeway's push_pull over TCP in blocks of 1 MiB, without and with mutual TLS. Each
  // rate is the sum of both directions. These two rates and the cipher's rate are 0 if TLS could
  // not be measured.
  double tcp_gigabytes_per_second = 0;
  double tls_gigabytes_per_second = 0;
  // The time of one exchange of 4 KiB.
  double round_trip_seconds = 0;
};

absl::StatusOr<HostRates> MeasureHost(double seconds_each);

Json HostRatesJson(const HostRates& rates);
std::string HostRatesText(const HostRates& rates);

}  // namespace leeway
