// Puts a codec in place of `auto`, once, before the job is given to anybody: servers and workers
// must agree.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/clock.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Bytes a second of the fastest network interface of this host that is up, by its nominal speed;
// 1 Gb/s where the system does not say. Virtual interfaces do not count: what they say (veth: 10
// Gb/s) has nothing to do with what is below them. `folder` is /sys/class/net.
double NominalLink(const std::string& folder);

// A job whose coordinator listens on a loopback address, or whose transport is unix or shm, has one
// host and takes none: memory is faster than any codec. Any other takes what brings a block over
// `link` (bytes a second) soonest, by the rates of this machine, which are measured for about a
// tenth of a second of `now`. Gives what was chosen; nothing for a job without `auto`, to which it
// does nothing.
std::optional<v1::Codec> ResolveCodecs(const std::string& listen, double link,
                                       const std::function<Time()>& now, v1::TrainingJob& job);

}  // namespace leeway
