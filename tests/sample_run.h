// A small run as its metrics.jsonl would record it.
#pragma once

#include <string>

#include "run/history.h"

namespace leeway {

inline constexpr char kSampleMetrics[] =
    R"({"event":"worker_registered","time":1000.0,"rank":0,"incarnation":1}
{"event":"worker_registered","time":1000.5,"rank":1,"incarnation":1}
{"event":"job_started","time":1001.0}
{"event":"step","time":1002.0,"rank":0,"clock":10,"epoch":0.5,"steps":10,"examples":320,"train_loss":2.0,"staleness":0,"learning_rate":0.1,"data_seconds":0.1,"compute_seconds":0.6,"exchange_seconds":0.3}
{"event":"step","time":1002.0,"rank":1,"clock":10,"epoch":0.5,"steps":10,"examples":320,"train_loss":1.0,"staleness":3,"learning_rate":0.1,"data_seconds":0.1,"compute_seconds":0.4,"exchange_seconds":0.5}
{"event":"evaluation","time":1003.0,"clock":10,"epoch":1.0,"test_loss":1.4,"test_accuracy":0.8,"examples":100}
{"event":"worker_lost","time":1003.5,"rank":1,"incarnation":1,"message":"no heartbeat <10 s"}
{"event":"step","time":1005.0,"rank":0,"clock":20,"epoch":1.0,"steps":10,"examples":320,"train_loss":0.5,"staleness":1,"learning_rate":0.1,"data_seconds":0.1,"compute_seconds":0.6,"forward_seconds":0.2,"backward_seconds":0.4,"exchange_seconds":0.7,"wait_seconds":0.3}
{"event":"step","time":1005.0,"rank":1,"clock":20,"epoch":1.0,"steps":10,"examples":0,"train_loss":null,"staleness":2,"learning_rate":0.1,"data_seconds":0.0,"compute_seconds":0.0,"exchange_seconds":0.5}
{"event":"checkpoint","time":1005.5,"clock":20}
{"event":"job_finished","time":1006.0,"state":"finished"}
)";

inline RunHistory SampleHistory() { return ParseHistory(kSampleMetrics); }

}  // namespace leeway
