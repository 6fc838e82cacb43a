// What server 0 knows of the link to the workers before a worker has come.
#pragma once

#include <string>

#include "leeway/v1/job.pb.h"

namespace leeway {

// The nominal speed in bytes per second of the fastest network interface of this host that is up; 1
// Gb/s if the system does not say. Virtual interfaces do not count, because what they say (veth: 10
// Gb/s) says nothing about the network below them. `folder` is /sys/class/net.
double NominalLink(const std::string& folder);

// Whether all processes of a job are on one host. They are if the coordinator's address is a
// loopback address, or if the transport is unix or shm.
bool OnOneHost(const std::string& address, const v1::Transport& transport);

}  // namespace leeway
