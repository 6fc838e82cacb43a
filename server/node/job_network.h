// What server 0 knows of the way to the workers before one has come.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"

namespace leeway {

// Bytes a second of the fastest network interface of this host that is up, by its nominal speed;
// 1 Gb/s where the system does not say. Virtual interfaces do not count: what they say (veth: 10
// Gb/s) has nothing to do with what is below them. `folder` is /sys/class/net.
double NominalLink(const std::string& folder);

// All processes of a job are on one host if its coordinator is found at a loopback address, or its
// transport is unix or shm.
bool OnOneHost(const std::string& address, const v1::Transport& transport);

}  // namespace leeway
