// Writes the findings of `leeway doctor` as text and as JSON.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"
#include "common/text/format.h"
#include "launcher/doctor/doctor.h"

namespace leeway {
namespace {

std::string PeerText(const PeerRates& peer) {
  return absl::StrCat("Network: to the peer ", Fixed(peer.up_gigabytes_per_second, 2),
                      " GB/s, from the peer ", Fixed(peer.down_gigabytes_per_second, 2),
                      ", both at once ", Fixed(peer.both_gigabytes_per_second, 2), "; round trip ",
                      Fixed(1e6 * peer.round_trip_seconds, 0), " us\n");
}

// Returns a note if not all processes of the job took part in the measurement.
std::string MeasuredText(const JobDiagnosis& job, bool across) {
  const uint32_t workers = job.parts.workers;
  if (across || (job.workers_measured == workers && job.servers_measured == job.servers)) return "";
  return absl::StrCat("  measured with ", job.workers_measured, " of the workers and ",
                      job.servers_measured,
                      " of the servers, as many as this machine can hold, and scaled up\n");
}

std::string BasisText(const JobDiagnosis& job) {
  const std::string sum = absl::StrCat(
      "the parts, put together: ",
      Milliseconds(job.estimate.seconds / static_cast<double>(job.steps_per_clock), 2), " ms");
  if (!job.rehearsal.has_value()) {
    return absl::StrCat(
        job.rehearsal_error.empty() ? "" : "the job itself could not be tried, see below; ", sum,
        job.left_out.empty() ? "" : ", without ", absl::StrJoin(job.left_out, " and "));
  }
  return absl::StrCat("the job itself was tried for ", Thousands(job.rehearsal->clocks),
                      " exchanges; ", sum);
}

// Returns the findings about a job, and then what to do.
std::string JobText(const JobDiagnosis& job, bool across) {
  const StepParts& parts = job.parts;
  std::string text = absl::StrCat(
      "The job: ", Thousands(job.compute.schema.total()), " parameters, ",
      Counted(parts.workers, "worker"), ", ", Counted(job.servers, "server"), "\n",
      MeasuredText(job, across), "  a step's compute ", Milliseconds(job.compute.step_seconds, 2),
      across ? " ms" : " ms with all workers at once", "; an exchange alone ",
      Milliseconds(parts.exchange, 2), " ms, every ", job.steps_per_clock,
      job.steps_per_clock == 1 ? " step\n" : " steps\n");
  const double step = job.clock_seconds / static_cast<double>(job.steps_per_clock);
  absl::StrAppend(&text, "  expect ", Milliseconds(step, 2), " ms a step, ",
                  Rate(job.examples_per_second), " examples a second in all (", BasisText(job),
                  ");\n  ", Percent(parts.exchange > 0 ? job.hidden_seconds / parts.exchange : 1),
                  " of the exchange is hidden behind the compute\n",
                  "  starting, evaluations and checkpoints take additional time\n  ");
  if (job.estimate.processor_bound) {
    absl::StrAppend(&text, "the processors are the limit: more workers here make nothing faster\n");
  } else if (parts.exchange - job.hidden_seconds > parts.compute) {
    absl::StrAppend(&text,
                    "the exchange is the limit: exchange less often (accumulation, delta), or ",
                    job.servers_wanted > job.servers ? "compress, or add servers\n" : "compress\n");
  } else {
    absl::StrAppend(&text, "the workers' arithmetic is the limit: more workers help\n");
  }
  absl::StrAppend(
      &text, "  servers: ", job.servers_enough ? "" : "not even ", job.servers_wanted,
      job.servers_wanted == 1 ? " is" : " are",
      " enough to keep the exchange shorter than the compute (the job has ", job.servers,
      ")\n  servers.block_bytes: ",
      job.block_bytes_wanted == job.block_bytes ? "as it is" : absl::StrCat(job.block_bytes_wanted),
      " (the job's blocks have ", job.block_bytes, ")\n");
  if (!job.rehearsal_error.empty()) {
    absl::StrAppend(&text, "  the job itself could not be tried: ", job.rehearsal_error, "\n");
  }
  return text;
}

}  // namespace

std::string DiagnosisText(const Diagnosis& diagnosis) {
  std::string text = HostRatesText(diagnosis.host) + GpusText(diagnosis.gpus);
  if (diagnosis.peer.has_value()) text += PeerText(*diagnosis.peer);
  if (diagnosis.job.has_value()) text += JobText(*diagnosis.job, diagnosis.peer.has_value());
  return text;
}

Json DiagnosisJson(const Diagnosis& diagnosis) {
  Json document = {{"host", HostRatesJson(diagnosis.host)}, {"gpus", GpusJson(diagnosis.gpus)}};
  if (const auto& peer = diagnosis.peer; peer.has_value()) {
    document["peer"] = PeerRatesJson(*peer);
  }
  if (const auto& job = diagnosis.job; job.has_value()) {
    const auto steps = static_cast<double>(job->steps_per_clock);
    const uint64_t rehearsed = job->rehearsal.has_value() ? job->rehearsal->clocks : 0;
    document["job"] = {{"parameters", job->compute.schema.total()},
                       {"steps_per_clock", job->steps_per_clock},
                       {"step_seconds", job->clock_seconds / steps},
                       {"rehearsed_clocks", rehearsed},
                       {"estimated_step_seconds", job->estimate.seconds / steps},
                       {"workers", job->parts.workers},
                       {"workers_measured", job->workers_measured},
                       {"servers_measured", job->servers_measured},
                       {"compute_seconds", job->compute.step_seconds},
                       {"compute_cpu_seconds", job->compute.step_cpu_seconds},
                       {"exchange_seconds", job->parts.exchange},
                       {"exchange_cpu_seconds", job->parts.exchange_cpu},
                       {"stretch", job->parts.stretch},
                       {"hidden_seconds", job->hidden_seconds},
                       {"processor_bound", job->estimate.processor_bound},
                       {"examples_per_second", job->examples_per_second},
                       {"servers", job->servers},
                       {"servers_wanted", job->servers_wanted},
                       {"servers_enough", job->servers_enough},
                       {"block_bytes", job->block_bytes},
                       {"block_bytes_wanted", job->block_bytes_wanted},
                       {"left_out", job->left_out}};
    if (!job->rehearsal_error.empty()) document["job"]["rehearsal_error"] = job->rehearsal_error;
  }
  return document;
}

}  // namespace leeway
