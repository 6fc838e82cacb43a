"""Decides under which TCP congestion control two programs may be compared."""

import pathlib

SETTING = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")
# These algorithms send as fast as the receiver reads. Leeway's connections within a host change from BBR to Reno by
# themselves.
FAIR = ("reno", "cubic")


def refusal(control):
    """Returns why ps-lite would not be measured fairly under this congestion control; "" if it would be."""
    if control in FAIR:
        return ""
    return (f"TCP congestion control is {control}, which may pace ps-lite's connections within this host and not "
            "Leeway's. Nothing was measured. Set it: sysctl -w net.ipv4.tcp_congestion_control=cubic (or reno), or "
            "measure as it is with --any-congestion-control")


def current():
    return SETTING.read_text().strip()
