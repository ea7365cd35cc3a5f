"""Names of devices on this machine's links: the maker by the MAC, the host name by DNS, mDNS and LLMNR."""
