#include "bench/transport_report.h"

#include "absl/strings/str_cat.h"
#include "bench/base/percentiles_json.h"
#include "common/text/format.h"
#include "common/text/table.h"

namespace leeway {
namespace {

std::string CallTime(const TransferFigures& figures, double Percentiles::*percentile) {
  return figures.latency.has_value() ? Milliseconds(*figures.latency.*percentile, 3) : "-";
}

Json TransportSideJson(const TransferFigures& figures) {
  Json side = {{"messages_per_second", figures.messages_per_second},
               {"gigabytes_per_second", figures.gigabytes_per_second},
               {"cpu_seconds_per_gigabyte", figures.cpu_seconds_per_gigabyte},
               {"rounds_messages_per_second", figures.rates}};
  if (figures.latency.has_value()) side["latency_seconds"] = *figures.latency;
  return side;
}

std::string CodecText(const TransferResult& row) {
  const bool both = row.plan.method == TransferMethod::kPushPull && row.codec != row.reply_codec;
  return both ? absl::StrCat(row.codec, ", back ", row.reply_codec) : row.codec;
}

std::string TransfersTable(const TransportBenchResult& result) {
  const std::string beside = result.tls ? "plain" : "raw";
  Table table(
      {"transport", "method", "block", "codec", "travels", "GB/s", beside + " GB/s", "share",
       "CPU s/GB", beside, "ratio", "p50 ms", "p99 ms", "server peak", "parameters"},
      2);
  for (const TransferResult& row : result.transfers) {
    table.Add({result.tls ? "tls" : NameOf(row.wire), NameOf(row.plan.method),
               Bytes(row.plan.message_bytes), CodecText(row), Fixed(row.travel_share, 2),
               Fixed(row.leeway.gigabytes_per_second, 2), Fixed(row.raw.gigabytes_per_second, 2),
               Fixed(row.share, 2), Fixed(row.leeway.cpu_seconds_per_gigabyte, 2),
               Fixed(row.raw.cpu_seconds_per_gigabyte, 2), Fixed(row.cpu_ratio, 2),
               CallTime(row.leeway, &Percentiles::p50), CallTime(row.leeway, &Percentiles::p99),
               Bytes(row.server_peak_bytes), Bytes(row.parameter_bytes)});
  }
  return absl::StrCat(
      "Transfers, one worker, one server; GB = 1e9 bytes of floats, both directions added. "
      "Travels: "
      "the share\nof them that is sent, headers included. ",
      result.tls ? absl::StrCat("Plain: the same over TCP without TLS. One processor encrypts ",
                                Fixed(result.cipher_rate / 1e9, 2),
                                " GB/s with\nAES-256-GCM in records of 16 KiB. Share, ratio: ")
                 : "Raw: two processes, one connection (tcp, unix; for auto: tcp) or a ring in\n"
                   "shared memory, doing the same work. Share, ratio: ",
      "medians over the rounds, not quotients of the "
      "medians in the table.\nTimes are for a call of half the blocks.\n",
      table.ToString());
}

std::string ExchangesTable(const TransportBenchResult& result) {
  Table table({"transport", "in flight", "exchanges/s", "p50 ms", "p99 ms", "bare gRPC calls/s",
               "p50 ms", "ratio"},
              2);
  for (const ExchangeRateResult& row : result.exchanges) {
    table.Add({NameOf(row.wire), row.in_flight, Rate(row.leeway.messages_per_second),
               CallTime(row.leeway, &Percentiles::p50), CallTime(row.leeway, &Percentiles::p99),
               Rate(row.ping.messages_per_second), CallTime(row.ping, &Percentiles::p50),
               Fixed(row.ratio, 2)});
  }
  return absl::StrCat("\nExchanges of 4 KiB in each direction, one worker, without a codec\n",
                      table.ToString());
}

}  // namespace

std::string TransportTable(const TransportBenchResult& result) {
  std::string text;
  if (!result.transfers.empty()) text += TransfersTable(result);
  if (!result.exchanges.empty()) text += ExchangesTable(result);
  return text;
}

Json TransportJson(const TransportBenchResult& result) {
  Json transfers = Json::array();
  for (const TransferResult& row : result.transfers) {
    transfers.push_back({{"method", NameOf(row.plan.method)},
                         {"transport", result.tls ? "tls" : NameOf(row.wire)},
                         {"codec", row.codec},
                         {"reply_codec", row.reply_codec},
                         {"travel_share", row.travel_share},
                         {"block_bytes", row.plan.message_bytes},
                         {"blocks", row.plan.blocks},
                         {"in_flight", row.plan.window},
                         {"leeway", TransportSideJson(row.leeway)},
                         {result.tls ? "plain" : "raw", TransportSideJson(row.raw)},
                         {"share", row.share},
                         {"cpu_ratio", row.cpu_ratio},
                         {"server_peak_bytes", row.server_peak_bytes},
                         {"parameter_bytes", row.parameter_bytes},
                         {"in_flight_bytes", row.in_flight_bytes}});
  }
  Json exchanges = Json::array();
  for (const ExchangeRateResult& row : result.exchanges) {
    exchanges.push_back({{"transport", NameOf(row.wire)},
                         {"in_flight", row.in_flight},
                         {"leeway", TransportSideJson(row.leeway)},
                         {"ping", TransportSideJson(row.ping)},
                         {"ratio", row.ratio}});
  }
  Json document = {{"transfers", transfers}, {"exchanges", exchanges}};
  if (result.tls) document["cipher_bytes_per_second"] = result.cipher_rate;
  return document;
}

}  // namespace leeway
